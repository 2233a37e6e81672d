"""Small completion problems."""

from __future__ import annotations

import numpy as np

from projfree import Entries, as_data


def entries(m=12, n=9, count=60, seed=0, rank=2, noise=0.3):
    rng = np.random.default_rng(seed)
    flat = rng.choice(m * n, count, replace=False)
    rows, cols = flat // n, flat % n
    M = 3.0 + rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + noise * rng.standard_normal((m, n))
    return rows, cols, M[rows, cols]


def both(rows, cols, y, shape, weight=None):
    """The same data with a dense parameter and with one in factors."""
    return [as_data(Entries(rows, cols, shape, factored=factored), y, weight) for factored in (False, True)]


def predictions(f, now):
    """What factors and offsets predict at the observed entries of an objective."""
    rows, cols = f.data.places
    inner = np.einsum("ij,ij->i", now.left[rows], now.right[cols])
    return f.base + now.shift + now.rows[rows] + now.cols[cols] + inner
