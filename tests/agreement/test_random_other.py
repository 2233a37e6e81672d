"""Random problems that are not convex: answers are feasible, searches descend, and the gap is what it says it is."""

from __future__ import annotations

import numpy as np
import pytest
from agreement.methods import draw_method
from agreement.problems import Problem, other_problem
from agreement.support import support, value_and_gradient

from projfree import (
    Backtracking,
    BacktrackingGradient,
    ExactLineSearch,
    FrankWolfe,
    InverseSmoothness,
    ProjectedGradient,
    Result,
    ShortStep,
    Status,
    minimize,
)
from projfree.solvers import Solver

FAST, ALL = range(48), range(192)
TOL = 1e-4
SEARCHES = ExactLineSearch | Backtracking | ShortStep


def descends(solver: Solver) -> bool:
    """Whether the solver promises that values never increase."""
    if isinstance(solver, FrankWolfe):
        return isinstance(solver.step_rule, SEARCHES)
    return isinstance(solver, ProjectedGradient) and isinstance(
        solver.step_rule, InverseSmoothness | BacktrackingGradient
    )


def judge(problem: Problem, result: Result) -> None:
    assert result.bound is None
    assert problem.ball.contains(result.w)
    b = 0.0 if result.intercept is None else result.intercept
    value, gradient, slope = value_and_gradient(problem.loss, problem.table, result.w, b)
    size = abs(float(np.vdot(gradient, result.w))) + support(problem.ball, np.abs(gradient))
    gap = float(np.vdot(gradient, result.w)) + support(problem.ball, -gradient)
    assert result.value == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert result.gap == pytest.approx(gap, rel=1e-6, abs=1e-9 * size + 1e-13)
    if problem.intercept:
        assert np.abs(slope).max() <= 1e-3  # of a loss of order one: near a local minimum in the intercept
    if result.status is Status.STATIONARY:
        assert result.relative_gap <= TOL
    assert result.status is not Status.CONVERGED


def check(problem: Problem, iterations: int) -> None:
    solver = draw_method(problem)
    most = iterations // 10 if problem.ball.structure(problem.f.shape).projection != "fast" else iterations
    result = minimize(problem.f, problem.ball, solver, tol=TOL, max_iter=most, seed=problem.seed)
    judge(problem, result)
    assert result.certificate.verify(objective=problem.f).ok
    searched = minimize(problem.f.reported, problem.ball, FrankWolfe(), tol=TOL, max_iter=iterations, start=result.w)
    judge(problem, searched)
    if not problem.intercept:  # a start holds no intercept, and the search for one may end elsewhere
        assert searched.value <= result.value * (1.0 + 1e-12) + 1e-15
    for run in (searched, *([result] if descends(solver) and problem.form != "perturbed" else [])):
        values = run.trace["value"]
        values = values[np.isfinite(values)]
        assert np.all(np.diff(values) <= 1e-12 * np.abs(values[1:]) + 1e-15)


@pytest.mark.parametrize("seed", FAST)
def test_gaps_are_true_and_searches_descend(seed: int) -> None:
    check(other_problem(seed), iterations=30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ALL[len(FAST) :])
def test_gaps_are_true_and_searches_descend_on_more(seed: int) -> None:
    check(other_problem(seed), iterations=200)
