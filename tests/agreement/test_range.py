"""Bounds at the edge of floating point: where squares of derivatives vanish, and where weights are extreme."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from projfree import Logistic, LpBall, Objective, Squared, as_data, minimize
from projfree.sets import Weighted

RNG = np.random.default_rng(4)
X = RNG.standard_normal((30, 3))
Y = X @ [1.0, 2.0, -1.0] + RNG.standard_normal(30)


@pytest.fixture(params=[False, True], ids=["NumPy", "compiled"])
def path_taken(request, monkeypatch):
    monkeypatch.setattr("projfree.data.tables.NATIVE_BYTES", 0 if request.param else 1 << 60)


def test_derivatives_whose_squares_vanish(path_taken):
    """The second coordinate lowers the loss from exp(-450) to exp(-550), through products that underflow."""
    f = Objective(Logistic(), as_data(np.array([[1.0, 1e-137]]), [1.0]))
    ball = Weighted(LpBall(math.inf, 1.0), weights=[1.0 / 450.0, 1e-139])
    with localcontext(prec=60):
        least = Fraction((1 + (-Decimal(550)).exp()).ln()) * Fraction(1001, 1000)
    for w in ([450.0, 0.0], [449.0, 1e138], [0.0, 0.0]):
        assert Fraction(f.evaluate(f.point(w)).slope.lower(ball)) <= least
    result = minimize(f, ball)
    assert Fraction(result.bound) <= least
    assert result.value >= result.bound


@pytest.mark.parametrize("weight", [[2.0, 1.5e-323], [1e300, 3e-16], [1.0, 9e-101]])
def test_weights_that_lose_their_digits_are_refused(weight):
    with pytest.raises(
        ValueError, match=r"`sample_weight` must be zero or at least 1e-100 times the largest, got .*e-"
    ):
        as_data(np.ones((2, 1)), [0.0, 1e150], weight)


@pytest.mark.parametrize("ratio", [1.1e-100, 1e-60, 1e-17])
@pytest.mark.parametrize("unit", [1.0, 1e300, 1e-15])
def test_weights_that_differ_as_much_as_they_may(ratio, unit, path_taken):
    """The minimum over [-1, 1] of the mean of w^2 and (w - y)^2, weighted, is at w = 1 for large y."""
    weight, y = [unit, ratio * unit], 3.0 / math.sqrt(ratio)
    f = Objective(Squared(), as_data(np.ones((2, 1)), [0.0, y], weight))
    a, b = map(Fraction, weight)
    free = b * Fraction(y) / (a + b)
    at = min(free, Fraction(1))
    least = (a * at**2 + b * (at - Fraction(y)) ** 2) / (a + b)
    result = minimize(f, LpBall(2, 1.0), tol=0.0, max_iter=50)
    assert Fraction(result.bound) <= least
    assert least - Fraction(result.bound) <= least / 10**9


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("unit", [5e-324, 1e-320, 1e-100, 1e150, 1e307])
def test_the_unit_of_the_weights_does_not_matter(unit, intercept):
    def solved(weight, loss, y):
        return minimize(Objective(loss, as_data(X, y, weight), fit_intercept=intercept), LpBall(2, 1.0), tol=1e-9)

    for loss, y in ((Squared(), Y), (Logistic(), np.where(Y + RNG.standard_normal(30) > 0.0, 1.0, -1.0))):
        plain, scaled = solved(None, loss, y), solved(np.full(30, unit), loss, y)
        assert scaled.value == pytest.approx(plain.value, rel=1e-12)
        assert scaled.bound == pytest.approx(plain.bound, rel=1e-8)
        assert scaled.status is plain.status


def test_rows_added_to_moments_share_one_unit_of_weight():
    data = as_data(X, Y, np.full(30, 1e-320))
    with pytest.raises(ValueError, match=r"`sample_weight` must have a sum between 1e-100 and 1e\+100 where rows are"):
        data.gram().include(data)
    moments = data.gram().include(as_data(X[:5], Y[:5]))  # next to which the others do not count
    np.testing.assert_allclose(moments.mean, X[:5].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-80, 1e80, 1e100])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_large_and_small_units(scale, p):
    plain = minimize(Objective(Squared(), as_data(X, Y)), LpBall(p, 1.0))
    other = minimize(Objective(Squared(), as_data(X * scale, Y * scale)), LpBall(p, 1.0))
    assert other.status is plain.status
    assert other.value / scale / scale == pytest.approx(plain.value, rel=1e-9)
    assert other.bound <= other.value
    assert other.certificate.verify(X * scale, Y * scale).ok
