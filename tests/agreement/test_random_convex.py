"""Random convex problems: no bound is refuted, no answer is outside, no claim of convergence is false."""

from __future__ import annotations

import math

import pytest
from agreement.judge import judge, lowest
from agreement.methods import PROJECTING, PROJECTING_SAMPLED, draw_method
from agreement.problems import Problem, convex_problem, more_problem
from agreement.referee import referee

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    BlackBox,
    CorrectivePrimalAveraging,
    FrankWolfe,
    Perturbed,
    Result,
    SchattenBall,
    minimize,
)
from projfree.solvers import Solver

FAST, ALL = range(264), range(912)
TOL = 1e-6


def polished(problem: Problem, result: Result, iterations: int) -> Result:
    """Another method from where the first one ended: its point may refute the first, and is judged as well."""
    f, ball = problem.f.f if isinstance(problem.f, Perturbed) else problem.f, problem.ball
    solver: Solver = FrankWolfe() if isinstance(f, BlackBox) else CorrectivePrimalAveraging()
    if ball.structure(f.shape).projection == "fast":
        smooth = math.isfinite(problem.loss.smoothness)
        solver = AcceleratedProjectedGradient() if smooth else AcceleratedProjectedGradient(BacktrackingGradient())
    return minimize(f, ball, solver, start=result.w, tol=1e-13, max_iter=iterations)


def check(problem: Problem, iterations: int) -> None:
    solver = draw_method(problem)
    most = (
        iterations // 10
        if problem.ball.structure(problem.f.shape).projection != "fast" and solver in (*PROJECTING, *PROJECTING_SAMPLED)
        else iterations
    )
    result = minimize(problem.f, problem.ball, solver, tol=TOL, max_iter=most, seed=problem.seed)
    other = polished(problem, result, iterations)
    answer = referee(problem)
    if problem.table.condition == "plain" and not isinstance(problem.ball, SchattenBall):
        assert answer is not None, "the referee gave up on an easy problem"
    least = lowest(problem, [result.w, other.w, *([] if answer is None else [answer])])
    judge(problem, result, least, TOL)
    judge(problem, other, least, 1e-13)


@pytest.mark.parametrize("seed", FAST)
def test_bounds_hold_and_claims_are_true(seed: int) -> None:
    check(convex_problem(seed), iterations=40)


@pytest.mark.parametrize("seed", range(48))
def test_bounds_of_more_losses_hold(seed: int) -> None:
    check(more_problem(seed), iterations=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(48, 384))
def test_bounds_of_more_losses_hold_on_more(seed: int) -> None:
    check(more_problem(seed), iterations=300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ALL[len(FAST) :])
def test_bounds_hold_and_claims_are_true_on_more(seed: int) -> None:
    check(convex_problem(seed), iterations=300)
