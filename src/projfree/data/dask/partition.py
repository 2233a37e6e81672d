"""Partitions of a Dask collection, built from blocks by pure tasks, and views that define how their rows are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, is_sparse, plain_array, real_array
from projfree.data.base import Fold
from projfree.data.convert import NUMERIC, as_data, from_frame, from_series, is_frame
from projfree.data.local import LocalData, checked_weights


@dataclass(frozen=True)
class Facts:
    """Metadata of a partition, which the client stores.

    Attributes
    ----------
    number : int
        Number of the partition in the collection.
    n : int
        Number of rows.
    form : dict
        Properties that all partitions of a table must share; the keys are their names in error messages.
    nbytes : int
        Bytes of memory.
    rounding_units : float
        Error bound of a sum over the rows, in units of roundoff.
    checksum : str
        Hash of all numbers.
    """

    number: int
    n: int
    form: dict[str, Any]
    nbytes: int
    rounding_units: float
    checksum: str


class Partition:
    """Rows with unconverted targets and weights: an immutable object, the result of a pure task.

    Targets that are not numbers are stored as indices into the sorted ``labels``, which are None for numbers.
    """

    def __init__(self, data: Any, y: Array, labels: Array | None, weight: Array | None, facts: Facts) -> None:
        # Arrays received from another process have another memory layout, which changes the last digits of NumPy's
        # products.
        X = data.X
        if is_sparse(X):
            X.data, X.indices, X.indptr = aligned(X.data), aligned(X.indices), aligned(X.indptr)
        else:
            data.X = aligned(X)
        self.data, self.y, self.labels, self.facts = data, aligned(y), labels, facts
        self.weight = None if weight is None else aligned(weight)

    def __reduce__(self) -> tuple[Any, ...]:
        return Partition, (self.data, self.y, self.labels, self.weight, self.facts)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.facts.nbytes  # used by Dask to measure memory

    def converted(self, *functions: Callable[[Array], Array]) -> Array:
        """Return the targets after applying elementwise functions, which are evaluated once for each distinct label."""
        y = self.y if self.labels is None else self.labels
        for function in functions:
            y = function(y)
        return y if self.labels is None else y[self.y]


def aligned(array: Array) -> Array:
    """Return the array, or an aligned copy without gaps if its memory is unaligned or has gaps, as after a transfer."""
    flags = array.flags
    return array if flags.aligned and (flags.c_contiguous or flags.f_contiguous) else array.copy()


def build_partition(number: int, X: Any, y: Any, weight: Any) -> Partition | None:
    """Build a partition from blocks of features, targets and weights; None if it has no rows."""
    with naming(number):
        X, names = from_frame("X", X) if is_frame(X) else (X, None)
        X = X if is_sparse(X) else aligned(plain_array("X", X))
        y, labels = _encoded(y)
        if X.ndim == 2 and not X.shape[0] and not len(y):
            return None
        data = as_data(X, y, threads=1)
        if weight is not None:
            weight = real_array("sample_weight", from_series("sample_weight", weight)).astype(np.float64)
            checked_weights(weight if weight.any() else weight + 1.0, data.n)  # all weights of a partition may be zero
    arrays = [data.X.data, data.X.indices, data.X.indptr] if is_sparse(data.X) else [data.X]
    form = {
        "columns": data.shape(())[0],
        "names of columns": names,
        "dtype": str(arrays[0].dtype),
        "kind of rows": "sparse" if is_sparse(data.X) else "dense",
        "trailing shape of targets": y.shape[1:],
        "kind of targets": "numbers" if labels is None else "labels",
        "weights": "none" if weight is None else "some",
    }
    nbytes = sum(array.nbytes for array in (*arrays, y)) + (0 if weight is None else weight.nbytes)
    checksum = short_hash(f"{form} {None if labels is None else labels.tolist()}", *arrays, y, weight)
    facts = Facts(number, data.n, form, nbytes, data.rounding_units, checksum)
    return Partition(data, y, labels, weight, facts)


def _encoded(y: Any) -> tuple[Array, Array | None]:
    """Return numerical targets and None, or the label index of each row and the sorted labels."""
    try:
        y = plain_array("y", from_series("y", y))
    except TypeError:  # a series of labels
        y = np.asarray(y, dtype=object)
    if y.dtype.kind in NUMERIC:
        return y, None
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError as error:  # labels that cannot be sorted, such as strings and None
        raise ValueError(f"`y` must hold labels of one kind: {error}; drop or relabel the others.") from None
    return codes.reshape(y.shape), labels


@contextmanager
def naming(number: int) -> Iterator[None]:
    """Add the number of the partition to error messages."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError):
            raise
        raise type(error)(f"partition {number} of the data: {error}") from error


@dataclass(frozen=True)
class FoldFactor:
    """Return one for rows inside a fold (or outside of it) and zero for others; folds are drawn within each partition.

    Consecutive partitions start with different folds, in a random order, so that the folds have equal size even if
    partitions have fewer rows than there are folds.
    """

    fold: Fold

    def __call__(self, rows: Partition) -> Array:
        own, number = self.fold, rows.facts.number
        turn, place = divmod(number, own.folds)
        first = np.random.default_rng([own.seed, turn, own.folds]).permutation(own.folds)[place]
        order = np.random.default_rng([own.seed, number]).permutation(rows.facts.n)
        return np.asarray(((order + first) % own.folds == own.fold) == own.inside)


@dataclass(frozen=True)
class TargetFactor:
    """Return a function of the converted targets, by which the weights are multiplied."""

    targets: tuple[Callable[[Array], Array], ...]
    reweight: Callable[[Array], Array]

    def __call__(self, rows: Partition) -> Array:
        return rows.converted(*self.targets, self.reweight)


@dataclass(frozen=True, eq=False)
class View:
    """How the rows of partitions are used; small, because it is sent in every round.

    Attributes
    ----------
    total : float
        Sum of the weights, for normalisation.
    nbytes : int
        Bytes of all partitions; passes are compiled as for one table of this size.
    factors : tuple of callable
        Functions of a partition whose results multiply the weights.
    targets : tuple of callable
        Functions that convert the targets, applied in this order.
    scaling : tuple of array or None
        As for `LocalData`.
    sample : tuple or None
        Seed, number of rows to draw from each partition, and the factor of the weights that makes sums unbiased.
    """

    total: float
    nbytes: int
    factors: tuple[Callable[[Partition], Array], ...] = ()
    targets: tuple[Callable[[Array], Array], ...] = ()
    scaling: tuple[Array, Array] | None = None
    sample: tuple[int, dict[int, int], float] | None = None

    def weights(self, rows: Partition) -> Array:
        """Return the weights of the rows before normalisation."""
        weight = np.ones(rows.facts.n) if rows.weight is None else rows.weight
        for factor in self.factors:
            weight = weight * factor(rows)
        return weight

    def data(self, rows: Partition, threads: int) -> LocalData | None:
        """Return the rows as local data; None if the sample has no rows of this partition."""
        data: LocalData = rows.data.shallow_copy()
        weight = self.weights(rows) / self.total
        data.y, data.weight = rows.converted(*self.targets), weight
        data.scaling, data.threads = self.scaling, threads
        data.nbytes, data.caches_predictions = max(self.nbytes, data.nbytes), False
        if self.sample is None:
            return data
        (seed, counts, factor), number = self.sample, rows.facts.number
        if number not in counts:
            return None
        rng = np.random.default_rng([seed, number])
        drawn = np.sort(rng.choice(data.n, size=counts[number], replace=False, shuffle=False))
        return data.take(drawn, weight[drawn] * factor)


def on_view(view: View, function: Callable[[LocalData], Any], rows: Partition, threads: int) -> Any:
    """Evaluate a function on the rows of a partition under a view."""
    data = view.data(rows, threads)
    return None if data is None else function(data)


def weight_sum(view: View, rows: Partition, threads: int) -> float:
    """Return the sum of the weights of a partition before normalisation."""
    with np.errstate(over="ignore"):
        return float(view.weights(rows).sum())
