"""Statistics of columns and rows, dense or sparse, each in one read of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, is_sparse

if TYPE_CHECKING:
    from projfree.data.base import Data
    from projfree.data.local import LocalData


def column_deviation(data: LocalData, constant: float = 1.0) -> Array:
    """The weighted standard deviation of each column, ``constant`` for one that is so up to rounding; one read.

    Deviations are taken from the mean before they are squared, so that a large mean costs no digits.
    """
    mean = data.mean_row()
    return deviation_of(deviation_sums(data, mean), mean, data, constant)


def deviation_sums(data: LocalData, mean: Array) -> tuple[Array, Array, Array, Array]:
    """Weighted sums of entries less the mean, of their squares and of ones, and the number of stored entries.

    Where all entries are stored, the ones do not matter and are left out.
    """
    first, second, there, stored = (np.zeros(()),) * 4
    for rows, table in data.tables():
        s, away = row_weights(data, rows), _map_entries(table, np.subtract, mean)
        first, second = first + away.T @ s, second + (away**2).T @ s
        if is_sparse(table):
            there = there + _map_entries(table, lambda x, _: np.ones_like(x), mean).T @ s
            stored = stored + np.bincount(table.indices, minlength=len(mean))
        else:
            stored = stored + len(s)
    return first, second, there, stored


def deviation_of(sums: tuple[Array, Array, Array, Array], mean: Array, data: Data, constant: float) -> Array:
    """The standard deviations that the sums of all rows amount to."""
    first, second, there, stored = sums
    absent = np.where(stored == data.n, 0.0, np.maximum(1.0 - there, 0.0))  # the weight of what is not stored
    variance = second + absent * mean**2 - (first - absent * mean) ** 2
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return np.where(deviation <= UNIT * data.summation() * np.hypot(mean, deviation), constant, deviation)


def row_measures(data: LocalData, shift: Array, scale: Array) -> tuple[float, float]:
    r"""The largest norm and the weighted mean squared norm of the rows :math:`(|x_i| + |shift|) / scale`; one read."""
    largest, mean_square, size, ones = 0.0, 0.0, np.abs(shift), np.ones(len(scale))
    with np.errstate(over="ignore", invalid="ignore"):
        always = float(np.sum((size / scale) ** 2))
        for rows, table in data.tables():
            z = abs(_map_entries(table, np.divide, scale))
            squares = always + (z**2) @ ones + 2.0 * (z @ (size / scale))
            largest = max(largest, float(squares.max()))
            mean_square += float(np.sum(squares * data.weights(rows)))
    if not np.isfinite([largest, mean_square]).all():
        raise ValueError(f"`scale` is too small for the features, down to {scale.min():g}: scaled rows overflow.")
    return measures(largest, mean_square)


def column_sizes(data: LocalData) -> Array:
    """The weighted root mean square and the largest size of the entries of each column, in two rows; one read.

    Columns are divided by the largest entry so far before they are squared, so that no square leaves the range of
    numbers.
    """
    largest, squares = np.zeros(data.shape(())), np.zeros(data.shape(()))
    for rows, table in data.tables():
        here = abs(table).max(axis=0)
        before, largest = largest, np.maximum(largest, here.toarray().ravel() if is_sparse(table) else here)
        by = np.where(largest > 0.0, largest, 1.0)
        squares *= (before / by) ** 2
        squares += (_map_entries(table, np.divide, by) ** 2).T @ row_weights(data, rows)
    return np.stack([largest * np.sqrt(squares), largest])


def row_weights(data: LocalData, rows: slice) -> Array:
    """The normalised weights of some rows, one number each."""
    s = data.weights(rows)
    return np.full(rows.stop - rows.start, s) if isinstance(s, float) else s


def _map_entries(table: Any, f: Callable[[Array, Array], Array], numbers: Array) -> Any:
    """``f(x, numbers[j])`` of the stored entries x in columns j, as a table of the same format."""
    if not is_sparse(table):
        return f(table, numbers)
    return type(table)((f(table.data, numbers[table.indices]), table.indices, table.indptr), shape=table.shape)


def measures(largest: float, mean: float) -> tuple[float, float]:
    """`row_norm` and `mean_square` from the largest and the mean squared norm of the rows.

    Squares below the range of floating point count as zero in both; no row is longer than the floor then.
    """
    return max(float(np.sqrt(largest)), 1e-150), max(mean, 1e-300)
