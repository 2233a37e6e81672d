"""Every way in which a run ends, and that it says so in a sentence."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from solvers.catalogue import problem

from projfree import (
    AcceleratedProjectedGradient,
    Backtracking,
    BlackBox,
    FrankWolfe,
    LpBall,
    Objective,
    OpenLoop,
    PrimalAveraging,
    Quantile,
    Status,
    as_data,
    minimize,
)
from projfree.deadline import Expired

BALL = LpBall(1.5, 1.0)


def converged():
    return minimize(problem("squares"), BALL, tol=1e-6)


def stationary():
    return minimize(problem("biweight"), BALL, tol=1e-3)


def precision():
    return minimize(problem("squares"), BALL, AcceleratedProjectedGradient(), tol=0.0)


def max_iter():
    return minimize(problem("squares"), BALL, PrimalAveraging(), max_iter=3, tol=0.0)


def time_limit():
    def slow(w):
        time.sleep(0.005)
        return float(w @ w), 2 * w

    return minimize(
        BlackBox(slow, 3, convex=True), BALL, FrankWolfe(OpenLoop()), start=np.full(3, 0.2), tol=0.0, time_limit=0.03
    )


def callback():
    return minimize(problem("squares"), BALL, PrimalAveraging(), callbacks=[lambda run: run.iteration == 4])


def interrupted():
    def stop(run):
        if run.iteration == 4:
            raise KeyboardInterrupt

    return minimize(problem("squares"), BALL, PrimalAveraging(), callbacks=[stop])


def smoothed():
    rng = np.random.default_rng(0)
    f = Objective(Quantile(0.5, delta=1.0), as_data(rng.standard_normal((20, 2)), rng.standard_normal(20)))
    return minimize(f, BALL, tol=1e-9)


def stalled():
    uphill = BlackBox(lambda w: (float(w @ w), -2.0 * w), (2,), convex=False)
    return minimize(uphill, BALL, FrankWolfe(Backtracking()), start=np.array([0.1, 0.2]), max_iter=5)


def not_convex():
    return minimize(BlackBox(lambda w: (-float(w @ w), -2.0 * w), 2, convex=True), BALL, start=np.array([0.1, 0.2]))


def not_finite():
    return minimize(steep(), LpBall(1.5, 1.0), PrimalAveraging())


def steep(finite=0.2):
    """A convex function that is not finite further away from zero than so much."""

    def fun(w):
        far = np.linalg.norm(w) > finite
        return (math.inf, np.full(2, math.nan)) if far else (float(w @ w + w.sum()), 2.0 * w + 1.0)

    return BlackBox(fun, 2, convex=True)


ENDS = (
    not_convex,
    not_finite,
    converged,
    stationary,
    precision,
    smoothed,
    stalled,
    max_iter,
    time_limit,
    callback,
    interrupted,
)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_reached(end):
    result = end()
    assert result.status is Status[end.__name__.upper()]
    assert BALL.contains(result.w)
    assert np.isfinite([result.value, result.gap, result.n_passes]).all()
    assert result.bound is None or result.bound <= result.value
    assert str(result.status) in repr(result)


def test_every_status_is_tested():
    assert {end.__name__.upper() for end in ENDS} == set(Status.__members__)


def test_sentences():
    for status in Status:
        assert str(status) == status.value
        assert len(status.value.split()) >= 4
    assert len({status.value for status in Status}) == len(Status)
    assert [s.name for s in Status if s.converged] == ["CONVERGED", "STATIONARY"]


def test_stationary_speaks_of_the_returned_point():
    f = problem("sigmoid, intercept")
    result = minimize(f, BALL, tol=1e-4)
    assert result.status is Status.STATIONARY
    m = f.evaluate(f.point(result.w, result.intercept)).slope
    gap = np.vdot(m.gradient, result.w) + BALL.support(m.gradient)
    assert gap <= 1e-4 * result.value * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["auto", FrankWolfe(OpenLoop()), FrankWolfe(), PrimalAveraging()], ids=repr)
def test_a_function_that_overflows_returns_the_best_point_before(solver, caplog):
    """The answer has a finite value, a bound, and a certificate that holds."""
    f = steep()
    result = minimize(f, BALL, solver, start=np.array([0.1, 0.1]))
    assert result.status is Status.NOT_FINITE
    assert "not finite in the iteration after `n_iter`" in str(result.status)
    assert f"iteration {result.n_iter + 1}: `fun(w)` must return a finite value" in caplog.text
    assert result.value <= f(f.point([0.1, 0.1]))
    assert -math.inf < result.bound <= result.value
    assert result.certificate.verify(objective=f).ok


def test_an_overflow_at_the_last_iterate_alone_keeps_the_best_point():
    result = minimize(steep(), BALL, PrimalAveraging(), max_iter=1)
    assert result.status is Status.NOT_FINITE
    assert result.n_iter == 1
    assert result.value == 0.0


def test_a_function_that_is_not_finite_at_the_start_is_refused():
    with pytest.raises(ValueError, match=r"`fun\(w\)` must return a finite value .* got inf"):
        minimize(steep(), BALL, start=np.array([0.5, 0.0]))


def test_the_centre_need_not_have_a_finite_value():
    """It only sets the scale of gaps; here it lies on a barrier."""

    def fun(w):
        with np.errstate(divide="ignore"):
            return float(np.sum(1.0 / w)), -1.0 / w**2

    result = minimize(BlackBox(fun, 2, convex=True), BALL, start=np.array([0.3, 0.3]), tol=1e-4)
    assert result.status is Status.CONVERGED


def test_precision_is_the_limit():
    """The gap left over is rounding: relative 1e-10 at the very most on a problem of this size."""
    result = precision()
    assert 0.0 <= result.relative_gap <= 1e-10
    assert not result.status.converged


@pytest.mark.parametrize(
    ("stop", "status"), [(Expired, Status.TIME_LIMIT), (KeyboardInterrupt, Status.INTERRUPTED)], ids=["time", "Ctrl-C"]
)
def test_a_stop_while_the_start_is_certified(stop, status):
    calls = []

    def function(w):
        calls.append(w)
        if len(calls) == 1:
            raise stop
        return float(w @ w), 2.0 * w

    result = minimize(BlackBox(function, 3, convex=True), BALL, FrankWolfe(), start=np.full(3, 0.2), check_start=True)
    assert result.status is status
    assert result.n_iter == 0
    assert result.bound <= 0.0 <= result.value


def test_a_time_limit_before_the_first_iteration_still_answers():
    result = minimize(problem("squares"), BALL, PrimalAveraging(), time_limit=1e-300)
    assert result.status is Status.TIME_LIMIT
    assert result.n_iter == 0
    assert result.bound <= result.value
    assert len(result.trace) == 0
