"""Minorants: their stated errors bound the rounding, and `lower` is below the minimum, both checked exactly."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree.algebra import Minorant
from projfree.algebra.minorant import size
from projfree.sets import LpBall

D = 3
seeds = st.integers(0, 2**32 - 1)
weights = st.just(0.0) | st.floats(1e-9, 1e3)  # nothing underflows; that is an assumption of the error bounds


def fractions(x) -> list[Fraction]:
    return [Fraction(float(v)) for v in np.ravel(x)]


class Exact:
    """The same affine function without rounding."""

    def __init__(self, constant, gradient) -> None:
        self.constant, self.gradient = Fraction(constant), list(gradient)

    @classmethod
    def of(cls, m: Minorant) -> Exact:
        return cls(float(m.constant), fractions(m.gradient))

    def __mul__(self, a: float) -> Exact:
        return Exact(Fraction(a) * self.constant, [Fraction(a) * g for g in self.gradient])

    __rmul__ = __mul__

    def __add__(self, other: Exact) -> Exact:
        return Exact(self.constant + other.constant, map(Fraction.__add__, self.gradient, other.gradient))

    def minimum(self, p: float, radius: float) -> Fraction:
        """Over the ball of l_1 or l_inf; for l_2 to 60 digits, rounded upwards."""
        sizes = [abs(g) for g in self.gradient]
        if p == 2:
            with localcontext(prec=80):
                square = sum(g * g for g in sizes)
                root = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
                return self.constant - Fraction(radius) * Fraction(root * (1 - Decimal("1e-60")))
        return self.constant - Fraction(radius) * (max(sizes) if p == 1 else sum(sizes))


def within(m: Minorant, exact: Exact) -> bool:
    far = abs(Fraction(m.constant) - exact.constant) <= Fraction(m.constant_error)
    square = sum((Fraction(g) - h) ** 2 for g, h in zip(m.gradient.tolist(), exact.gradient, strict=True))
    return far and square <= Fraction(m.gradient_error) ** 2


def random_minorant(rng: np.random.Generator, scale: float = 1.0) -> Minorant:
    return Minorant(float(rng.standard_normal() * scale), rng.standard_normal(D) * scale)


def long_average(seed: int, steps: int, ell: float) -> tuple[Minorant, Exact]:
    """The average that Primal Averaging keeps, with tangents of very different sizes."""
    rng = np.random.default_rng(seed)
    m, exact = Minorant.zero((D,)), Exact(0, [Fraction(0)] * D)
    for t in range(1, steps + 1):
        tangent, a = random_minorant(rng, 10.0 ** rng.integers(-3, 4)), ell / (t - 1 + ell)
        m, exact = (1.0 - a) * m + a * tangent, (1.0 - a) * exact + a * Exact.of(tangent)
    return m, exact


@settings(max_examples=10)
@given(seeds, st.sampled_from([1.0, 2.0, 8.0]))
def test_errors_bound_the_rounding_of_long_averages(seed, ell):
    m, exact = long_average(seed, 150, ell)
    assert within(m, exact)
    assert Exact.of(m).constant != exact.constant, "nothing was rounded, so nothing was tested"
    assert m.constant_error < 1e-12 * 1e3
    assert m.gradient_error < 1e-12 * 1e3


@given(seeds, weights | weights.map(lambda a: -a))
def test_errors_bound_the_rounding_of_a_shift(seed, scale):
    rng = np.random.default_rng(seed)
    m, direction = random_minorant(rng), rng.standard_normal(D)
    shifted = m.shifted(direction, scale)
    assert within(shifted, Exact.of(m) + scale * Exact(0, fractions(direction)))
    back = shifted.shifted(direction, -scale)
    assert within(back, Exact.of(m))


@settings(max_examples=15)
@given(seeds, st.sampled_from([1.0, 2.0, math.inf]), st.sampled_from([1e-3, 1.0, 1e3]))
def test_lower_is_below_the_exact_minimum(seed, p, radius):
    m, exact = long_average(seed, 40, 2.0)
    lower, allowance = m.minimum(LpBall(p, radius))
    lowest = exact.minimum(p, radius)
    assert Fraction(lower) <= lowest
    size = abs(m.constant) + radius * float(np.abs(m.gradient).sum())
    assert float(lowest - Fraction(lower)) <= 2.0 * allowance + 1e-13 * size
    assert lower == m.lower(LpBall(p, radius))


class Known:
    """A set whose support is known up to an error."""

    def __init__(self, support: float, error: float, reach: float) -> None:
        self.support = lambda g: support
        self.support_error = lambda g, support: error
        self.reach = lambda shape: reach


@given(st.floats(-1e3, 1e3, allow_subnormal=False), st.floats(0.0, 1e3, allow_subnormal=False))
def test_the_last_subtractions_round_downwards(constant, support):
    lower = Minorant(constant, np.zeros(1)).lower(Known(support, 0.0, 1.0))
    assert Fraction(lower) <= Fraction(constant) - Fraction(support)


def test_stated_errors_lower_the_bound():
    g, ball = np.array([3.0, 4.0]), LpBall(2, 10.0)
    exact = Minorant(1.0, g)
    for m, cost in (
        (Minorant(1.0, g, constant_error=0.5), 0.5),
        (Minorant(1.0, g, gradient_error=0.5), 0.5 * 10),
        (Minorant(1.0, g, curvature_error=0.5), 0.5 * 100),
    ):
        assert exact.lower(ball) - m.lower(ball) == pytest.approx(cost, rel=1e-12)
        half = 0.5 * m + 0.5 * m  # an average of equals has the errors of one
        assert exact.lower(ball) - half.lower(ball) == pytest.approx(cost, rel=1e-12)


@given(seeds, st.floats(0.01, 0.99))
def test_an_average_with_an_estimate_bounds_nothing(seed, a):
    rng = np.random.default_rng(seed)
    m, estimate = random_minorant(rng), Minorant(-math.inf, rng.standard_normal(D))
    for average in ((1 - a) * m + a * estimate, a * estimate + (1 - a) * m, estimate + m):
        assert average.constant == -math.inf
        assert average.minimum(LpBall(2, 1.0)) == (-math.inf, 0.0)
    np.testing.assert_array_equal(((1 - a) * m + a * estimate).gradient, (1 - a) * m.gradient + a * estimate.gradient)


@pytest.mark.parametrize("a", [-1.0, -1e-300, math.nan])
def test_a_negative_weight_is_refused(a):
    with pytest.raises(ValueError, match=f"{a:g}"):
        a * Minorant(1.0, np.ones(2))


def test_zero_times_an_estimate_is_the_zero_function():
    nothing = 0.0 * Minorant(-math.inf, np.ones(D))
    assert nothing.constant == 0.0
    assert not nothing.gradient.any()
    assert nothing.constant_error == nothing.gradient_error == 0.0


@given(seed=seeds)
def test_the_sum_of_the_errors_is_rounded_upwards(seed):
    """Nothing else is rounded here, and half of the sums come out too small."""
    a, b, c, top = np.random.default_rng(seed).uniform(1.0, 2.0, 4).tolist()
    lower = Minorant(0.0, np.zeros(1), a, b).lower(Known(0.0, c, top))
    assert Fraction(lower) <= -(Fraction(a) + Fraction(b) * Fraction(top) + Fraction(c))


def test_the_error_of_a_support_lowers_the_bound():
    assert Minorant(1.0, np.ones(1)).lower(Known(1.0, 0.25, 1.0)) <= -0.25


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("entry", [1e-300, 1e-30, 1.0, 1e30, 1e200])
def test_sizes_beyond_the_range_of_squares_are_silent(entry, dtype):
    if entry in (1e-300, 1e200) and dtype == np.float32:
        entry = 1e-40 if entry < 1.0 else 1e38
    g = np.full((3, 3), entry, dtype=dtype)
    with np.errstate(all="raise", under="ignore"):
        assert size(g) == pytest.approx(3.0 * float(g[0, 0]), rel=1e-5, abs=0.0)
