"""The choice of the radius: a warm-started path of penalties, judged on held-out ratings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from projfree.estimators.alternating import Alternating, Factors, strongest
from projfree.runtime import single_blas

#: The path: strengths fall by this factor from this part of the strongest, with so many sweeps each.
FIRST, FACTOR, SWEEPS, POINTS = 0.9, 0.8, 4, 30
#: It ends when the score has not improved for so many points.
PATIENCE = 2


def choose_strength(
    problem: Alternating,
    rank: int,
    seed: int,
    score: Callable[[Factors], float],
    time_limit: float | None = None,
) -> tuple[float, Factors]:
    """The strength with the best score, and the state there, from the strongest penalty down."""
    strength, begun = FIRST * strongest(problem), time.monotonic()
    state = problem.begin(rank, seed)
    best = (-np.inf, strength, state)
    since = 0
    with single_blas():
        for _ in range(POINTS):
            for _ in range(SWEEPS):
                state = problem.sweep(alive(state, seed), strength)
            now = score(state)
            since = 0 if now > best[0] else since + 1
            best = (now, strength, state) if now > best[0] else best
            if since >= PATIENCE or (time_limit is not None and time.monotonic() - begun > 0.5 * time_limit):
                break
            strength *= FACTOR
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
