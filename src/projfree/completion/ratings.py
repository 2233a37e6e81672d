"""Reading of ratings: sparse and dense matrices, triples and data frames, with ids of any type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from projfree.algebra import Pattern
from projfree.checks import Array, all_finite, is_missing, is_sparse, plain_array, real_array, shown
from projfree.data.convert import is_frame
from projfree.data.local import checked_weights

TABLES = "a SciPy sparse matrix, a data frame with the named columns, "
#: The accepted forms of each argument, for error messages.
FORMS = {
    "ratings": f"{TABLES}(user, item, rating) triples, a dense matrix with NaN for missing ratings, or a tuple of "
    "arrays (users, items, ratings)",
    "pairs": f"{TABLES}(user, item) pairs, of which one is [(user, item)], or a tuple of arrays (users, items)",
}
#: Names of the types of ids, by the kind of their NumPy type.
LABEL_KINDS = {"i": "whole numbers", "U": "text"}


# ---------------------------------------------------------------- labels


def check_labels(name: str, given: Any) -> Array:
    """Convert ids to an array of integers or of strings."""
    array = given if isinstance(given, list | tuple) else plain_array(name, given)
    if isinstance(array, list | tuple) or array.dtype.kind == "O":  # NumPy would convert numbers to text
        labels = list(array)
        _refuse_missing(name, [is_missing(label) for label in labels], labels)
        kinds = set(map(type, labels))
        types = {"number" if issubclass(kind, Real) else kind.__name__ for kind in kinds - {bool}} | kinds & {bool}
        if len(types) > 1:
            names = " and ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"`{name}` must be labels of one type, got {names}; convert them first, e.g. to strings.")
        large = types == {"number"} and max(map(abs, labels)) >= 2**63
        array = np.asarray(labels, np.float64) if large else plain_array(name, labels)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be a vector of labels, got shape {array.shape}.")
    if array.dtype.kind in "iU":
        return array
    if array.dtype.kind not in "uf":
        got = type(array[0]).__name__ if array.dtype.hasobject else array.dtype.name
        raise TypeError(f"`{name}` must be labels, whole numbers or strings, got {got}; convert them to strings first.")
    _refuse_missing(name, np.isnan(array), array)
    large = np.abs(array) >= 2.0**63
    integers = np.where(large, 0, array).astype(np.int64)
    if (wrong := large | (integers != array)).any():
        raise ValueError(
            f"`{name}` must be whole numbers below 2**63 or strings, got {shown(array[wrong][0])}; convert them to "
            "strings."
        )
    return integers


def _refuse_missing(name: str, missing: Any, labels: Any) -> None:
    at = np.flatnonzero(missing)
    if len(at):
        got = f"{shown(labels[at[0]])} at index {int(at[0])}"
        raise ValueError(f"`{name}` must not have missing labels, got {got}; drop such ratings first.")


def check_label_kind(name: str, ids: Array, labels: Array) -> None:
    """Raise TypeError if the ids are of another type than those of the fit, as none of them could match."""
    if len(labels) and ids.dtype.kind != labels.dtype.kind:
        one, other = (LABEL_KINDS[array.dtype.kind] for array in (ids, labels))
        raise TypeError(
            f"`{name}` must be {one}, as in the fit, got {other}, such as {shown(labels[0])}; convert them first."
        )


def index_labels(ids: Array, labels: Array, name: str) -> Array:
    """Return the index of each label in the sorted ``ids``, -1 if it is missing."""
    check_label_kind(name, ids, labels)
    at = np.minimum(np.searchsorted(ids, labels), len(ids) - 1)
    return np.where(ids[at] == labels, at, -1)


# ---------------------------------------------------------------- ratings as triples


@dataclass(frozen=True, eq=False)
class RatingTriples:
    """Ids of users and items, with a value and an optional weight per pair, and the shape of a given matrix."""

    users: Array
    items: Array
    values: Array
    weight: Array | None = None
    shape: tuple[int, int] | None = None

    def latest(self) -> Array:
        """Return the indices of the last rating of each pair with a positive weight."""
        at = np.arange(len(self.values)) if self.weight is None else np.flatnonzero(self.weight > 0.0)
        rows, cols = (np.unique(side[at], return_inverse=True)[1] for side in (self.users, self.items))
        return np.sort(at[Ratings.of(rows, cols, at).values])

    def subset(self, at: Any) -> RatingTriples:
        """Select ratings."""
        weight = None if self.weight is None else self.weight[at]
        return RatingTriples(self.users[at], self.items[at], self.values[at], weight, self.shape)


def read_ratings(X: Any, y: Any, columns: Sequence[Any], sample_weight: Any = None) -> RatingTriples:
    """Read ratings in any of the accepted forms."""
    shape, parts = None, list[Any]()
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f" and y is None:
        missing = np.isnan(X)
        if missing.any() or X.shape[1] > 3:
            shape, parts = X.shape, [*np.nonzero(~missing), X[~missing]]
    if shape is None:
        shape, parts = X.shape if is_sparse(X) else None, _split_columns(X, columns, "ratings")
    if len(parts) == 3 and y is not None:
        raise ValueError("`y` must be left out if `X` holds the ratings; give pairs (user, item) with `y`.")
    if len(parts) == 2 and y is None:
        name = shown(columns[-1])
        raise ValueError(f"the ratings are missing: give them as `y`, or as the third column of `X`, in frames {name}.")
    users, items = _check_pairs(parts)
    if not len(users):
        raise ValueError("`X` must hold at least one rating, got none.")
    values = _check_values(parts[2] if len(parts) == 3 else y, len(users))
    if sample_weight is not None:
        checked_weights(sample_weight, len(users))
        sample_weight = np.asarray(sample_weight, np.float64)
    return RatingTriples(users, items, values, sample_weight, shape)


def read_pairs(X: Any, columns: Sequence[Any]) -> tuple[Array, Array]:
    """Read pairs of users and items; there may be none, and ratings in ``X`` are ignored."""
    return _check_pairs(_split_columns(X, columns, "pairs"))


def read_user_ratings(ratings: Any) -> tuple[Array, Array]:
    """Read the items and ratings of one user: a mapping, a series, pairs, or a tuple of arrays."""
    if isinstance(ratings, tuple) and len(ratings) == 2 and not isinstance(ratings[0], tuple):
        items, values = ratings
    elif hasattr(ratings, "index") and hasattr(ratings, "to_numpy") and np.ndim(ratings) == 1:
        items, values = ratings.index.to_numpy(), ratings.to_numpy()
    else:
        given: Any = None if is_frame(ratings) else ratings
        try:
            pairs = dict(given)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "`ratings` must be what one user has rated: {item: rating}, a series of ratings by item, pairs (item, "
                f"rating), or a tuple of arrays (items, ratings), got {shown(ratings)}."
            ) from error
        items, values = list(pairs), list(pairs.values())
    items = check_labels("items", items)
    return items, _check_values(values, len(items))


def _form_error(form: str, got: str) -> ValueError:
    return ValueError(f"`X` must be {FORMS[form]}, got {got}.")


def _check_pairs(parts: list[Any]) -> tuple[Array, Array]:
    users, items = check_labels("users", parts[0]), check_labels("items", parts[1])
    if len(users) != len(items):
        raise ValueError(f"`X` must have an item for each user, got {len(users)} users and {len(items)} items.")
    return users, items


def _split_columns(X: Any, columns: Sequence[Any], form: str) -> list[Any]:
    """Split a sparse matrix, data frame, list of rows, array or tuple of arrays into two or three columns."""
    if is_frame(X):
        missing = [name for name in columns[:2] if name not in X.columns]
        if missing:
            raise ValueError(
                f"`X` has no column {missing[0]!r}; name its columns with `columns=(user, item, rating)`, "
                f"got {shown(list(X.columns))}."
            )
        parts = [X[name].to_numpy() for name in columns if name in X.columns]
    elif is_sparse(X):
        if X.ndim != 2:
            raise _form_error(form, f"a sparse array of shape {X.shape}")
        table = X.tocoo()
        parts = [table.row, table.col, table.data]
    elif isinstance(X, tuple) and all(np.ndim(part) == 1 for part in X) and not all(isinstance(x, tuple) for x in X):
        parts = list(X)
    elif isinstance(X, list | tuple) and all(isinstance(row, tuple | list) for row in X):
        lengths = {len(row) for row in X} or {2}
        if len(lengths) > 1:
            got = " and ".join(map(str, sorted(lengths)))
            raise ValueError(f"`X` must have rows of one length, got rows of {got}.")
        parts = [list(part) for part in zip(*X, strict=True)] or [[]] * lengths.pop()
    else:
        table = plain_array("X", X)
        if table.ndim != 2:
            raise _form_error(form, f"shape {table.shape}")
        parts = list(table.T)
    if len(parts) not in (2, 3):
        raise _form_error(form, f"{len(parts)} columns")
    return parts


def _check_values(values: Any, n: int) -> Array:
    out = all_finite("ratings", real_array("ratings", values)).astype(np.float64, copy=False)
    if out.shape != (n,):
        raise ValueError(f"`ratings` must be a vector with one entry for each of the {n} pairs, got shape {out.shape}.")
    return out


# ---------------------------------------------------------------- the matrix of ratings


@dataclass(frozen=True, eq=False)
class Ratings:
    """Sparse matrix of ratings in CSR format.

    Row i holds ``values[indptr[i]:indptr[i + 1]]`` in the columns ``indices[...]``. ``weight`` has the order of
    ``values``.
    """

    indptr: Array
    indices: Array
    values: Array
    weight: Array | None
    n_items: int

    @classmethod
    def of(
        cls,
        rows: Array,
        cols: Array,
        values: Array,
        weight: Array | None = None,
        shape: tuple[int, int] | None = None,
    ) -> Ratings:
        """Build the matrix from triples; the last rating of each pair counts."""
        if shape is None:
            shape = int(rows.max(initial=-1)) + 1, int(cols.max(initial=-1)) + 1
        pattern, order, place = Pattern.of(rows, cols, shape)
        if place is not None:  # the sort is stable: keep the last of equal pairs
            order = order[np.append(place[1:] != place[:-1], True)]
        weight = None if weight is None else weight[order]
        return cls(pattern.indptr, pattern.indices, values[order], weight, shape[1])

    @cached_property
    def pattern(self) -> Pattern:
        """The sparsity pattern."""
        return Pattern(self.indptr, self.indices, self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of users and items."""
        return len(self.indptr) - 1, self.n_items

    @property
    def rows(self) -> Array:
        """The row of each rating."""
        return self.pattern.rows

    def entries_of_rows(self, rows: Array) -> tuple[Array, Array]:
        """Return the positions in ``rows`` and the columns of all ratings in these rows."""
        counts = self.indptr[rows + 1] - self.indptr[rows]
        first = np.repeat(self.indptr[rows] - np.cumsum(counts) + counts, counts)
        return np.repeat(np.arange(len(rows)), counts), self.indices[first + np.arange(len(first))]

    def subset(self, mask: Array) -> Ratings:
        """Select the ratings for which ``mask`` is True."""
        counts = np.bincount(self.rows[mask], minlength=self.shape[0])
        weight = None if self.weight is None else self.weight[mask]
        return Ratings(np.append(0, np.cumsum(counts)), self.indices[mask], self.values[mask], weight, self.n_items)

    def __len__(self) -> int:
        return len(self.values)
