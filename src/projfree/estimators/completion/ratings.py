"""Ratings as people have them: sparse matrices, triples, data frames, any labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array, all_finite, is_sparse, plain_array, real_array, shown
from projfree.data.frames import is_frame

FORMS = (
    "a SciPy sparse matrix, a data frame with the named columns, (user, item, rating) triples, or arrays "
    "(users, items, ratings)"
)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Labels of users and items, and a value for each pair; ``shape`` where the input was a matrix."""

    users: Array
    items: Array
    values: Array | None
    shape: tuple[int, int] | None = None


def read_ratings(X: Any, y: Any, columns: Sequence[str], *, values: bool = True) -> Ratings:
    """Ratings, or with ``values=False`` pairs, from any of the forms."""
    if is_sparse(X):
        table = X.tocoo()
        users, items, found = table.row, table.col, table.data
        return Ratings(users, items, _values(found, len(users)) if values else None, (X.shape[0], X.shape[1]))
    parts = _parts(X, columns)
    if len(parts) not in (2, 3):
        raise ValueError(f"`X` must be {FORMS}, got {len(parts)} columns.")
    users, items = _labels("users", parts[0]), _labels("items", parts[1])
    if len(users) != len(items):
        raise ValueError(f"`X` must have an item for each user, got {len(users)} users and {len(items)} items.")
    if not len(users) and values:
        raise ValueError("`X` must hold at least one rating, got none.")
    if not values:
        return Ratings(users, items, None)
    given = parts[2] if len(parts) == 3 else y
    if given is None:
        raise ValueError("`fit` needs the ratings: as the third column of `X`, or as `y`.")
    return Ratings(users, items, _values(given, len(users)))


def _parts(X: Any, columns: Sequence[str]) -> list[Any]:
    if is_frame(X):
        missing = [name for name in columns[:2] if name not in X.columns]
        if missing:
            raise ValueError(
                f"`X` has no column {missing[0]!r}; name its columns with `columns=(user, item, rating)`, "
                f"got {shown(list(X.columns))}."
            )
        return [X[name].to_numpy() for name in columns if name in X.columns]
    if isinstance(X, tuple) and all(np.ndim(part) == 1 for part in X):
        return list(X)
    if isinstance(X, list) and X and isinstance(X[0], tuple | list):
        return [np.asarray(part) for part in zip(*X, strict=True)]
    table = plain_array("X", X)
    if table.ndim != 2:
        raise ValueError(f"`X` must be {FORMS}, got shape {table.shape}.")
    return list(table.T)


def _labels(name: str, labels: Any) -> Array:
    array = plain_array(name, labels)
    if array.dtype.kind == "f":
        whole = all_finite(name, array).astype(np.int64)
        if not np.array_equal(whole, array):
            raise ValueError(
                f"`{name}` must be labels: whole numbers or strings, got {shown(array[whole != array][0])}."
            )
        return whole
    if array.dtype.kind == "O":
        kinds = {type(label) for label in array.tolist()}
        if len(kinds) > 1:
            names = " and ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"`{name}` must be labels of one type, got {names}; convert them first, e.g. to strings.")
        array = np.asarray(array.tolist())
    return array


def _values(values: Any, n: int) -> Array:
    out = all_finite("ratings", real_array("ratings", values)).astype(np.float64, copy=False)
    if out.shape != (n,):
        raise ValueError(f"`ratings` must be a vector with one entry for each of the {n} pairs, got shape {out.shape}.")
    return out


def places(ids: Array, labels: Array) -> Array:
    """The place of each label among the sorted ``ids``, -1 where it is not there."""
    if ids.dtype.kind != labels.dtype.kind and {ids.dtype.kind, labels.dtype.kind} - set("iu"):
        return np.full(len(labels), -1)
    at = np.minimum(np.searchsorted(ids, labels), len(ids) - 1)
    return np.where(ids[at] == labels, at, -1)


def last_of_each(rows: Array, cols: Array, width: int) -> Array:
    """The places of the pairs that no later pair repeats, in order: a later rating replaces an earlier one."""
    key = rows.astype(np.int64) * width + cols
    first_from_behind = np.unique(key[::-1], return_index=True)[1]
    return np.sort(len(key) - 1 - first_from_behind)


@dataclass(frozen=True, eq=False)
class Observed:
    """Ratings by their places: rows and columns of the matrix, values, and weights where there are some."""

    rows: Array
    cols: Array
    values: Array
    weight: Array | None

    @classmethod
    def latest(cls, rows: Array, cols: Array, values: Array, weight: Any, width: int) -> Observed:
        """Of each pair the last rating."""
        if weight is not None:
            weight = plain_array("sample_weight", weight).astype(np.float64, copy=False)
            if weight.shape != values.shape:
                raise ValueError(f"`sample_weight` must have one entry for each rating, got shape {weight.shape}.")
        every, kept = cls(rows, cols, values, weight), last_of_each(rows, cols, width)
        return every if len(kept) == len(values) else every.part(kept)

    def part(self, at: Any) -> Observed:
        """Some of the ratings."""
        weight = None if self.weight is None else self.weight[at]
        return Observed(self.rows[at], self.cols[at], self.values[at], weight)

    def __len__(self) -> int:
        return len(self.values)
