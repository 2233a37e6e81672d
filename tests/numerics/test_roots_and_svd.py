"""Root brackets, and singular values of matrices whose singular values are known exactly."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from projfree.numerics.projections import decreasing_roots
from projfree.numerics.spectra import singular_values, svd, svd_error


def test_roots_of_many_functions_at_once():
    """Straight, steep, flat and kinked ones, with a root at an end, beyond it, and none."""

    def fun(x):
        return np.array(
            [1 - x[0], 1e-9 - x[1], 0.5 - x[2] ** 40, np.exp(-60 * x[3]) - 1e-20, np.sign(0.3 - x[4]), -x[5], 3 - x[6]]
        )

    found = decreasing_roots(fun, np.zeros(7), np.full(7, 2.0))
    roots = np.array([1, 1e-9, 0.5 ** (1 / 40), np.log(1e20) / 60, 0.3, 0, 2])
    np.testing.assert_allclose(found, roots, rtol=1e-14)


@pytest.mark.parametrize("n", [4, 16, 64, 128])
def test_svd_error_is_a_bound(n):
    """H diag(s) H with a Hadamard matrix H is exact in floating point, and its singular values are n s."""
    H, rng = hadamard(n), np.random.default_rng(n)
    spectra = [rng.integers(1, 2**20, n), 2.0 ** -rng.integers(0, 20, n), np.ones(n), np.where(np.arange(n) < 2, 3, 0)]
    for s in spectra:
        A, exact = (H * s) @ H.T, np.sort(n * s)[::-1]
        for found in (singular_values(A), svd(A)[1]):
            assert np.linalg.norm(found - exact) <= 0.1 * svd_error((n, n)) * np.linalg.norm(exact)
