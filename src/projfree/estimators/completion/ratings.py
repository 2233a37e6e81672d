"""Ratings as people have them: sparse matrices, triples, data frames, any labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from projfree.checks import Array, all_finite, is_sparse, plain_array, real_array, shown
from projfree.data.convert import is_frame
from projfree.data.local import checked_weights
from projfree.estimators.completion.labels import labels_of
from projfree.estimators.completion.observed import last_of_each


class RatingsForm(NamedTuple):
    """What an argument is called, and what it may be."""

    name: str
    words: str

    def wrong(self, got: str) -> ValueError:
        """The sentence on what was given instead."""
        return ValueError(f"`{self.name}` must be {self.words}, got {got}.")


#: The size of the largest weight, so that sums of weighted ratings neither overflow nor lose digits.
LARGEST = (1e-100, 1e100)
TABLES = "a SciPy sparse matrix, a data frame with the named columns, "
FORM = RatingsForm("X", f"{TABLES}(user, item, rating) triples, or a tuple of arrays (users, items, ratings)")
PAIRS = RatingsForm(
    "X", f"{TABLES}(user, item) pairs, of which one is [(user, item)], or a tuple of arrays (users, items)"
)
OWN = RatingsForm(
    "ratings",
    "what one user has rated: {item: rating}, a series of ratings by item, pairs (item, rating), a data frame with the "
    "named columns, or a tuple of arrays (items, ratings)",
)


@dataclass(frozen=True, eq=False)
class GivenRatings:
    """Labels of users and items, and a value for each pair; ``shape`` where the input was a matrix."""

    users: Array
    items: Array
    values: Array | None
    shape: tuple[int, int] | None = None
    weight: Array | None = None
    #: The places of these ratings among all that were given, where some do not count.
    at: Array | None = None

    def last(self) -> Array:
        """The places of the pairs that no later pair repeats."""
        rows, cols = (np.unique(part, return_inverse=True)[1] for part in (self.users, self.items))
        return last_of_each(rows, cols, len(cols))


def weighted_ratings(X: Any, y: Any, columns: Sequence[str], sample_weight: Any) -> GivenRatings:
    """The ratings that count: a weight of zero is that of a rating which is not there."""
    given = read_ratings(X, y, columns)
    if sample_weight is None:
        return given
    checked_weights(sample_weight, len(given.users))
    weight = plain_array("sample_weight", sample_weight).astype(np.float64, copy=False)
    if not LARGEST[0] <= float(weight.max()) <= LARGEST[1]:
        raise ValueError(
            f"`sample_weight` must have its largest between {LARGEST[0]:g} and {LARGEST[1]:g}, got {weight.max():g}; "
            "multiply all by a number, since their ratios alone count."
        )
    assert given.values is not None
    at = weight > 0.0
    return GivenRatings(given.users[at], given.items[at], given.values[at], given.shape, weight[at], np.flatnonzero(at))


def read_ratings(X: Any, y: Any, columns: Sequence[str], *, values: bool = True) -> GivenRatings:
    """Ratings, or with ``values=False`` pairs, from any of the forms."""
    form = FORM if values else PAIRS
    if is_sparse(X):
        if X.ndim != 2:
            raise form.wrong(f"a sparse array of shape {X.shape}")
        table = X.tocoo()
        shape, parts = (int(X.shape[0]), int(X.shape[1])), [table.row, table.col, table.data]
    else:
        shape, parts = None, _parts(X, columns, form)
    if len(parts) not in (2, 3):
        raise form.wrong(f"{len(parts)} columns")
    users, items = labels_of("users", parts[0]), labels_of("items", parts[1])
    if len(users) != len(items):
        raise ValueError(f"`X` must have an item for each user, got {len(users)} users and {len(items)} items.")
    if not values:
        return GivenRatings(users, items, None, shape)
    if not len(users):
        raise ValueError("`X` must hold at least one rating, got none.")
    return GivenRatings(users, items, _values(_given(parts, y, columns), len(users)), shape)


def read_own_ratings(ratings: Any, columns: Sequence[str]) -> tuple[Array, Array]:
    """Items and values that one user has rated: a mapping, a series, pairs, a frame, or a tuple of arrays."""
    if isinstance(ratings, Mapping):
        ratings = (list(ratings), list(ratings.values()))
    elif np.ndim(ratings) == 1 and hasattr(ratings, "index") and hasattr(ratings, "to_numpy"):
        ratings = (ratings.index.to_numpy(), ratings.to_numpy())
    elif is_sparse(ratings):
        raise OWN.wrong("a sparse matrix")
    parts = _parts(ratings, columns[1:], OWN)
    if len(parts) != 2:
        raise OWN.wrong(f"{len(parts)} columns")
    items = labels_of("items", parts[0])
    return items, _values(parts[1], len(items))


def _given(parts: list[Any], y: Any, columns: Sequence[str]) -> Any:
    """The values, which stand either in ``X`` or in ``y``."""
    if len(parts) == 3 and y is not None:
        raise ValueError("`y` must be left out where `X` holds the ratings; give pairs (user, item) with `y`.")
    if len(parts) == 2 and y is None:
        raise ValueError(
            f"the ratings are missing: give them as `y`, or as the third column of `X`, in frames {shown(columns[-1])}."
        )
    return parts[2] if len(parts) == 3 else y


def _parts(X: Any, columns: Sequence[str], form: RatingsForm) -> list[Any]:
    if is_frame(X):
        missing = [name for name in columns[:2] if name not in X.columns]
        if missing:
            raise ValueError(
                f"`{form.name}` has no column {missing[0]!r}; name its columns with `columns=(user, item, rating)`, "
                f"got {shown(list(X.columns))}."
            )
        return [X[name].to_numpy() for name in columns if name in X.columns]
    if isinstance(X, tuple) and all(np.ndim(part) == 1 for part in X) and not all(isinstance(x, tuple) for x in X):
        return list(X)
    if isinstance(X, list | tuple) and all(isinstance(row, tuple | list) for row in X):
        return _of_rows(X, form)
    table = plain_array(form.name, X)
    if table.ndim != 2:
        raise form.wrong(f"shape {table.shape}")
    return list(table.T)


def _of_rows(rows: Sequence[Sequence[Any]], form: RatingsForm) -> list[Any]:
    """The columns of rows, of which there may be none."""
    lengths = {len(row) for row in rows} or {2}
    if len(lengths) > 1:
        got = " and ".join(map(str, sorted(lengths)))
        raise ValueError(f"`{form.name}` must have rows of one length, got rows of {got}.")
    return [list(part) for part in zip(*rows, strict=True)] or [[]] * lengths.pop()


def _values(values: Any, n: int) -> Array:
    out = all_finite("ratings", real_array("ratings", values)).astype(np.float64, copy=False)
    if out.shape != (n,):
        raise ValueError(f"`ratings` must be a vector with one entry for each of the {n} pairs, got shape {out.shape}.")
    return out
