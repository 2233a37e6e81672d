"""Clocks, the paper's rule, and slopes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from projfree.run import Run
from projfree.sets import LpBall
from projfree.solvers import FrankWolfe, PrimalAveraging
from projfree.steps import OpenLoop
from reproduction.measure import Curve, follow, slope
from reproduction.problems import LeastSquares, certified
from reproduction.sources import Sample


def curve(values):
    t = np.arange(1, len(values) + 1)
    return Curve(t, 0.1 * t, t.astype(float), np.array(values, dtype=float))


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    return LeastSquares(Sample(X, X @ np.arange(5.0) + rng.standard_normal(200), "made up"))


@pytest.mark.parametrize("power", [-1.0, -2.0, -3.5])
def test_the_slope_of_a_power_law(power):
    t = np.arange(1, 1001)
    assert slope(t, 7.0 * t**power, 10, 1000) == pytest.approx(power, abs=1e-9)


def test_a_slope_needs_five_places_above_the_floor():
    t = np.arange(1, 101)
    assert math.isnan(slope(t, t**-2.0, 97, 100))
    assert math.isnan(slope(t, t**-2.0, 1, 100, floor=1e-3))
    assert slope(t, t**-2.0, 1, 30, floor=1e-3) == pytest.approx(-2)


def test_convergence_needs_both_clauses():
    """Near the minimum but still moving, then still but far, then both."""
    values = [101.0, 150.0, 150.5, 103.0, 101.5, 101.4]
    assert curve(values).converged(100.0, 200.0) == 4
    assert curve([150.0, 150.0]).converged(100.0, 200.0) is None


def test_with_a_minimum_of_zero_the_scale_takes_its_place():
    assert curve([50.0, 3.0, 1.5, 1.0]).converged(0.0, 100.0) is None
    assert curve([50.0, 3.0, 1.5, 1.0]).converged(0.0, 100.0, 100.0) == 2


def test_measuring_does_not_touch_the_run(problem):
    """Passes are those of the solver, whatever is measured."""
    ball = problem.ball(2, 0.5)
    a = follow(problem.objective(), ball, PrimalAveraging(), lambda s: problem.value(s.x.w), most=20)
    b = follow(problem.objective(), ball, PrimalAveraging(), lambda s: 0.0, most=20)
    assert a.passes[-1] == b.passes[-1] == 20
    assert np.all(np.diff(a.seconds) > 0)


def test_thinned_measurements_keep_the_last_iteration(problem):
    found = follow(
        problem.objective(), problem.ball(2, 0.5), FrankWolfe(OpenLoop()), lambda s: 1.0, most=300, growth=1.5
    )
    assert found.t[0] == 1
    assert found.t[-1] == 300
    assert len(found.t) < 30


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.99, 1.0, 2.0])
def test_minima_over_the_euclidean_ball_are_exact(problem, rho):
    best = problem.minimum(problem.ball(2, rho))
    assert np.linalg.norm(best.w) <= problem.ball(2, rho).radius * (1 + 1e-12)
    assert best.gap <= 1e-10 * best.value
    assert problem.value(best.w) == pytest.approx(best.value, rel=1e-10)


def test_minima_over_other_balls_are_certified(problem):
    best = problem.minimum(problem.ball(1.1, 0.5))
    assert 0 <= best.gap <= 1e-8 * best.value


def test_a_minimum_is_never_half_found(problem, monkeypatch):
    monkeypatch.setattr(Run, "advance", lambda run: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        certified(problem.objective(), LpBall(1.5, 1.0), 1e-6, 10)


def test_errors_agree_with_differences(problem):
    best = problem.minimum(LpBall(2, 1.0))
    w = best.w + 0.1
    assert problem.error(w, best) == pytest.approx(problem.value(w) - best.value, rel=1e-9)
