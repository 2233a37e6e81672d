"""Every way in which a run ends, and that it says so in a sentence."""

from __future__ import annotations

import time
from dataclasses import replace

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
from projfree.data.base import RowsLostError

BALL = LpBall(1.5, 1.0)


class Crowded(FrankWolfe):
    """A solver for which the problem is too large after three iterations."""

    def step(self, f, ball, state):
        new = super().step(f, ball, state)
        return replace(new, too_large=new.t == 3)


def converged():
    return minimize(problem("squares"), BALL, tol=1e-6)


def stationary():
    return minimize(problem("biweight"), BALL, tol=1e-3)


def precision():
    return minimize(problem("squares"), BALL, AcceleratedProjectedGradient(), tol=0.0)


def too_large():
    return minimize(problem("squares"), LpBall(1, 1.0), Crowded(), tol=0.0)


def max_iter():
    return minimize(problem("squares"), BALL, PrimalAveraging(), max_iter=3, tol=0.0)


def time_limit():
    def slow(w):
        time.sleep(0.005)
        return float(w @ w), 2 * w

    return minimize(BlackBox(slow, 3), BALL, FrankWolfe(OpenLoop()), start=np.full(3, 0.2), tol=0.0, time_limit=0.03)


def callback():
    return minimize(problem("squares"), BALL, PrimalAveraging(), callbacks=[lambda run: run.iteration == 4])


def interrupted():
    def stop(run):
        if run.iteration == 4:
            raise KeyboardInterrupt

    return minimize(problem("squares"), BALL, PrimalAveraging(), callbacks=[stop])


def rows_lost():
    def lose(run):
        if run.iteration == 4:
            raise RowsLostError("the rows are out of reach")

    return minimize(problem("squares"), BALL, PrimalAveraging(), callbacks=[lose])


def smoothed():
    rng = np.random.default_rng(0)
    f = Objective(Quantile(0.5, delta=1.0), as_data(rng.standard_normal((20, 2)), rng.standard_normal(20)))
    return minimize(f, BALL, tol=1e-9)


def stalled():
    uphill = BlackBox(lambda w: (float(w @ w), -2.0 * w), (2,), convex=False)
    return minimize(uphill, BALL, FrankWolfe(Backtracking()), start=np.array([0.1, 0.2]), max_iter=5)


ENDS = (
    converged,
    stationary,
    precision,
    smoothed,
    stalled,
    too_large,
    max_iter,
    time_limit,
    rows_lost,
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


def test_converged_means_converged():
    for tol in (1e-2, 1e-4, 1e-7):
        result = minimize(problem("logistic, intercept"), BALL, tol=tol)
        assert result.status is Status.CONVERGED
        assert result.relative_gap <= tol
        assert result.certificate.gap <= tol * abs(result.value)


def test_stationary_speaks_of_the_returned_point():
    f = problem("sigmoid, intercept")
    result = minimize(f, BALL, tol=1e-4)
    assert result.status is Status.STATIONARY
    m = f.minorant(f.point(result.w, result.intercept))
    gap = np.vdot(m.gradient, result.w) + BALL.support(m.gradient)
    assert gap <= 1e-4 * result.value * (1 + 1e-6)


def test_precision_is_the_limit():
    """The gap left over is rounding: relative 1e-10 at the very most on a problem of this size."""
    result = precision()
    assert 0.0 <= result.relative_gap <= 1e-10
    assert not result.status.converged


def test_time_limit_and_iterations():
    result = time_limit()
    assert 1 <= result.n_iter < 1000
    assert max_iter().n_iter == 3
    assert callback().n_iter == 4


def test_a_time_limit_before_the_first_iteration_still_answers():
    result = minimize(problem("squares"), BALL, PrimalAveraging(), time_limit=1e-300)
    assert result.status is Status.TIME_LIMIT
    assert result.n_iter == 0
    assert result.bound <= result.value
    assert len(result.trace) == 0
