"""The choice of the radius: a warm-started path of penalties, judged on held-out ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.problem import Problem
from projfree.run import Status
from projfree.solvers.alternating import AlternatingState

#: The path: strengths fall by this factor from this part of the strongest, with so many sweeps each.
FIRST, FACTOR, SWEEPS, POINTS = 0.9, 0.8, 4, 30
#: It ends when the score has not improved for so many points.
PATIENCE = 2


def strengths_of(problem: Problem, points: int = POINTS) -> Array:
    """The strengths of a path, from strong to weak."""
    return np.asarray(FIRST * problem.strongest() * FACTOR ** np.arange(points))


def along(
    problem: Problem,
    rank: int,
    seed: int,
    score: Callable[[Factors], float],
    strengths: Array,
    callbacks: Sequence[Any] = (),
) -> Iterator[tuple[float, AlternatingState]]:
    """Score and state for one strength after the other, until the score has not improved for some points."""
    state: AlternatingState | None = None
    best, since = -np.inf, 0
    for strength in strengths.tolist():
        state, status = problem.penalised(rank, strength, state, seed=seed, max_iter=SWEEPS, callbacks=callbacks)
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        now = score(Factors.of(problem.f, state))
        best, since = max(best, now), 0 if now > best else since + 1
        yield now, state
        if since >= PATIENCE or expired():
            return


def choose_strength(
    problem: Problem, rank: int, seed: int, score: Callable[[Factors], float], callbacks: Sequence[Any] = ()
) -> tuple[float, AlternatingState]:
    """The strength with the best score, and the state there, from the strongest penalty down."""
    strengths = strengths_of(problem)
    points = zip(strengths.tolist(), along(problem, rank, seed, score, strengths, callbacks), strict=False)
    strength, (_, state) = max(points, key=lambda point: point[1][0])
    return strength, state
