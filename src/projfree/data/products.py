"""Products of shifted and weighted rows, dense and sparse: what `Gram` adds up."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array, is_sparse
from projfree.deadline import stopper
from projfree.runtime import over_blocks

#: Sums that are kept apart while rows stream by, so that threads can share the work; fixed, so that they do not show.
LANES = 4
#: Bytes of X that are read at a time, at least.
TABLE_BYTES = 1 << 23
#: Rows that are shifted and multiplied at a time: enough to pay for adding a d x d matrix, few enough for the cache.
LANE_ROWS = 1024


def rough_centre(table: Any) -> Array:
    """A rough mean of the columns that have one worth removing.

    Where a share p <= 1/2 of a sparse column is not zero, the square of its mean is at most p times its mean square
    (Cauchy-Schwarz): nothing cancels, and the column stays sparse.
    """
    if not is_sparse(table):
        return np.asarray(table.mean(axis=0))
    often = np.bincount(table.indices, minlength=table.shape[1]) > 0.5 * table.shape[0]
    return np.where(often, np.asarray(table.mean(axis=0)).ravel(), 0.0)


def table_bytes(d: int) -> int:
    """Bytes of X to read at a time for products of ``d`` columns."""
    return max(TABLE_BYTES, 8 * d * LANES * LANE_ROWS)


def add_products(lanes: Array, table: Any, y: Array, s: Array, shift: Array, threads: int) -> None:
    """Add the `product` of the rows of a table to the lanes, in threads; `Expired` where a deadline passes."""
    stop = stopper()
    stop()
    count = max(1, min(LANES, -(-len(y) // LANE_ROWS)))  # fewer where one product holds all rows of a lane
    if count == 1:
        lanes[0] += product(table, y, s, shift)
        return
    step = -(-len(y) // count)

    def lane(k: int) -> None:
        rows = slice(k * step, min((k + 1) * step, len(y)))
        stop()
        if rows.start < rows.stop:
            lanes[k] += product(table[rows], y[rows], s[rows], shift)

    over_blocks(lane, count, threads)


def product(table: Any, y: Array, s: Array, shift: Array) -> Array:
    """The sum of ``z z^T`` over rows ``z = s (x - shift_x, y - shift_y, 1)``."""
    if is_sparse(table):
        return _sparse_product(table, y, s, shift)
    if len(y) <= LANE_ROWS:
        return _dense_product(table, y, s, shift)
    total = np.zeros((len(shift) + 1,) * 2)
    for first in range(0, len(y), LANE_ROWS):
        rows = slice(first, first + LANE_ROWS)
        total += _dense_product(table[rows], y[rows], s[rows], shift)
    return total


def _dense_product(table: Array, y: Array, s: Array, shift: Array) -> Array:
    if not y.shape[1] and not shift.any() and table.dtype == np.float64 and (s == s[0]).all():
        return _plain_product(table, float(s[0]))
    # In the order of the table: turning it round would cost as much as the product.
    z = np.empty((len(y), len(shift) + 1), order="F" if table.strides[0] < table.strides[1] else "C")
    np.subtract(table, shift[: table.shape[1]], out=z[:, : table.shape[1]])
    np.subtract(y, shift[table.shape[1] :], out=z[:, table.shape[1] : -1])
    z[:, -1] = 1.0
    if (s != 1.0).any():
        z *= s[:, None]
    product: Array = z.T @ z  # NumPy sees the same array twice and computes half
    return product


def _plain_product(table: Array, s: float) -> Array:
    """The same for dense rows that are neither moved nor weighted one by one: they need not be copied."""
    d, square = table.shape[1], s * s
    out = np.empty((d + 1, d + 1))
    out[:d, :d] = square * (table.T @ table)
    out[d, :d] = out[:d, d] = square * (np.ones(len(table)) @ table)
    out[d, d] = square * len(table)
    return out


def _sparse_product(table: Any, y: Array, s: Array, shift: Array) -> Array:
    """As for dense rows; columns with a shift, targets and ones are made dense, the others stay sparse."""
    d = table.shape[1]
    moved, still = np.flatnonzero(shift[:d]), np.flatnonzero(shift[:d] == 0.0)
    full = np.concatenate([moved, np.arange(d, len(shift) + 1)])
    columns = table.tocsc()
    rest = columns[:, still].multiply(s[:, None]).tocsc()
    z = np.column_stack([columns[:, moved].toarray() - shift[moved], y - shift[d:], np.ones(len(y))]) * s[:, None]
    out = np.zeros((len(shift) + 1,) * 2)
    out[np.ix_(full, full)] = z.T @ z
    cross = rest.T @ z
    out[np.ix_(still, full)], out[np.ix_(full, still)] = cross, cross.T
    out[np.ix_(still, still)] = (rest.T @ rest).toarray()
    return out
