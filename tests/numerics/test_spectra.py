"""Upper bounds on largest eigenvalues, and singular values of matrices whose singular values are known exactly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard

from projfree.numerics.spectra import eigenvalue_bound, singular_values, svd, svd_error


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
    found = eigenvalue_bound(H.copy, share * largest)
    assert found >= largest * (1.0 - 1e-14)
    if share >= 0.999:
        assert found <= 1.21 * largest
    if share == 1.0:
        assert found <= 1.0002 * largest
    assert found <= float(np.trace(H)) * (1.0 + 1e-6) or found <= 2.1 * largest


def test_zero():
    assert eigenvalue_bound(lambda: np.zeros((3, 3)), 1e-300) >= 0.0


@pytest.mark.parametrize("n", [4, 16, 64, 128])
def test_svd_error_is_a_bound(n):
    """H diag(s) H with a Hadamard matrix H is exact in floating point, and its singular values are n s."""
    H, rng = hadamard(n), np.random.default_rng(n)
    spectra = [rng.integers(1, 2**20, n), 2.0 ** -rng.integers(0, 20, n), np.ones(n), np.where(np.arange(n) < 2, 3, 0)]
    for s in spectra:
        A, exact = (H * s) @ H.T, np.sort(n * s)[::-1]
        for found in (singular_values(A), svd(A)[1]):
            assert np.linalg.norm(found - exact) <= 0.1 * svd_error((n, n)) * np.linalg.norm(exact)
