"""What a run says at its end: where it stood still, which iterate was most stationary, and that its point is inside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
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
    Quantile,
    SchattenBall,
    Squared,
    Status,
    WorkingSet,
    as_data,
    minimize,
)
from projfree.algebra import Point
from projfree.objectives import erm
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


def test_only_an_image_that_was_formed_for_the_evaluation_counts_as_recomputed():
    rng = np.random.default_rng(3)
    X = sp.random_array((40, 6), density=0.5, rng=rng, format="csr")  # images of sparse tables are kept
    f = Objective(Squared(), as_data(X, rng.standard_normal(40))).open()
    x, y = f.point(rng.standard_normal(6)), f.point(rng.standard_normal(6))
    assert recomputed(f, x) is None
    found = f.evaluate(x)
    assert recomputed(f, x) is recomputed(f, found.point) is found
    f(f.point(np.zeros(6)))
    assert recomputed(f, x) is found  # whatever else was asked for since
    f.evaluate(y, tangent=False)
    assert recomputed(f, y) is None  # a value alone
    f.evaluate(y)
    assert recomputed(f, y) is None  # its image was held before
    mixture = 0.5 * x + 0.5 * y
    f.evaluate(mixture)
    assert recomputed(f, mixture) is None
    assert recomputed(f, f.point(x.w)) is None  # another handle
    assert recomputed(f.open(), x) is None


def test_a_function_that_says_more_about_points_is_read_anew():
    """What is remembered of a smoothed loss, or of a class of the user's, is not what the function says."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(60)
    exact = Objective(Quantile(0.5, delta=1.0), as_data(X, y)).reported
    result = minimize(exact, LpBall(1, 1.0), WorkingSet(), max_iter=1)
    assert result.value == pytest.approx(np.mean(np.maximum(0.5 * (y - X @ result.w), 0.5 * (X @ result.w - y))))
    assert not result.status.converged

    class Raised(Objective):
        def evaluate(self, x, also=(), *, tangent=True, read=True, keep=False, near=False):
            found = super().evaluate(x, also, tangent=tangent, read=read, keep=keep)
            return replace(found, value=found.value + 1.0)

    raised = Raised(Squared(), as_data(X, y))
    result = minimize(raised, LpBall(1, 1.0), WorkingSet(), max_iter=3)
    assert result.value == pytest.approx(np.mean((X @ result.w - y) ** 2) + 1.0)


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


def test_a_search_for_the_intercept_that_a_deadline_cut_short_is_no_recomputation(monkeypatch):
    f = problem("logistic, intercept").open()
    x = f.point(np.full(f.shape, 0.1))
    monkeypatch.setattr(erm, "expired", lambda: True)
    assert f.evaluate(x).tangent is not None
    assert recomputed(f, x) is None


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
