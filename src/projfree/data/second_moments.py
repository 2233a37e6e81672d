"""Second moments of the rows with weights of their own: the Hessian of a loss, in one read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array, is_sparse
from projfree.data.products import LANE_ROWS, LANES, add_products, table_bytes
from projfree.deadline import stopper
from projfree.numerics.sums import tree_sum
from projfree.runtime import over_blocks, single_blas

if TYPE_CHECKING:
    from projfree.data.local import LocalData

#: Bytes of weights, and of products of features, that are formed at a time.
BLOCK_BYTES = 1 << 24
#: The fewest rows of a block, and the most products of two features for which all pairs of outputs are multiplied at
#: once: the products of a block then take at most 32 MB.
FEWEST, MOST_PRODUCTS = 64, 1 << 16


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
    places : ndarray of int, optional
        Places in ``features`` whose rows of the matrices are wanted, with that of the last coordinate; all by default.
    centre : ndarray, optional
        What c is in place of that, in the units of the table itself; for rows that are a part of others.
    """

    weights: int
    numbers: int
    centred: bool
    features: Array | None = None
    places: Array | None = None
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

    @property
    def kept(self) -> Any:
        """The rows of the matrices that are wanted, as an index."""
        return slice(None) if self.places is None else np.append(self.places, -1)


def second_moments(data: LocalData, h: RowWeights, wanted: Moments) -> Array:
    """The matrices that are wanted for each column of the weights, of shape ``(m, d + 1, d + 1)``, in one read.

    With d the number of features that are looked at; the second side is that of ``wanted.kept``.
    """
    columns = data.shape(())[0]
    d = columns if wanted.features is None else len(wanted.features)
    count, side = (LANES, d) if wanted.places is None else (1, len(wanted.places))
    shift = np.zeros(d)
    if wanted.centred:
        shift = wanted.among(data.centre_row() if wanted.centre is None else wanted.centre)
    lanes = np.zeros((count, wanted.weights, side + 1, d + 1))
    step, add = BLOCK_BYTES // (8 * wanted.numbers), _add_each
    if wanted.places is not None:
        add = partial(_add_some, wanted.kept)
    elif step < LANES * LANE_ROWS and (d + 1) ** 2 <= MOST_PRODUCTS:
        # Blocks too short to pay for a product for each weight: one product for all of them.
        add, step = _add_all, BLOCK_BYTES // (8 * (wanted.numbers + (d + 1) ** 2))
    with single_blas():
        for rows, table in data.tables(table_bytes(columns)):
            for part, block in _parts(rows, table, max(step, FEWEST)):
                add(lanes, wanted.among(block), h(part, block), shift, data.threads)
    return tree_sum(lanes)


def _parts(rows: slice, table: Any, step: int) -> Iterator[tuple[slice, Any]]:
    """The table in blocks of at most so many rows."""
    if rows.stop - rows.start <= step:
        yield rows, table
        return
    for first in range(rows.start, rows.stop, step):
        last = min(first + step, rows.stop)
        yield slice(first, last), table[first - rows.start : last - rows.start]


def _add_some(kept: Any, lanes: Array, table: Any, weights: Array, shift: Array, threads: int) -> None:
    """The rows of the products that belong to some of the features."""
    block = table.toarray() if is_sparse(table) else table
    z = np.column_stack([block - shift, np.ones(len(block))])
    for j in range(weights.shape[1]):
        lanes[0, j] += (z[:, kept] * weights[:, j : j + 1]).T @ z


def _add_each(lanes: Array, table: Any, weights: Array, shift: Array, threads: int) -> None:
    """One product of the rows for each of their weights."""
    roots, nothing = np.sqrt(weights), np.empty((table.shape[0], 0))
    for j in range(weights.shape[1]):
        add_products(lanes[:, j], table, nothing, roots[:, j], shift, threads)


def _add_all(lanes: Array, table: Any, weights: Array, shift: Array, threads: int) -> None:
    """One product of all weights with all products of two features, for few rows and many weights."""
    step, stop = -(-len(weights) // LANES), stopper()
    block = table.toarray() if is_sparse(table) else table

    def lane(k: int) -> None:
        rows = slice(k * step, min((k + 1) * step, len(weights)))
        stop()
        if rows.start < rows.stop:
            z = np.column_stack([block[rows] - shift, np.ones(rows.stop - rows.start)])
            pairs = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
            lanes[k] += (weights[rows].T @ pairs).reshape(lanes[k].shape)

    over_blocks(lane, LANES, threads)
