"""Weighted products of rows, dense and sparse: the moments of a table and the Hessian of a loss, in one read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array, is_sparse
from projfree.deadline import stopper
from projfree.numerics.sums import tree_sum
from projfree.runtime import over_blocks, single_blas

if TYPE_CHECKING:
    from projfree.data.local import LocalData

#: Sums that are kept apart while rows stream by, so that threads can share the work; fixed, so that they do not show.
LANES = 4
#: Rows that are shifted and multiplied at a time: enough to pay for adding a d x d matrix, few enough for the cache.
LANE_ROWS = 1024
#: Bytes of X that are read at a time, at least, and of weights that are formed at a time.
TABLE_BYTES, BLOCK_BYTES = 1 << 23, 1 << 24

#: ``h(rows, table)``, with ``rows`` a slice and their features: non-negative weights of shape ``(rows, m)``.
RowWeights = Callable[[slice, Any], Array]


@dataclass(frozen=True)
class Moments:
    r"""Which sums :math:`\sum_i h_i z_i z_i^T` over rows :math:`z_i = (x_i - c, 1)` with weights h are wanted.

    Attributes
    ----------
    weights : int
        How many weights a row has; each has a matrix of its own.
    numbers : int
        How many numbers a row takes while its weights are formed.
    centred : bool
        Whether c is `Data.centre_row`, else it is zero: what has the last coordinate eliminated does not depend on c,
        but cancels less.
    features : ndarray of int, optional
        The features to look at, in the order of the result; all by default.
    centre : ndarray, optional
        What c is in place of that, in the units of the table itself; for rows that are a part of others.
    """

    weights: int
    numbers: int
    centred: bool
    features: Array | None = None
    centre: Array | None = None

    def among(self, columns: Any) -> Any:
        """What belongs to the features, of a table or of a vector with an entry for each of its columns."""
        if self.features is None or np.array_equal(self.features, np.arange(columns.shape[-1])):
            return columns
        return columns[..., self.features] if isinstance(columns, np.ndarray) else columns[:, self.features]

    def weights_of(self, residual: Array | None) -> Array:
        """The residuals of a step as weights: as many of their columns, the first ones, as are wanted."""
        assert residual is not None
        return residual.reshape(len(residual), -1)[:, : self.weights]


def second_moments(data: LocalData, h: RowWeights, wanted: Moments) -> Array:
    """The matrices that are wanted for each column of the weights, of shape ``(m, d + 1, d + 1)``, in one read.

    With d the number of features that are looked at.
    """
    columns = data.shape(())[0]
    d = columns if wanted.features is None else len(wanted.features)
    shift = np.zeros(d)
    if wanted.centred:
        shift = wanted.among(data.centre_row() if wanted.centre is None else wanted.centre)
    lanes = np.zeros((LANES, wanted.weights, d + 1, d + 1))
    step = max(64, BLOCK_BYTES // (8 * wanted.numbers))
    with single_blas():
        for rows, table in data.tables(table_bytes(columns)):
            for part, block in _parts(rows, table, step):
                nothing, roots, some = np.empty((block.shape[0], 0)), np.sqrt(h(part, block)), wanted.among(block)
                for j in range(wanted.weights):
                    add_products(lanes[:, j], some, nothing, roots[:, j], shift, data.threads)
    return tree_sum(lanes)


def _parts(rows: slice, table: Any, step: int) -> Iterator[tuple[slice, Any]]:
    """The table in blocks of at most so many rows."""
    for first in range(rows.start, rows.stop, step):
        last = min(first + step, rows.stop)
        whole = last - first == table.shape[0]
        yield slice(first, last), table if whole else table[first - rows.start : last - rows.start]


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
    """Add the sums of ``z z^T`` over rows ``z = s (x - shift_x, y - shift_y, 1)`` to the lanes, in threads.

    Dense rows are multiplied `LANE_ROWS` at a time. Raises `Expired` where a deadline passes.
    """
    stop, count = stopper(), max(1, min(LANES, -(-len(y) // LANE_ROWS)))  # fewer lanes where one product has all rows
    step = -(-len(y) // count)

    def lane(k: int) -> None:
        first, last = k * step, min((k + 1) * step, len(y))
        size = last - first if is_sparse(table) else LANE_ROWS
        for start in range(first, last, max(size, 1)):
            stop()
            rows = slice(start, min(start + size, last))
            product = _sparse_product if is_sparse(table) else _dense_product
            lanes[k] += product(table[rows], y[rows], s[rows], shift)

    over_blocks(lane, count, threads)


def _dense_product(table: Array, y: Array, s: Array, shift: Array) -> Array:
    d = table.shape[1]
    # In the order of the table: turning it round would cost as much as the product.
    z = np.empty((len(y), len(shift) + 1), order="F" if table.strides[0] < table.strides[1] else "C")
    np.subtract(table, shift[:d], out=z[:, :d])
    np.subtract(y, shift[d:], out=z[:, d:-1])
    z[:, -1] = 1.0
    if (s != 1.0).any():
        z *= s[:, None]
    product: Array = z.T @ z  # NumPy sees the same array twice and computes half
    return product


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
