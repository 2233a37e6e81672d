"""Second moments of the rows with weights of their own: the Hessian of a loss, in one read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array, is_sparse
from projfree.data.base import Data
from projfree.data.products import LANE_ROWS, LANES, add_products, rough_centre, table_bytes
from projfree.numerics.sums import tree_sum
from projfree.runtime import over_blocks, single_blas

#: Bytes of weights, and of products of features, that are formed at a time.
BLOCK_BYTES = 1 << 24
#: The fewest rows of a block, and the most products of two features for which all pairs of outputs are multiplied at
#: once: the products of a block then take at most 32 MB.
FEWEST, MOST_PRODUCTS = 64, 1 << 16


@dataclass(frozen=True)
class RowWeights:
    """Several non-negative weights for each row, formed a block of rows at a time.

    Attributes
    ----------
    of : callable
        ``of(rows, table)``, with ``rows`` a slice and their features: an array of shape ``(rows, columns)``.
    columns : int
        How many weights a row has.
    numbers : int
        How many numbers a row takes while they are formed.
    """

    of: Callable[[slice, Any], Array]
    columns: int
    numbers: int


def second_moments(
    data: Data, h: RowWeights, *, centred: bool, features: Array | None = None, places: Array | None = None
) -> Array:
    """See `Data.second_moments`; the way for tables of every kind."""
    if places is not None:
        assert features is not None
        return _between(data, h, centred, features, places)
    d = data.shape(())[0] if features is None else len(features)
    shift, lanes = np.zeros(d), np.zeros((LANES, h.columns, d + 1, d + 1))
    add = _add_each
    step = BLOCK_BYTES // (8 * h.numbers)
    if step < LANES * LANE_ROWS and (d + 1) ** 2 <= MOST_PRODUCTS:
        # Blocks too short to pay for a product for each weight: one product for all of them.
        add, step = _add_all, BLOCK_BYTES // (8 * (h.numbers + (d + 1) ** 2))
    with single_blas():
        for rows, table in data.tables(table_bytes(data.shape(())[0])):
            if centred and not rows.start:
                shift = rough_centre(_among(table, features))
            for part, block in _parts(rows, table, max(step, FEWEST)):
                add(lanes, _among(block, features), h.of(part, block), shift, data.threads)
    return tree_sum(lanes)


def _between(data: Data, h: RowWeights, centred: bool, features: Array, places: Array) -> Array:
    """The rows of the matrices that belong to some of the features."""
    shift, total = np.zeros(len(features)), np.zeros((h.columns, len(places) + 1, len(features) + 1))
    with single_blas():
        for rows, table in data.tables(table_bytes(data.shape(())[0])):
            if centred and not rows.start:
                shift = rough_centre(_among(table, features))
            for part, block in _parts(rows, table, max(BLOCK_BYTES // (8 * h.numbers), FEWEST)):
                chosen, weights = _among(block, features), h.of(part, block)
                dense = chosen.toarray() if is_sparse(chosen) else chosen
                z = np.column_stack([dense - shift, np.ones(len(dense))])
                for j in range(h.columns):
                    total[j] += (z[:, np.append(places, -1)] * weights[:, j : j + 1]).T @ z
    return total


def _among(table: Any, features: Array | None) -> Any:
    if features is None or np.array_equal(features, np.arange(table.shape[1])):
        return table
    return table[:, features]


def _parts(rows: slice, table: Any, step: int) -> Iterator[tuple[slice, Any]]:
    """The table in blocks of at most so many rows."""
    if rows.stop - rows.start <= step:
        yield rows, table
        return
    for first in range(rows.start, rows.stop, step):
        last = min(first + step, rows.stop)
        yield slice(first, last), table[first - rows.start : last - rows.start]


def _add_each(lanes: Array, table: Any, weights: Array, shift: Array, threads: int) -> None:
    """One product of the rows for each of their weights."""
    roots, nothing = np.sqrt(weights), np.empty((table.shape[0], 0))
    for j in range(weights.shape[1]):
        add_products(lanes[:, j], table, nothing, roots[:, j], shift, threads)


def _add_all(lanes: Array, table: Any, weights: Array, shift: Array, threads: int) -> None:
    """One product of all weights with all products of two features, for few rows and many weights."""
    step = -(-len(weights) // LANES)
    block = table.toarray() if is_sparse(table) else table

    def lane(k: int) -> None:
        rows = slice(k * step, min((k + 1) * step, len(weights)))
        if rows.start < rows.stop:
            z = np.column_stack([block[rows] - shift, np.ones(rows.stop - rows.start)])
            pairs = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
            lanes[k] += (weights[rows].T @ pairs).reshape(lanes[k].shape)

    over_blocks(lane, LANES, threads)
