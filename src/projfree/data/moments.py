"""Measures of columns and rows that are read off a table once, dense or sparse."""

from __future__ import annotations

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
        s = row_weights(data, rows)
        if is_sparse(table):
            away = table.data - mean[table.indices]
            first = first + _on(table, away).T @ s
            second = second + _on(table, away**2).T @ s
            there = there + _on(table, np.ones_like(away)).T @ s
            stored = stored + np.bincount(table.indices, minlength=len(mean))
        else:
            away = table - mean
            first, second = first + s @ away, second + s @ np.square(away, out=away)
            stored = stored + len(s)
    return first, second, there, stored


def deviation_of(sums: tuple[Array, Array, Array, Array], mean: Array, data: Data, constant: float) -> Array:
    """The standard deviations that the sums of all rows amount to."""
    first, second, there, stored = sums
    absent = np.where(stored == data.n, 0.0, np.maximum(1.0 - there, 0.0))  # the weight of what is not stored
    variance = second + absent * mean**2 - (first - absent * mean) ** 2
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return np.where(deviation <= UNIT * data.summation() * np.hypot(mean, deviation), constant, deviation)


def row_weights(data: LocalData, rows: slice) -> Array:
    """The normalised weights of some rows, one number each."""
    s = data.weights(rows)
    return np.full(rows.stop - rows.start, s) if isinstance(s, float) else s


def row_measures(data: LocalData, shift: Array, scale: Array) -> tuple[float, float]:
    r"""The largest norm and the weighted mean squared norm of the rows :math:`(|x_i| + |shift|) / scale`; one read."""
    largest, mean_square, size = 0.0, 0.0, np.abs(shift)
    with np.errstate(over="ignore", invalid="ignore"):
        always = float(np.sum((size / scale) ** 2))
        for rows, table in data.tables():
            if is_sparse(table):
                x = np.abs(table.data)
                extra = x * (x + 2.0 * size[table.indices]) / scale[table.indices] ** 2
                squares = always + _on(table, extra) @ np.ones(len(scale))
            else:
                z = (np.abs(table) + size) / scale
                squares = np.einsum("ij,ij->i", z, z)
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
        s = row_weights(data, rows)
        before, largest = largest, np.maximum(largest, _largest(table))
        by = np.where(largest > 0.0, largest, 1.0)
        squares *= (before / by) ** 2
        if is_sparse(table):
            squares += _on(table, (table.data / by[table.indices]) ** 2).T @ s
        else:
            squares += s @ (table / by) ** 2
    return np.stack([largest * np.sqrt(squares), largest])


def _largest(table: Any) -> Array:
    """The largest size of the entries of each column."""
    if not is_sparse(table):
        return np.asarray(np.abs(table).max(axis=0))
    out = np.zeros(table.shape[1])
    np.maximum.at(out, table.indices, np.abs(table.data))
    return out


def _on(table: Any, values: Array) -> Any:
    return type(table)((values, table.indices, table.indptr), shape=table.shape)


def measures(largest: float, mean: float) -> tuple[float, float]:
    """`row_norm` and `mean_square` from the largest and the mean squared norm of the rows.

    Squares below the range of floating point count as zero in both; no row is longer than the floor then.
    """
    return max(float(np.sqrt(largest)), 1e-150), max(mean, 1e-300)
