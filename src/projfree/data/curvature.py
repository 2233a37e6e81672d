"""Second moments of the rows with weights of their own: the Hessian of a loss, in one read."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.data.base import Data
from projfree.data.products import LANES, add_products, rough_centre, table_bytes
from projfree.numerics.sums import tree_sum
from projfree.runtime import single_blas


def second_moments(data: Data, h: Array, *, centred: bool) -> Array:
    """See `Data.second_moments`; the way for tables of every kind."""
    d, m = data.shape(())[0], h.shape[1]
    roots, shift = np.sqrt(h), np.zeros(d)
    lanes = np.zeros((m, LANES, d + 1, d + 1))
    threads = getattr(data, "threads", 1)
    with single_blas():
        for rows, table in data.tables(table_bytes(d)):
            if centred and not rows.start:
                shift = rough_centre(table)
            nothing = np.empty((table.shape[0], 0))
            for j in range(m):
                add_products(lanes[j], table, nothing, roots[rows, j], shift, threads)
    data.meter.rows += data.n
    return np.stack([tree_sum(lane) for lane in lanes])
