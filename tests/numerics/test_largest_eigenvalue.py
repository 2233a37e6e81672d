"""Upper bounds on largest eigenvalues, for estimates good and bad."""

from __future__ import annotations

import numpy as np
import pytest

from projfree.numerics.spectra import eigenvalue_bound


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
