"""What a run returns: its numbers belong together, and people like to read it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from solvers.catalogue import CONVEX, SAMPLED, SOLVERS, X, Y, counted, pairs, problem, solver

from projfree import (
    FrankWolfe,
    LpBall,
    Objective,
    OpenLoop,
    QuadraticForm,
    Simplex,
    Squared,
    Status,
    as_data,
    minimize,
)
from projfree.objectives.base import Evaluation

BALL = LpBall(1.5, 1.0)


@pytest.mark.parametrize(("name", "case"), pairs(("PA", "FW, open loop", "PG", "PA, growing"), CONVEX))
def test_relative_gap_is_relative_to_the_value_or_a_part_of_the_centre(name, case):
    f = problem(case)
    result = minimize(f, BALL, solver(name), max_iter=6, start=np.full(f.shape, 0.05))
    centre = f.reported(f.reported.point(np.zeros(f.shape)))
    assert result.relative_gap == result.gap / max(abs(result.value), 1e-6 * abs(centre))


@pytest.mark.parametrize("radius", [0.3, 0.9])
def test_a_minimiser_also_minimises_the_objective_with_the_penalty(radius):
    """Where the gradient of the objective and that of the multiplier times the norm cancel."""
    b = np.array([3.0, -4.0, 1.0])
    result = minimize(QuadraticForm(np.diag([1.0, 2.0, 3.0]), b), LpBall(2, radius=radius), tol=1e-12)
    gradient, w = np.diag([1.0, 2.0, 3.0]) @ result.w - b, result.w
    np.testing.assert_allclose(gradient + result.multiplier * w / np.linalg.norm(w), 0.0, atol=1e-5)


@pytest.mark.parametrize("name", ["FISTA", "FW, exact"])
def test_an_optimum_of_zero_is_reached(name):
    """Relative to the value alone no gap would ever be small enough."""
    inside = np.array([0.1, -0.2, 0.1, 0.05])
    f = Objective(Squared(), as_data(X, X @ inside))
    result, scale = minimize(f, BALL, solver(name), tol=0.3), 1e-6 * np.mean((X @ inside) ** 2)
    assert result.status is Status.CONVERGED
    assert result.value < scale
    assert result.relative_gap == pytest.approx(result.gap / scale)
    assert result.relative_gap <= 0.3


def test_an_optimum_of_zero_at_the_centre():
    result = minimize(QuadraticForm(np.eye(2), np.zeros(2)), BALL, tol=1e-12)
    assert result.status in (Status.CONVERGED, Status.PRECISION), "there is nothing that a gap could be relative to"
    assert result.value == 0.0
    assert result.gap <= 1e-14
    assert result.n_iter == 1


def test_the_last_look_may_show_that_the_tolerance_was_met():
    """A limit that is reached in the iteration that converges does not hide it."""
    needed = minimize(problem("squares"), BALL, FrankWolfe(), tol=1e-3).n_iter
    for limit in range(1, needed + 2):
        result = minimize(problem("squares"), BALL, FrankWolfe(), tol=1e-3, max_iter=limit)
        assert result.status.converged == (result.relative_gap <= 1e-3)


def test_a_negative_optimum():
    result = minimize(QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(2, 1.0), tol=1e-9)
    assert result.value == pytest.approx(-4.5, rel=1e-9)
    assert result.relative_gap == result.gap / 4.5 or result.relative_gap == result.gap / abs(result.value)
    assert -4.5 * (1 + 1e-8) <= result.bound <= -4.5


@pytest.mark.parametrize("name", SOLVERS | SAMPLED)
def test_fields_belong_together(name):
    f, passes = counted(problem("logistic, intercept"))
    result = minimize(f, BALL, solver(name), max_iter=9, tol=0.0)
    assert result.gap == result.value - result.bound
    assert result.status.converged == (result.relative_gap <= 0.0)
    assert result.n_iter == result.state.t == result.trace["iteration"][-1]
    assert result.n_passes == passes()
    assert result.seconds > 0
    assert result.solver is solver(name)
    assert np.shape(result.intercept) == ()
    found = f.evaluate(f.point(result.w, result.intercept), tangent=False)
    assert found.value == pytest.approx(result.value, rel=1e-12)
    assert float(found.intercept) == pytest.approx(float(result.intercept), abs=1e-9)
    assert result.certificate.value == result.value
    assert result.certificate.bound <= result.bound


def test_the_best_point_is_returned_not_the_last():
    """Open-loop steps go up at times; the answer does not."""
    ups = 0
    for limit in range(2, 10):
        f = problem("squares")
        result = minimize(f, LpBall(1.5, 4.0), FrankWolfe(OpenLoop()), max_iter=limit, tol=0.0)
        last, best = f(result.state.x), np.nanmin(result.trace["value"])
        ups += last > best * (1 + 1e-9)
        assert result.value <= min(last, best, f(f.point(np.zeros(4)))) * (1 + 1e-14)
    assert ups > 0


@pytest.mark.parametrize("case", ["squares", "logistic, intercept", "biweight"])
def test_nothing_but_the_point_is_trusted_at_the_end(case):
    """Images may drift in a long run; the answer is recomputed from the data."""

    def spoil(run):
        # What the run remembers about its best point: the image and the value.
        for image in run.opened.workspace._images.values():
            image[...] = 1e-3
        run.opened._memory.keep(Evaluation(run.best, 1e-9))
        run.value = 1e-9

    f = problem(case)
    result = minimize(f, BALL, FrankWolfe(OpenLoop()), max_iter=4, tol=0.0, callbacks=[spoil])
    assert result.value == pytest.approx(f(f.point(result.w)), rel=1e-9)
    assert result.value > 1e-3


def test_sets_whose_centre_is_not_zero():
    f = QuadraticForm(2 * np.eye(5), np.zeros(5))
    result = minimize(f, Simplex(), tol=1e-9)
    assert result.value == pytest.approx(1 / 5, rel=1e-9)
    assert result.relative_gap == result.gap / result.value


def test_the_answer_is_a_copy():
    result = minimize(problem("squares"), BALL, max_iter=3)
    result.w[:] = math.nan
    assert np.isfinite(result.state.x.w).all()
    assert result.certificate.verify(X, Y).ok
