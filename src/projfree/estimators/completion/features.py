"""Features of users and items, by id: what may be given, and how it enters the problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import OnPattern, Pattern
from projfree.checks import Array, is_sparse, real_array, shown
from projfree.data.convert import from_frame, is_frame
from projfree.estimators.completion.labels import KINDS, labels_of, places

#: Features beyond this, whose squares overflow, are refused.
LARGEST = 1e150


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """A row of numbers for each id, as a sparse matrix: centred where it was dense, and of unit size in each column.

    A number that is missing is NaN; centre and scale are those of the others.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    centre, scale : ndarray
        What was taken off each column, and what it was divided by then.
    indptr, indices, values : ndarray
        Row i has ``values[indptr[i]:indptr[i + 1]]`` in the columns ``indices[...]``.
    """

    names: tuple[str, ...]
    centre: Array
    scale: Array
    indptr: Array
    indices: Array
    values: Array

    @classmethod
    def of(cls, table: Any, names: tuple[str, ...]) -> FeatureTable:
        """The table in units of its own columns."""
        centre, size = _sparse_sizes(table) if is_sparse(table) else _dense_sizes(table)
        about = 1.0 + np.abs(centre)  # what rounding leaves of a constant column is small compared with this
        scale = np.where(size > 1e-12 * about, size, about)
        return cls._in_units(table, names, centre, scale)

    @classmethod
    def _in_units(cls, table: Any, names: tuple[str, ...], centre: Array, scale: Array) -> FeatureTable:
        from scipy.sparse import csr_array

        given = csr_array(table if is_sparse(table) else (table - centre) / scale)
        values = given.data / scale[given.indices] if is_sparse(table) else given.data
        return cls(names, centre, scale, given.indptr.astype(np.int64), given.indices.astype(np.int32), values)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows there are, and how many columns."""
        return len(self.indptr) - 1, len(self.names)

    @cached_property
    def on(self) -> OnPattern:
        """The table as the problem takes it."""
        return OnPattern(Pattern(self.indptr, self.indices, self.shape), self.values)

    def like(self, name: str, given: Any) -> OnPattern:
        """Rows of others in the same units, which must have the same columns."""
        table, names = table_of(name, given)
        refuse_other_columns(name, self, names)
        dense = table if not is_sparse(table) or not self.centre.any() else table.toarray()
        return FeatureTable._in_units(dense, self.names, self.centre, self.scale).on


def _dense_sizes(table: Array) -> tuple[Array, Array]:
    """The mean of each column and its standard deviation, of the numbers that are there."""
    there = ~np.isnan(table)
    counts = np.maximum(there.sum(axis=0), 1)
    centre = np.where(there, table, 0.0).sum(axis=0) / counts
    return centre, np.sqrt((np.where(there, table - centre, 0.0) ** 2).sum(axis=0) / counts)


def _sparse_sizes(table: Any) -> tuple[Array, Array]:
    """Zero, and the root mean square of each column, of the numbers that are there: those not stored are zeros."""
    rows, columns = table.shape
    missing = np.isnan(table.data)
    squares = np.bincount(table.indices, np.where(missing, 0.0, table.data) ** 2, columns)
    counts = rows - np.bincount(table.indices[missing], minlength=columns)
    return np.zeros(columns), np.sqrt(squares / np.maximum(counts, 1))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def refuse_other_columns(name: str, fitted: FeatureTable | None, names: tuple[str, ...]) -> None:
    """Raise where features have other columns than those of the fit, or where this had none."""
    if fitted is None:
        raise ValueError(f"`{name}` must be left out, since the model was fitted without them.")
    if len(names) != len(fitted.names) or names not in (fitted.names, _numbered(names)):
        raise ValueError(
            f"`{name}` must have the {len(fitted.names)} columns of the fit, {_listed(fitted.names)}, got "
            f"{len(names)}: {_listed(names)}."
        )


def table_of(name: str, given: Any) -> tuple[Any, tuple[str, ...]]:
    """A table of numbers, finite or missing, dense or sparse, and the names of its columns."""
    names = None
    if is_frame(given):
        given, names = from_frame(name, given)
    if is_sparse(given):
        table = given.tocsr().astype(np.float64)
        table.sum_duplicates()
    else:
        table = np.asarray(given, np.float64) if names is not None else real_array(name, given).astype(np.float64)
    table = _usable(name, table)
    return table, _numbered(range(table.shape[1])) if names is None else names


def _numbered(columns: Sequence[Any]) -> tuple[str, ...]:
    """The names of columns that have none."""
    return tuple(f"x{j}" for j in range(len(columns)))


def _usable(name: str, table: Any) -> Any:
    """The table, or a sentence where it has no features, or ones whose squares are not finite."""
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(f"`{name}` must be a table with a row for each id and some features, got shape {table.shape}.")
    numbers = np.abs(table.data if is_sparse(table) else table)
    largest = float(np.fmax.reduce(numbers, axis=None, initial=0.0))
    if np.isinf(largest):
        raise ValueError(f"`{name}` must be finite, or NaN where a number is missing, got inf; leave such entries out.")
    if largest > LARGEST:
        raise ValueError(f"`{name}` has entries as large as {largest:.3g}; rescale its columns.")
    return table


def read_features(name: str, given: Any, column: str) -> tuple[Array, Any, tuple[str, ...]]:
    """Ids, a table with a row for each, and the names of its columns, from any of the forms.

    A frame has its ids in the column that is called as in the ratings, or as its index; a mapping has a row for each
    id; a tuple is ``(ids, table)``; the rows of an array alone are those of the ids 0, 1, and so on.
    """
    if isinstance(given, Mapping) and not is_sparse(given):  # some sparse matrices are mappings too
        given = list(given), _of_one_length(name, given)
    if isinstance(given, tuple) and len(given) == 2:
        ids, given = given
    elif is_frame(given) and column in list(given.columns):
        rest = [name for name in given.columns if name != column]
        ids, given = given[column].to_numpy(), given[rest]
    elif is_frame(given):
        if not hasattr(given, "index"):
            raise ValueError(f"`{name}` must have a column {column!r} with the ids, got {shown(list(given.columns))}.")
        ids = given.index.to_numpy()
    else:
        given = given if is_sparse(given) else real_array(name, given)
        ids = np.arange(given.shape[0] if given.ndim else 0)
    table, names = table_of(name, given)
    labels = labels_of(f"{name} ids", ids)
    if len(labels) != table.shape[0]:
        raise ValueError(f"`{name}` must have an id for each row, got {len(labels)} ids and {table.shape[0]} rows.")
    _refuse_twice(name, labels)
    return labels, table, names


def _of_one_length(name: str, given: Mapping[Any, Any]) -> list[Array]:
    """The rows of a mapping, all of the same number of features."""
    rows = {label: real_array(name, row) for label, row in given.items()}
    first = next(iter(rows.values()), np.zeros(0))
    for label, row in rows.items():
        if row.ndim != 1:
            got = f"{shown(row[()])} for {shown(label)}"
            raise ValueError(f"`{name}` must have a list of numbers for each id, got {got}.")
        if row.shape != first.shape:
            raise ValueError(
                f"`{name}` must have as many numbers for each id, got shape {row.shape} for {shown(label)} and "
                f"{first.shape} for {shown(next(iter(rows)))}."
            )
    return list(rows.values())


def _refuse_twice(name: str, labels: Array) -> None:
    found, counts = np.unique(labels, return_counts=True)
    if len(found) < len(labels):
        raise ValueError(
            f"`{name}` must have one row for each id, got {shown(found[counts > 1][0])} {counts.max()} times."
        )


def refuse_missing(name: str, of: str, ids: Array, labels: Array) -> None:
    """Raise where somebody in the ratings has no row of features."""
    if len(ids) and len(labels) and ids.dtype.kind != labels.dtype.kind:
        raise TypeError(
            f"`{name}` must have the {of} of the ratings as ids, which are {KINDS[labels.dtype.kind]}, got "
            f"{KINDS[ids.dtype.kind]}, such as {shown(ids[0])}; give `(ids, table)`."
        )
    at = places(np.unique(ids), labels, of)
    if (at < 0).any():
        raise ValueError(
            f"`{name}` must have a row for each of the {of} in the ratings, got none for {shown(labels[at < 0][0])}; "
            "add one, with NaN for what is not known, or leave such ratings out."
        )
