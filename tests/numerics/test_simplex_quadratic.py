"""Quadratics over the simplex: the conditions of a minimum, whatever the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree.numerics.simplex_quadratic import minimise_on_simplex


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 12),
    rank=st.integers(0, 12),
    scale=st.sampled_from((1e-200, 1e-8, 1.0, 1e8, 1e200)),
    whole=st.booleans(),
)
def test_no_corner_is_lower(seed, m, rank, scale, whole):
    """Singular, tied and badly scaled ones too: the weights are weights, and the gap is rounding."""
    rng = np.random.default_rng(seed)
    A, g = rng.standard_normal((rank, m)), rng.standard_normal(m)
    if whole:
        A, g = A.round(), g.round()
    H, start = scale * (A.T @ A), rng.dirichlet(np.ones(m)) * (rng.random(m) < 0.6)
    start = start / start.sum() if start.any() else np.eye(m)[0]
    H0, g0, s0 = H.copy(), scale * g, start.copy()
    w = minimise_on_simplex(H, scale * g, start)
    assert np.all(w >= 0.0)
    assert w.sum() == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_array_equal(H, H0)
    np.testing.assert_array_equal(start, s0)
    slope = (g0 + H @ (w - start)) / scale
    size = np.abs(g).max() + np.abs(H / scale).max(initial=0.0)
    assert slope @ w - slope.min() <= 1e-11 * size


def test_weights_that_are_not_in_use_are_zero():
    w = minimise_on_simplex(np.eye(4), np.array([-1.0, -1.0, 5.0, 5.0]), np.full(4, 0.25))
    np.testing.assert_array_equal(w[2:], 0.0)
    np.testing.assert_allclose(w[:2], 0.5, rtol=1e-14)


def test_nothing_to_do():
    start = np.array([0.3, 0.7])
    np.testing.assert_array_equal(minimise_on_simplex(np.zeros((2, 2)), np.zeros(2), start), start)
    np.testing.assert_array_equal(minimise_on_simplex(np.eye(1), np.ones(1), np.ones(1)), [1.0])
