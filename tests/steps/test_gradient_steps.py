"""Steps of projected gradient methods: their lengths, their promises, and what they remember."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    Huber,
    InverseSmoothness,
    InverseSqrt,
    Logistic,
    LpBall,
    Objective,
    ProjectedGradient,
    Simplex,
    Squared,
    as_data,
    minimize,
)
from projfree.algebra import UNIT
from projfree.objectives.rounding import is_rounding

BALL = LpBall(2, 1.0)


def take(rule, s, t=1, memory=math.nan, project=BALL.project):
    return rule(s.f, s.f.evaluate(s.x), project, t, memory)


def test_inverse_smoothness(segment, name):
    s = segment(name)
    L = s.f.smoothness()
    new, eta, memory = take(InverseSmoothness(), s)
    assert (eta, memory) == (1.0 / L, L)
    np.testing.assert_array_equal(new.w, BALL.project(s.x.w - s.m.gradient / L))
    assert s.f(new) <= s.f(s.x)


def test_inverse_square_root(segment, name):
    s = segment(name)
    scale = 1.0 / s.f.smoothness()
    for t in (1, 4, 100):
        new, eta, memory = take(InverseSqrt(), s, t)
        assert eta == pytest.approx(scale / math.sqrt(t))
        assert memory == scale
        np.testing.assert_allclose(new.w, BALL.project(s.x.w - eta * s.m.gradient), atol=1e-15)


def test_backtracking_keeps_its_promise(segment, name):
    s, memory = segment(name), math.nan
    for _ in range(3):
        new, eta, memory = take(BacktrackingGradient(), s, memory=memory)
        step = new.w - s.x.w
        promise = s.f(s.x) + np.vdot(s.m.gradient, step) + 0.5 / eta * np.sum(step**2)
        assert s.f(new) <= promise + 1e-12 * abs(promise)
        assert memory == pytest.approx(1.0 / eta)
        assert memory <= 2.0 * max(s.f.smoothness(), np.linalg.norm(s.m.gradient) / max(1.0, np.linalg.norm(s.x.w)))


@pytest.mark.parametrize("rule", [InverseSmoothness(), InverseSqrt(), BacktrackingGradient()], ids=repr)
def test_a_constant_function(rule):
    """Features that are all zero: no slope, no curvature, and nothing to divide by."""
    f = Objective(Squared(), as_data(np.zeros((4, 2)), np.ones(4)))
    x = f.point([0.3, 0.4])
    new, eta, _ = rule(f, f.evaluate(x), BALL.project, 1, math.nan)
    np.testing.assert_array_equal(new.w, x.w)
    assert eta > 0


def test_the_intercept_is_handed_on(segment):
    s = segment("logistic, intercept")
    for rule in (InverseSmoothness(), InverseSqrt(), BacktrackingGradient()):
        assert take(rule, s)[0].intercept is not None


REFUSED = [
    (InverseSmoothness, {"L": -1.0}, "must be positive and finite, got -1.0."),
    (InverseSqrt, {"scale": 0}, "must be positive and finite, got 0."),
]


@pytest.mark.parametrize(("cls", "setting", "rule"), REFUSED)
def test_refusals(cls, setting, rule):
    (name,) = setting
    with pytest.raises(ValueError, match=re.escape(f"`{cls.__name__}({name}=...)` {rule}")):
        cls(**setting)


def test_backtracking_does_not_follow_rounding():
    """Where changes of the value are all rounding, that of the gradient tells the curvature."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 500))
    f = Objective(Logistic(), as_data(X, np.sign(X @ rng.standard_normal(500))), fit_intercept=True)
    result = minimize(
        f, LpBall(np.inf, 0.2), AcceleratedProjectedGradient(BacktrackingGradient()), tol=1e-12, max_iter=600
    )
    assert result.n_passes <= 3.0 * result.n_iter


def test_changes_of_some_tens_of_roundings_tell_nothing():
    assert is_rounding(50.0 * UNIT * 3.0, -3.0)
    assert not is_rounding(65.0 * UNIT * 3.0, 3.0)


@pytest.mark.parametrize("rule", [InverseSmoothness(), InverseSqrt(), BacktrackingGradient()], ids=repr)
@pytest.mark.parametrize("scale", [1e10, 1e60, 1e120])
def test_a_function_constant_up_to_rounding_takes_a_finite_step(rule, scale):
    """One row and an intercept leave nothing to minimise, but a gradient of rounding, which no curvature divides."""
    f = Objective(Huber(1.0), as_data(np.array([[1.1, 2.3, 3.7]]) * scale, [1.7]), fit_intercept=True)
    result = minimize(f, Simplex(radius=1.0), ProjectedGradient(rule), max_iter=20)
    assert np.all(np.isfinite(result.w))
