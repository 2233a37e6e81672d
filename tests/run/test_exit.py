"""What a run says at its end: where it stood still, which iterate was most stationary, and that its point is inside."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.catalogue import problem

from projfree import (
    AcceleratedProjectedGradient,
    Box,
    Entries,
    FrankWolfe,
    Gamma,
    LpBall,
    Objective,
    ProjectedGradient,
    SchattenBall,
    Squared,
    Status,
    WorkingSet,
    as_data,
    minimize,
)
from projfree.algebra import Point
from projfree.run.certificate import recomputed
from projfree.sets import NormBall

BALL = LpBall(1.5, 1.0)


@pytest.mark.parametrize("method", [AcceleratedProjectedGradient(), ProjectedGradient()], ids=repr)
@pytest.mark.parametrize("case", ["squares", "squares, intercept", "logistic"])
def test_precision_is_reached_only_at_the_allowance(case, method):
    """The gap is the allowance plus the Frank-Wolfe gap, which rounding may put below zero within the allowance."""
    f = problem(case)
    result = minimize(f, BALL, method, tol=0.0)
    assert result.status is Status.PRECISION
    for gap, w in ((result.gap, result.w), (result.certificate.gap, result.certificate.witness)):
        allowance = f.evaluate(f.point(w)).slope.minimum(BALL)[1]
        assert abs(gap - allowance) <= allowance * (1.0 + 1e-6)


@pytest.mark.parametrize("beyond", [1.5, 1.37, 1.21, 1.01, 1.0 + 1e-9, 1.0 + 1e-15])
def test_a_point_in_factors_that_was_let_out_is_scaled_back(beyond):
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(rng.choice(108, 60, replace=False), 9)
    f = Objective(Squared(), as_data(Entries(rows, cols, (12, 9), factored=True), rng.standard_normal(60)))
    ball = SchattenBall(1.2, 2.0)
    assert isinstance(ball, NormBall)

    def let_out(run):
        w = run.best.w
        run.best, run.value = f.point(w * (beyond * ball.radius / ball.norm(w))), -1.0
        return True

    result = minimize(f, ball, FrankWolfe(), callbacks=[let_out])
    assert ball.norm(result.w) <= ball.radius
    assert ball.norm(result.w) == pytest.approx(ball.radius, rel=1e-12)
    assert result.value == pytest.approx(f(f.point(result.w)), rel=1e-12)
    assert result.certificate.verify(objective=f).ok


@pytest.mark.parametrize("case", ["squares", "logistic, intercept", "biweight", "form", "calls", "perturbed"])
def test_what_is_checked_at_the_end_is_read_anew(case):
    """Neither run knows of the other: both count the same reads, and nothing is counted on the user's function."""
    f = problem(case)
    before, first = f.passes, minimize(f, BALL, FrankWolfe(), max_iter=5, tol=0.0)
    again = minimize(f, BALL, FrankWolfe(), max_iter=5, tol=0.0)
    assert f.passes == before
    assert again.n_passes == first.n_passes > first.trace["passes"][-1]


@pytest.mark.parametrize("view", [False, True])
def test_a_point_of_an_array_that_was_written_to_since_is_read_anew(view):
    f = problem("squares").open()
    buffer = np.full(f.shape, 0.1)
    w = buffer[:] if view else buffer
    w.flags.writeable = not view
    found = f.evaluate(Point(w))
    buffer *= 2.0
    assert recomputed(f, found.point) is None
    own = f.evaluate(f.point(buffer)).point
    assert recomputed(f, own) is not None
    own.w.flags.writeable = True
    assert recomputed(f, own) is None


def test_a_point_that_a_callback_puts_in_the_place_of_the_answer_is_read():
    f, ball = problem("squares"), LpBall(1.0, 1.0)

    def exchange(run):
        run.best, run.value = f.point(0.5 * run.best.w), -1.0
        return True

    result = minimize(f, ball, WorkingSet(), callbacks=[exchange])
    assert result.value == f(f.point(result.w)) > 0.0


def test_a_value_beyond_all_numbers_is_no_convergence():
    """An infinite gap is not within a part of an infinite value."""
    f = Objective(Gamma(), as_data(np.array([[1e60], [-1e60]]), np.ones(2)), fit_intercept=True)
    result = minimize(f, Box(0.5, 1.0), FrankWolfe(), max_iter=20)
    assert result.value == np.inf
    assert not result.status.converged
