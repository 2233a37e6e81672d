"""`BlackBox`: what it asks the function, how often, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import BlackBox, LpBall
from projfree.algebra import mix


class Bowl:
    """A smooth convex function that remembers where it was asked."""

    def __init__(self) -> None:
        self.asked: list[np.ndarray] = []

    def __call__(self, w):
        self.asked.append(w)
        return float(np.sum(np.cosh(w))), np.sinh(w)


@pytest.fixture
def bowl():
    return Bowl()


@pytest.fixture
def f(bowl):
    return BlackBox(bowl, (3,), convex=True)


def test_value_and_tangent_cost_one_call(f, bowl):
    x = f.point([0.1, -0.2, 0.3])
    m = f.evaluate(x).slope
    assert f(x) == pytest.approx(np.cosh(x.w).sum())
    assert m(x.w) == pytest.approx(f(x), rel=1e-14)
    np.testing.assert_array_equal(m.gradient, np.sinh(x.w))
    f.evaluate(x)
    assert len(bowl.asked) == f.passes == 1
    assert f.passes == 1.0


def test_mixtures_are_asked_anew(f, bowl):
    """The gradient of a mixture is not the mixture of gradients, which is what images would say."""
    x, v = f.point(np.ones(3)), f.point(-2 * np.ones(3))
    f.evaluate(x)
    f.evaluate(v)
    z = mix((0.5, x), (0.5, v))
    assert np.isnan(f.evaluate(z, tangent=False, read=False).value)
    np.testing.assert_allclose(f.evaluate(z).slope.gradient, np.sinh(z.w))
    assert f(z) == pytest.approx(np.cosh(z.w).sum())
    assert len(bowl.asked) == 3


def test_the_function_may_write_to_its_argument():
    def careless(w):
        value, gradient = float(w @ w), 2 * w
        w[:] = np.nan
        return value, gradient

    f = BlackBox(careless, 2, convex=True)
    x = f.point([1.0, 2.0])
    f(x)
    np.testing.assert_array_equal(x.w, [1.0, 2.0])


def test_tangents_lie_below(f):
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, w = f.point(rng.standard_normal(3)), rng.standard_normal(3)
        m = f.evaluate(x).slope
        assert m(w) - m.constant_error - m.gradient_error * np.linalg.norm(w) <= np.cosh(w).sum()
        assert m.constant_error <= 1e-13


def test_a_segment_costs_one_call_a_look(f, bowl):
    x, v = f.point(np.ones(3)), f.point(-np.ones(3))
    m = f.evaluate(x).slope
    hull = f.hull((x, v), m.gradient)
    hull.value(np.zeros(1))
    assert len(bowl.asked) == 1, "the start of the segment has been asked already"
    hull.value(np.array([0.5]))
    hull.value(np.array([0.5]))
    assert len(bowl.asked) == 2
    assert hull.value(np.array([0.5])) == pytest.approx(3.0)


def test_matrices(bowl):
    f = BlackBox(bowl, (2, 2), convex=True)
    assert f.evaluate(f.point(np.eye(2))).slope.gradient.shape == (2, 2)


def test_single_precision_and_lists_are_widened():
    f = BlackBox(lambda w: (np.float32(w @ w), (2 * w).astype(np.float32)), 2, convex=True)
    assert f.evaluate(f.point([1.0, 2.0])).slope.gradient.dtype == np.float64
    g = BlackBox(lambda w: (1, [0, 1]), 2, convex=True)
    np.testing.assert_array_equal(g.evaluate(g.point([1.0, 2.0])).slope.gradient, [0.0, 1.0])


ANSWERS = {
    "shape": (
        lambda w: (0.0, np.ones(3)),
        r"gradient of shape \(2,\), got 0\.0 and shape \(3,\); check the function",
    ),
    "nan value": (lambda w: (np.nan, w), r"must return a finite value .* got nan and shape \(2,\); check the function"),
    "inf gradient": (lambda w: (0.0, w / 0.0 if w.any() else w * np.inf), r"`fun\(w\)` must return a finite value"),
}


@pytest.mark.parametrize(("fun", "sentence"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the bad function itself warns
def test_bad_answers(fun, sentence):
    f = BlackBox(fun, (2,), convex=True)
    x = f.point(np.ones(2))
    with pytest.raises(ValueError, match=sentence):
        f(x)
    assert np.isnan(f.evaluate(x, tangent=False, read=False).value), "a refused answer leaves nothing behind"


@pytest.mark.parametrize(
    "answer", [None, 3.0, (1j, np.ones(2)), (np.ones(2), np.ones(2)), (1.0, np.ones(2), 0), np.ones(3)], ids=repr
)
def test_what_is_no_value_and_gradient_is_refused(answer):
    f = BlackBox(lambda w: answer, 2, convex=True)
    with pytest.raises(TypeError, match=r"`fun\(w\)` must return two things, .* got .*; return them as `value, grad"):
        f(f.point(np.ones(2)))


def test_settings_are_checked(bowl):
    with pytest.raises(ValueError, match=r"`BlackBox\(shape=\.\.\.\)` must be a whole number of at least 1, got 0\."):
        BlackBox(bowl, (3, 0), convex=True)
    with pytest.raises(ValueError, match=r"`BlackBox\(smoothness=\.\.\.\)` must be positive and finite, got -1\.0\."):
        BlackBox(bowl, 3, smoothness=-1.0, convex=True)
    with pytest.raises(
        ValueError, match=r"BlackBox has no `smoothness`; .* `BacktrackingGradient\(\)` for projected gradients\."
    ):
        BlackBox(bowl, 3, convex=True).smoothness()
    assert BlackBox(bowl, 3, smoothness=2, convex=True).smoothness() == 2.0


def test_convexity_must_be_stated(bowl):
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'convex'"):
        BlackBox(bowl, 3)
    with pytest.raises(TypeError, match=r"`BlackBox\(convex=\.\.\.\)` must be True or False, got 'no'\."):
        BlackBox(bowl, 3, convex="no")


def test_numbers_whose_squares_overflow_have_a_tangent():
    f = BlackBox(lambda w: (1e300 * float(w @ w), 2e300 * w), 2, convex=True)
    assert -2.1e300 < f.evaluate(f.point([0.6, 0.8])).slope.lower(LpBall(2, radius=0.5)) <= -2e300


def test_a_tangent_that_overflows_is_refused():
    f = BlackBox(lambda w: (1e300, np.full(2, 1e300)), 2, convex=True)
    with pytest.raises(ValueError, match=r"the tangent of `fun\(w\)` must be finite, got .* divide the function by"):
        f(f.point([1e100, 0.0]))


@pytest.mark.parametrize("rtol", [1e-3, 1e-8])
def test_the_error_that_a_gradient_may_have_lowers_the_bound(rtol):
    """A linear function whose gradient is too small by as much as was said: its minimum is lower than it seems."""
    slope, ball = np.array([3.0, -4.0]), LpBall(2, radius=2.0)
    f = BlackBox(lambda w: (float(slope @ w), slope / (1.0 + rtol)), 2, rtol=rtol, convex=True)
    bound = f.evaluate(f.point(np.zeros(2))).slope.lower(ball)
    assert bound <= -10.0
    assert bound >= -10.0 * (1.0 + 2.0 * rtol)
