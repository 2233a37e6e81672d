"""Features of users and items: reading tables, matching ids, and scaling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import OnPattern, Pattern
from projfree.checks import Array, is_sparse, real_array, shown
from projfree.completion.ratings import LABEL_KINDS, check_labels, index_labels
from projfree.data.convert import from_frame, is_frame

#: Largest absolute feature; squares of larger ones overflow.
MAX_FEATURE = 1e150


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Scaled features, one row per id, as a sparse matrix in CSR format.

    Dense features are centred, and all columns are scaled to unit root mean square. A missing number is replaced by the
    mean of its column. Row i holds ``values[indptr[i]:indptr[i + 1]]`` in the columns ``indices[...]``, where
    ``values`` are the features minus ``centre``, divided by ``scale``.
    """

    names: tuple[str, ...]
    mean: Array
    centre: Array
    scale: Array
    indptr: Array
    indices: Array
    values: Array

    @classmethod
    def of(cls, table: Any, names: tuple[str, ...]) -> FeatureTable:
        """Scale a table by its own mean and root mean square."""
        if is_sparse(table):
            rows, columns, values = table.shape[0], table.indices, table.data
        else:
            rows, columns, values = len(table), np.tile(np.arange(table.shape[1]), len(table)), table.ravel()
        missing, known = np.bincount(columns, np.isnan(values), table.shape[1]), np.nan_to_num(values)
        there = np.maximum(rows - missing, 1)
        mean = np.bincount(columns, known, len(names)) / there
        centre = np.zeros(len(names)) if is_sparse(table) else mean
        squares = np.bincount(columns, np.where(np.isnan(values), 0.0, known - centre[columns]) ** 2, len(names))
        size, about = np.sqrt(squares / there), 1.0 + np.abs(mean)
        scale = np.where(size > 1e-12 * about, size, about)  # do not scale up rounding errors of constant columns
        return cls._from_scaled(table, names, mean, centre, scale)

    @classmethod
    def _from_scaled(cls, table: Any, names: tuple[str, ...], mean: Array, centre: Array, scale: Array) -> FeatureTable:
        from scipy.sparse import csr_array

        given = csr_array(table if is_sparse(table) else (np.where(np.isnan(table), mean, table) - centre) / scale)
        values = given.data
        if is_sparse(table):
            values = np.where(np.isnan(values), mean[given.indices], values) / scale[given.indices]
        return cls(names, mean, centre, scale, given.indptr.astype(np.int64), given.indices.astype(np.int32), values)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.indptr) - 1, len(self.names)

    @cached_property
    def entries(self) -> OnPattern:
        """The table as an `OnPattern` matrix."""
        return OnPattern(Pattern(self.indptr, self.indices, self.shape), self.values)

    @property
    def matrix(self) -> Any:
        """The table as a SciPy array."""
        from scipy.sparse import csr_array

        return csr_array((self.values, self.indices, self.indptr), shape=self.shape)

    def transform(self, name: str, given: Any) -> FeatureTable:
        """Scale the features of other ids in the same way; raise ValueError if the columns differ."""
        table, names = check_table(name, given)
        self.refuse_other_columns(name, names)
        dense = table if not is_sparse(table) or not self.centre.any() else table.toarray()
        return FeatureTable._from_scaled(dense, self.names, self.mean, self.centre, self.scale)

    def refuse_other_columns(self, name: str, names: tuple[str, ...]) -> None:
        """Raise ValueError if the columns are not those of the fit."""
        if len(names) != len(self.names) or names not in (self.names, _default_names(len(names))):
            one, other = (", ".join(each[:4]) + ", ..." * (len(each) > 4) for each in (self.names, names))
            raise ValueError(
                f"`{name}` must have the {len(self.names)} columns of the fit, {one}, got {len(names)}: {other}."
            )


def _default_names(count: int) -> tuple[str, ...]:
    """Return default names of columns."""
    return tuple(f"x{j}" for j in range(count))


def check_table(name: str, given: Any) -> tuple[Any, tuple[str, ...]]:
    """Check a table of finite or missing numbers; return it with the names of its columns."""
    given, names = from_frame(name, given) if is_frame(given) else (given, None)
    if is_sparse(given):
        table = given.tocsr().astype(np.float64)
        table.sum_duplicates()
    else:
        table = np.asarray(given if names is not None else real_array(name, given), np.float64)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(f"`{name}` must be a table with a row for each id and some features, got shape {table.shape}.")
    largest = float(np.fmax.reduce(np.abs(table.data if is_sparse(table) else table), axis=None, initial=0.0))
    if np.isinf(largest):
        raise ValueError(f"`{name}` must be finite, or NaN where a number is missing, got inf; leave such entries out.")
    if largest > MAX_FEATURE:
        raise ValueError(f"`{name}` has entries as large as {largest:.3g}; rescale its columns.")
    return table, _default_names(table.shape[1]) if names is None else names


def read_features(name: str, given: Any, column: Any) -> tuple[Array, Any, tuple[str, ...]]:
    """Read features in any of the accepted forms; return the ids, the table and the names of its columns.

    A data frame has the ids in its index, or in the column with the name of the ids in the ratings. A tuple is ``(ids,
    table)``. The rows of an array belong to the ids 0, 1, and so on.
    """
    if isinstance(given, tuple) and len(given) == 2:
        ids, given = given
    elif is_frame(given) and column in list(given.columns):
        ids, given = given[column].to_numpy(), given[[name for name in given.columns if name != column]]
    elif is_frame(given):
        if not hasattr(given, "index"):
            raise ValueError(f"`{name}` must have a column {column!r} with the ids, got {shown(list(given.columns))}.")
        ids = given.index.to_numpy()
    else:
        given = given if is_sparse(given) else real_array(name, given)
        ids = np.arange(given.shape[0] if given.ndim else 0)
    table, names = check_table(name, given)
    labels = check_labels(f"{name} ids", ids)
    if len(labels) != table.shape[0]:
        raise ValueError(f"`{name}` must have an id for each row, got {len(labels)} ids and {table.shape[0]} rows.")
    unique, counts = np.unique(labels, return_counts=True)
    if len(unique) < len(labels):
        raise ValueError(
            f"`{name}` must have one row for each id, got {shown(unique[counts > 1][0])} {counts.max()} times."
        )
    return labels, table, names


def align_features(
    name: str, of: str, given: Any, column: Any, ids: Array, fitted: FeatureTable | None = None
) -> tuple[Array, FeatureTable]:
    """Match features with the ids of the ratings; return all ids of the table, sorted, and the features in this order.

    Raises an error if one of ``ids`` has no features, or if the columns differ from those of ``fitted``.
    """
    labels, table, names = read_features(name, given, column)
    if len(labels) and len(ids) and labels.dtype.kind != ids.dtype.kind:
        raise TypeError(
            f"`{name}` must have the {of} of the ratings as ids, which are {LABEL_KINDS[ids.dtype.kind]}, got "
            f"{LABEL_KINDS[labels.dtype.kind]}, such as {shown(labels[0])}; give `(ids, table)`."
        )
    order = np.argsort(labels, kind="stable")
    at = index_labels(labels[order], ids, of)
    if (at < 0).any():
        raise ValueError(
            f"`{name}` must have a row for each of the {of} in the ratings, got none for {shown(ids[at < 0][0])}; "
            "add one, with NaN for what is not known, or leave such ratings out."
        )
    if fitted is not None:
        fitted.refuse_other_columns(name, names)
    return labels[order], FeatureTable.of(table[order], names)
