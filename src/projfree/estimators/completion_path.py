"""The choice of the radius: a warm-started path of penalties, judged on held-out ratings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from projfree.checks import Array
from projfree.estimators.alternating import Alternating, Factors, strongest
from projfree.runtime import single_blas

#: The path: strengths fall by this factor from this part of the strongest, with so many sweeps each.
FIRST, FACTOR, SWEEPS, POINTS = 0.9, 0.8, 4, 30
#: It ends when the score has not improved for so many points.
PATIENCE = 2


def strengths_of(problem: Alternating, points: int = POINTS) -> Array:
    """The strengths of a path, from strong to weak."""
    return np.asarray(FIRST * strongest(problem) * FACTOR ** np.arange(points))


def along(
    problem: Alternating, rank: int, seed: int, score: Callable[[Factors], float], strengths: Array
) -> Iterator[tuple[float, Factors]]:
    """Score and state for one strength after the other, until the score has not improved for some points."""
    state = problem.begin(rank, seed)
    best, since = -np.inf, 0
    with single_blas():
        for strength in strengths.tolist():
            for _ in range(SWEEPS):
                state = problem.sweep(alive(state, seed), strength)
            now = score(state)
            best, since = max(best, now), 0 if now > best else since + 1
            yield now, state
            if since >= PATIENCE:
                return


def choose_strength(
    problem: Alternating,
    rank: int,
    seed: int,
    score: Callable[[Factors], float],
    time_limit: float | None = None,
) -> tuple[float, Factors]:
    """The strength with the best score, and the state there, from the strongest penalty down."""
    begun, strengths = time.monotonic(), strengths_of(problem)
    best = None
    for strength, (now, state) in zip(strengths.tolist(), along(problem, rank, seed, score, strengths), strict=False):
        best = (now, strength, state) if best is None or now > best[0] else best
        if time_limit is not None and time.monotonic() - begun > 0.5 * time_limit:
            break
    assert best is not None
    return best[1], best[2]


def alive(state: Factors, seed: int) -> Factors:
    """The state with columns that a strong penalty has emptied made small and random again."""
    dead = state.sigma <= 1e-3 * max(float(state.sigma[0]), 1e-300)
    if not dead.any():
        return state
    rng, right = np.random.default_rng(seed), state.right.copy()
    size = 0.03 * max(float(np.abs(right).max()), 0.1)
    right[:, dead] = size * rng.standard_normal((len(right), int(dead.sum())))
    return replace(state, right=right)
