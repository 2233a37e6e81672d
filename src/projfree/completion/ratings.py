"""Ratings as people have them: sparse matrices, dense ones with NaN, triples, data frames; labels of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import Pattern
from projfree.checks import Array, all_finite, is_missing, is_sparse, plain_array, real_array, shown
from projfree.data.convert import is_frame
from projfree.data.local import checked_weights

#: The size of the largest weight, so that sums of weighted ratings neither overflow nor lose digits.
LARGEST = (1e-100, 1e100)
TABLES = "a SciPy sparse matrix, a data frame with the named columns, "
#: What each argument may be.
FORMS = {
    "ratings": f"{TABLES}(user, item, rating) triples, a dense matrix with NaN for missing ratings, or a tuple of "
    "arrays (users, items, ratings)",
    "pairs": f"{TABLES}(user, item) pairs, of which one is [(user, item)], or a tuple of arrays (users, items)",
    "own": "what one user has rated: {item: rating}, a series of ratings by item, pairs (item, rating), a data frame "
    "with the named columns, or a tuple of arrays (items, ratings)",
}
#: What labels of each kind of array are called.
KINDS = {"i": "whole numbers", "U": "text", "S": "bytes", "b": "truth values"}
#: Labels are stored as integers of 64 bits.
LIMIT = 2**63


# ---------------------------------------------------------------- labels


def labels_of(name: str, given: Any) -> Array:
    """Labels as an array of one kind: whole numbers, text, bytes or truth values."""
    array = given if isinstance(given, list | tuple) else plain_array(name, given)
    if isinstance(array, list | tuple) or array.dtype.kind == "O":  # NumPy would unite what does not belong together
        found = list(array)
        _refuse_missing(name, [is_missing(label) for label in found], found)
        if len({_kind(type(label)) for label in found}) > 1:
            names = " and ".join(sorted({type(label).__name__ for label in found}))
            raise TypeError(f"`{name}` must be labels of one type, got {names}; convert them first, e.g. to strings.")
        cut = next((label for label in found if isinstance(label, str | bytes) and label[-1:] in ("\0", b"\0")), None)
        if cut is not None:
            raise ValueError(f"`{name}` must not end in zero characters, which NumPy drops, got {shown(cut)}.")
        array = plain_array(name, found)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be a vector of labels, got shape {array.shape}.")
    if array.dtype.kind in "uf" or (array.dtype.kind == "O" and _kind(type(array[0])) == "number"):
        return _whole(name, array)
    if array.dtype.kind not in KINDS:
        kinds = {type(label).__name__ for label in array.tolist()} if array.dtype.hasobject else {array.dtype.name}
        raise TypeError(
            f"`{name}` must be labels, whole numbers or strings, got {' and '.join(sorted(kinds))}; convert them to "
            "strings first."
        )
    return array


def _kind(label: type) -> Any:
    """What labels of a type count as."""
    for kind, types in (("truth", bool | np.bool_), ("text", str), ("number", int | float | np.integer | np.floating)):
        if issubclass(label, types):
            return kind
    return label


def _whole(name: str, array: Array) -> Array:
    """Numbers as signed integers."""
    _refuse_missing(name, np.isnan(array.astype(np.float64)), array)
    large = (
        np.array([abs(label) >= LIMIT for label in array.tolist()])
        if array.dtype.kind != "f"
        else (np.abs(array) >= LIMIT)
    )
    if large.any():
        label = shown(array[large][0])
        raise ValueError(f"`{name}` must be whole numbers below 2**63, got {label}; convert them to strings.")
    whole = array.astype(np.int64)
    if not np.array_equal(whole, array):
        raise ValueError(f"`{name}` must be labels: whole numbers or strings, got {shown(array[whole != array][0])}.")
    return whole


def _refuse_missing(name: str, missing: Any, labels: Any) -> None:
    at = np.flatnonzero(missing)
    if len(at):
        raise ValueError(
            f"`{name}` must not have missing labels, got {shown(labels[at[0]])} at index {int(at[0])}; drop such "
            "ratings first."
        )


def refuse_other_kind(name: str, ids: Array, labels: Array) -> None:
    """Raise if labels are of another kind than those of the fit: none of them would be found."""
    if len(labels) and ids.dtype.kind != labels.dtype.kind:
        kinds = [KINDS[array.dtype.kind] for array in (ids, labels)]
        raise TypeError(
            f"`{name}` must be {kinds[0]}, as in the fit, got {kinds[1]}, such as {shown(labels[0])}; convert them "
            "first."
        )


def places(ids: Array, labels: Array, name: str) -> Array:
    """The index of each label among the sorted ``ids``, -1 if it is not there."""
    refuse_other_kind(name, ids, labels)
    at = np.minimum(np.searchsorted(ids, labels), len(ids) - 1)
    return np.where(ids[at] == labels, at, -1)


# ---------------------------------------------------------------- ratings


@dataclass(frozen=True, eq=False)
class GivenRatings:
    """Labels of users and items and a value for each pair; ``shape`` is that of a matrix if one was given."""

    users: Array
    items: Array
    values: Array
    shape: tuple[int, int] | None = None
    weight: Array | None = None
    #: The indices of these ratings among all that were given, if some have the weight zero.
    at: Array | None = None

    def last(self) -> Array:
        """The indices of the pairs that no later pair repeats."""
        rows, cols = (np.unique(part, return_inverse=True)[1] for part in (self.users, self.items))
        return last_of_each(rows, cols, len(cols))


def read_ratings(X: Any, y: Any, columns: Sequence[Any], sample_weight: Any = None) -> GivenRatings:
    """Ratings in any of the forms; a weight of zero is that of a rating which is not there."""
    shape, parts = _table(X, y, columns)
    if len(parts) not in (2, 3):
        raise _wrong("ratings", f"{len(parts)} columns")
    if len(parts) == 3 and y is not None:
        raise ValueError("`y` must be left out if `X` holds the ratings; give pairs (user, item) with `y`.")
    if len(parts) == 2 and y is None:
        name = shown(columns[-1])
        raise ValueError(f"the ratings are missing: give them as `y`, or as the third column of `X`, in frames {name}.")
    users, items = _pair(parts)
    if not len(users):
        raise ValueError("`X` must hold at least one rating, got none.")
    values = _values(parts[2] if len(parts) == 3 else y, len(users))
    if sample_weight is None:
        return GivenRatings(users, items, values, shape)
    checked_weights(sample_weight, len(users))
    weight = plain_array("sample_weight", sample_weight).astype(np.float64, copy=False)
    if not LARGEST[0] <= float(weight.max()) <= LARGEST[1]:
        raise ValueError(
            f"`sample_weight` must have its largest between {LARGEST[0]:g} and {LARGEST[1]:g}, got {weight.max():g}; "
            "multiply all by a number, since their ratios alone count."
        )
    at = np.flatnonzero(weight > 0.0)
    return GivenRatings(users[at], items[at], values[at], shape, weight[at], at)


def read_pairs(X: Any, columns: Sequence[Any]) -> tuple[Array, Array]:
    """The users and items of pairs, of which there may be none; ratings beside them are ignored."""
    parts = [X.tocoo().row, X.tocoo().col] if is_sparse(X) and X.ndim == 2 else _columns(X, columns, "pairs")
    if len(parts) not in (2, 3):
        raise _wrong("pairs", f"{len(parts)} columns")
    return _pair(parts)


def read_own_ratings(ratings: Any, columns: Sequence[Any]) -> tuple[Array, Array]:
    """Items and values that one user has rated: a mapping, a series, pairs, a frame, or a tuple of arrays."""
    if isinstance(ratings, Mapping):
        ratings = (list(ratings), list(ratings.values()))
    elif np.ndim(ratings) == 1 and hasattr(ratings, "index") and hasattr(ratings, "to_numpy"):
        ratings = (ratings.index.to_numpy(), ratings.to_numpy())
    parts = _columns(ratings, columns[1:], "own")
    if len(parts) != 2:
        raise _wrong("own", f"{len(parts)} columns")
    items = labels_of("items", parts[0])
    return items, _values(parts[1], len(items))


def _wrong(form: str, got: str) -> ValueError:
    return ValueError(f"`{'ratings' if form == 'own' else 'X'}` must be {FORMS[form]}, got {got}.")


def _pair(parts: list[Any]) -> tuple[Array, Array]:
    users, items = labels_of("users", parts[0]), labels_of("items", parts[1])
    if len(users) != len(items):
        raise ValueError(f"`X` must have an item for each user, got {len(users)} users and {len(items)} items.")
    return users, items


def _table(X: Any, y: Any, columns: Sequence[Any]) -> tuple[tuple[int, int] | None, list[Any]]:
    """The shape of a matrix, if one was given, and the columns."""
    if is_sparse(X):
        if X.ndim != 2:
            raise _wrong("ratings", f"a sparse array of shape {X.shape}")
        table = X.tocoo()
        return (int(X.shape[0]), int(X.shape[1])), [table.row, table.col, table.data]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f" and y is None:
        missing = np.isnan(X)
        if missing.any() or X.shape[1] > 3:
            rows, cols = np.nonzero(~missing)
            return (int(X.shape[0]), int(X.shape[1])), [rows, cols, X[rows, cols]]
    return None, _columns(X, columns, "ratings")


def _columns(X: Any, columns: Sequence[Any], form: str) -> list[Any]:
    """The columns of a frame, of rows, of an array, or of a tuple of arrays."""
    if is_frame(X):
        missing = [name for name in columns[:2] if name not in X.columns]
        if missing:
            name = "ratings" if form == "own" else "X"
            raise ValueError(
                f"`{name}` has no column {missing[0]!r}; name its columns with `columns=(user, item, rating)`, got "
                f"{shown(list(X.columns))}."
            )
        return [X[name].to_numpy() for name in columns if name in X.columns]
    if isinstance(X, tuple) and all(np.ndim(part) == 1 for part in X) and not all(isinstance(x, tuple) for x in X):
        return list(X)
    if isinstance(X, list | tuple) and all(isinstance(row, tuple | list) for row in X):
        lengths = {len(row) for row in X} or {2}
        if len(lengths) > 1:
            got = " and ".join(map(str, sorted(lengths)))
            name = "ratings" if form == "own" else "X"
            raise ValueError(f"`{name}` must have rows of one length, got rows of {got}.")
        return [list(part) for part in zip(*X, strict=True)] or [[]] * lengths.pop()
    if is_sparse(X):
        raise _wrong(form, "a sparse matrix")
    table = plain_array("ratings" if form == "own" else "X", X)
    if table.ndim != 2:
        raise _wrong(form, f"shape {table.shape}")
    return list(table.T)


def _values(values: Any, n: int) -> Array:
    out = all_finite("ratings", real_array("ratings", values)).astype(np.float64, copy=False)
    if out.shape != (n,):
        raise ValueError(f"`ratings` must be a vector with one entry for each of the {n} pairs, got shape {out.shape}.")
    return out


def last_of_each(rows: Array, cols: Array, width: int) -> Array:
    """The indices of the pairs that no later pair repeats, in order: a later rating replaces an earlier one."""
    order, new = Pattern.sorted_pairs(rows, cols, (int(rows.max(initial=-1)) + 1, width))
    last = np.zeros(len(order), dtype=bool)
    last[order[np.append(new[1:], True)[: len(order)]]] = True
    return np.flatnonzero(last)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings by their row and column in the matrix, values, and weights if there are some; one for each pair."""

    rows: Array
    cols: Array
    values: Array
    weight: Array | None

    @classmethod
    def latest(cls, rows: Array, cols: Array, values: Array, weight: Array | None, width: int) -> Ratings:
        """The last rating of each pair; indices are 32 bits wide if that is enough, since there are so many."""
        rows, cols = (side.astype(np.int32) if side.max(initial=0) < 2**31 else side for side in (rows, cols))
        last = last_of_each(rows, cols, width)
        ratings = cls(rows, cols, values, weight)
        return ratings if len(last) == len(values) else ratings.part(last)

    @cached_property
    def _by_row(self) -> tuple[Array, Array]:
        order = np.argsort(self.rows, kind="stable")
        return self.rows[order], self.cols[order]

    def of_rows(self, rows: Array) -> tuple[Array, Array]:
        """For all ratings in some rows, the index among these rows, and the column."""
        every, cols = self._by_row
        begin, end = np.searchsorted(every, rows), np.searchsorted(every, rows, side="right")
        counts = end - begin
        at = np.arange(int(counts.sum())) + np.repeat(begin - np.cumsum(counts) + counts, counts)
        return np.repeat(np.arange(len(rows)), counts), cols[at]

    def part(self, at: Any) -> Ratings:
        """Some of the ratings."""
        weight = None if self.weight is None else self.weight[at]
        return Ratings(self.rows[at], self.cols[at], self.values[at], weight)

    def __len__(self) -> int:
        return len(self.values)
