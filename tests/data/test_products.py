"""Sums of products of rows: in float64 whatever the table holds, and by blocks of rows."""

import numpy as np
import pytest

from projfree.data.gram import LANE_ROWS, LANES, add_products

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, 0.5], ids=["plain", "moved"])
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "weighted"])
def test_products_are_those_of_float64(dtype, shift, equal):
    X = RNG.standard_normal((LANE_ROWS + 70, 3)).astype(dtype)
    s = np.full(len(X), 0.5) if equal else RNG.uniform(0.1, 1.0, len(X))
    lanes = np.zeros((LANES, 4, 4))
    add_products(lanes, X, np.zeros((len(X), 0)), s, np.full(3, shift), threads=2)
    found = lanes.sum(axis=0)
    z = s[:, None] * np.column_stack([X.astype(np.float64) - shift, np.ones(len(X))])
    np.testing.assert_allclose(found, z.T @ z, rtol=1e-12, atol=1e-12 * len(X))
    assert found.dtype == np.float64
