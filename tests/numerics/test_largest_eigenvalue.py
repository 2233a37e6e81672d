"""Upper bounds on largest eigenvalues, for estimates good and bad."""

from __future__ import annotations

import numpy as np
import pytest

from projfree.algebra import LowRank
from projfree.numerics.subspace import eigenvalue_bound, largest_square


@pytest.mark.parametrize("n", [1, 2, 5, 40, 600])
@pytest.mark.parametrize("share", [1.0, 0.999, 0.9, 0.5, 1e-3])
@pytest.mark.parametrize("flat", [False, True])
def test_the_bound_is_above_and_close_where_the_estimate_is(n, share, flat):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n + 3, n))
    if flat:  # many eigenvalues are the largest
        X = np.linalg.qr(X)[0]
    H = X.T @ X
    largest = float(np.linalg.eigvalsh(H)[-1])
    found = eigenvalue_bound(H.copy(), share * largest)
    assert found >= largest * (1.0 - 1e-14)
    if share >= 0.9:
        assert found <= 1.21 * largest
    if share == 1.0:
        assert found <= 1.0002 * largest
    assert found <= float(np.trace(H)) * (1.0 + 1e-6) or found <= 2.1 * largest


def test_zero():
    assert eigenvalue_bound(np.zeros((3, 3)), 1e-300) >= 0.0


@pytest.mark.parametrize("rank", [1, 30])
def test_an_estimate_from_products(rank):
    rng = np.random.default_rng(0)
    g = LowRank.of(rng.standard_normal((80, rank)), rng.standard_normal((50, rank)))
    exact = float(g.singular_values()[0]) ** 2
    assert 0.99 * exact <= largest_square(g) <= exact * (1 + 1e-9)
