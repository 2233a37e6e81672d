"""Minima of functions that are not convex: the best of many starts, labelled "best found"."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.sets import LpBall, random_point
from projfree.solvers import FrankWolfe
from projfree.solvers.base import Solver
from projfree.steps import ExactLineSearch
from reproduction.measure import Curve, follow
from reproduction.problems import Fit, Minimum

STARTS = 20
#: Iterations from each start before the best of them are chosen.
FIRST = 4


def line_search_run(
    f: SmoothFunction, ball: LpBall, most: int, start: Array | None = None, solver: Solver | None = None
) -> tuple[Curve, Array, Any]:
    """Frank-Wolfe, by default with an exact line search: values, the Frank-Wolfe gap before each step, the last state.

    On h = f + theta <xi, w> the values and gaps are those of h.
    """
    gaps, last = list[float](), list[Any]()

    def measure(state: Any) -> float:
        gaps.append(float(state.gap))
        last[:] = [state]
        return f(state.x)

    curve = follow(f, ball, solver or FrankWolfe(ExactLineSearch()), measure, most=most, start=start)
    return curve, np.array(gaps), last[0]


def best_found(problem: Fit, ball: LpBall, most: int, finalists: int = 2) -> Minimum:
    """Twenty random starts for a few iterations each, then the best of them to the end.

    ``gap`` is the Frank-Wolfe gap at the point found, a measure of stationarity and no bound.
    """
    f, found = problem.reference, list[tuple[float, int, Any]]()
    for seed in range(STARTS):
        start = random_point(ball, f.shape, np.random.default_rng(seed))
        curve, _, state = line_search_run(f, ball, FIRST, start)
        found.append((float(curve.value[-1]), seed, state))
    best: Minimum | None = None
    for _, _, state in sorted(found, key=lambda entry: entry[:2])[:finalists]:
        curve, gaps, end = line_search_run(f, ball, most, state.x.w)
        if best is None or curve.value[-1] < best.value:
            best = Minimum(end.x.w, float(curve.value[-1]), float(gaps[-1]), "best found")
    assert best is not None
    return best
