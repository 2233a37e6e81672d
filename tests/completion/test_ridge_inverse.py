"""Inverses of Gram matrices with a ridge."""

from __future__ import annotations

import numpy as np
import pytest

from projfree.completion.ridge_inverse import ridge_inverse


def gram(rank, k=5, size=1.0):
    factor = np.random.default_rng(0).standard_normal((20, rank)) @ np.random.default_rng(1).standard_normal((rank, k))
    return size * factor.T @ factor


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("rank", [0, 2, 5])
def test_it_is_the_inverse(rank, size):
    G, ridge = gram(rank, size=size), size * np.array([1.0, 0.5, 2.0, 1e-3, 1.0])
    np.testing.assert_allclose(ridge_inverse(G, ridge) @ (G + np.diag(ridge)), np.eye(5), atol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 1e-300, 1e-30, 1e-17])
def test_a_ridge_that_rounding_hides_leaves_a_finite_inverse(ridge):
    """On the range of the Gram matrix it is about the pseudo-inverse."""
    G = gram(2)
    found = ridge_inverse(G, np.full(5, ridge))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(G @ found @ G, G, rtol=1e-2)
    assert np.abs(found).max() <= 1e12 / np.trace(G) * 1.001


def test_nothing_has_an_inverse_too():
    assert np.isfinite(ridge_inverse(np.zeros((2, 2)), np.full(2, 1e-20))).all()
    assert ridge_inverse(np.zeros((0, 0)), np.zeros(0)).shape == (0, 0)
