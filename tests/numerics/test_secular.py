"""The equation of the Euclidean multiplier, against bisection and by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numerics.quadratics import draw, gap, rounding
from scipy.optimize import brentq

from projfree.numerics.secular import UnitQuadratic, minimise_secular, secular_root


def length(h, sizes, penalty):
    return float(np.linalg.norm(sizes / (h + penalty)))


@given(st.integers(0, 10**6), st.integers(1, 30), st.floats(0.0, 15.0), st.floats(-6.0, 6.0))
def test_the_root(seed, d, digits, log_scale):
    rng = np.random.default_rng(seed)
    h = 10.0 ** -(digits * rng.random(d))
    sizes = 10.0**log_scale * np.abs(rng.standard_normal(d)) + 1e-300
    penalty = secular_root(h, sizes)
    if length(h, sizes, 0.0) <= 1.0:
        assert penalty == 0.0
    else:
        expected = brentq(lambda t: length(h, sizes, t) - 1.0, 0.0, np.linalg.norm(sizes), xtol=1e-300, rtol=1e-15)
        assert penalty == pytest.approx(expected, rel=1e-10)
        assert length(h, sizes, penalty) == pytest.approx(1.0, rel=1e-12)


def test_directions_without_curvature_or_slope():
    assert secular_root(np.array([0.0, 1.0]), np.array([0.0, 0.5])) == 0.0
    penalty = secular_root(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert length(np.array([0.0, 1.0]), np.array([0.5, 0.5]), penalty) == pytest.approx(1.0, rel=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 30), st.floats(0.0, 8.0), st.floats(-3.0, 1.0), st.sampled_from([1, 4]))
def test_the_minimiser(seed, d, digits, log_rho, outputs):
    H, b, radius = draw(np.random.default_rng(seed), d, 10.0**digits, 2.0, np.exp(log_rho), (outputs,))
    found = minimise_secular(UnitQuadratic(H, b, 2.0, radius))
    w = radius * found.x
    assert np.linalg.norm(w) <= radius * (1.0 + 1e-14)
    assert gap(H, b, 2.0, radius, w) <= 50.0 * rounding(H, b, 2.0, radius, w)
