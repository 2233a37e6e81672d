"""Partitions of a Dask collection, which pure tasks build from blocks, and views: how their rows are used."""

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
    """What the client knows about a partition.

    Its number in the collection, its rows, its ``form``, which all partitions of a table have in common, by the words
    of an error message, its bytes of memory, the units of rounding of a sum over it, and a hash of all its numbers.
    """

    number: int
    n: int
    form: dict[str, Any]
    nbytes: int
    rounding_units: float
    checksum: str


class Partition:
    """Rows with targets and weights as they were given: an immutable value, the result of a pure task.

    Targets that are not numbers are held as indices into the sorted ``labels``, which are None for numbers.
    """

    def __init__(self, data: Any, y: Array, labels: Array | None, weight: Array | None, facts: Facts) -> None:
        # Arrays from another process have another layout in memory, and NumPy multiplies those to other last digits.
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
        return object.__sizeof__(self) + self.facts.nbytes  # the size that Dask counts

    def converted(self, *functions: Callable[[Array], Array]) -> Array:
        """The targets after some elementwise functions, which see each distinct label once."""
        y = self.y if self.labels is None else self.labels
        for function in functions:
            y = function(y)
        return y if self.labels is None else y[self.y]


def aligned(array: Array) -> Array:
    """The array, copied where its memory is not aligned or has gaps, as it is after a transfer."""
    flags = array.flags
    return array if flags.aligned and (flags.c_contiguous or flags.f_contiguous) else array.copy()


def build_partition(number: int, X: Any, y: Any, weight: Any) -> Partition | None:
    """The partition with this number from blocks of features, targets and weights; None where it has no rows."""
    with naming(number):
        X, names = from_frame("X", X) if is_frame(X) else (X, None)
        X = X if is_sparse(X) else aligned(plain_array("X", X))
        y, labels = _encoded(y)
        if X.ndim == 2 and not X.shape[0] and not len(y):
            return None
        data = as_data(X, y, threads=1)
        if weight is not None:
            weight = real_array("sample_weight", from_series("sample_weight", weight)).astype(np.float64)
            checked_weights(weight if weight.any() else weight + 1.0, data.n)  # those of a partition may all be zero
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
    """Numbers as they are and None, or the index of the label of each row and the sorted labels."""
    try:
        y = plain_array("y", from_series("y", y))
    except TypeError:  # a series of labels
        y = np.asarray(y, dtype=object)
    if y.dtype.kind in NUMERIC:
        return y, None
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError as error:  # labels without an order, such as words and None
        raise ValueError(f"`y` must hold labels of one kind: {error}; drop or relabel the others.") from None
    return codes.reshape(y.shape), labels


@contextmanager
def naming(number: int) -> Iterator[None]:
    """Say which partition an error is about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError):
            raise
        raise type(error)(f"partition {number} of the data: {error}") from error


@dataclass(frozen=True)
class FoldFactor:
    """One for the rows inside of a fold (or outside of it) and zero for others; folds are drawn within partitions.

    Consecutive partitions start with different folds, in a random order, so that folds have the same size also where
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
    """What a function makes of the targets, after those that converted them."""

    targets: tuple[Callable[[Array], Array], ...]
    reweight: Callable[[Array], Array]

    def __call__(self, rows: Partition) -> Array:
        return rows.converted(*self.targets, self.reweight)


@dataclass(frozen=True, eq=False)
class View:
    """How the rows of partitions are used; small, because it is sent with every round.

    Weights are multiplied by ``factors``, functions of a partition, and divided by their ``total``. Functions
    ``targets`` make the targets that a loss takes of those that were given, one after the other. ``scaling`` is that of
    `LocalData`. A ``sample`` has a seed, how many rows to draw from each partition by its number, and the factor that
    keeps sums unbiased. Passes are compiled where they would be for one table of ``nbytes``, those of all partitions.
    """

    total: float
    nbytes: int
    factors: tuple[Callable[[Partition], Array], ...] = ()
    targets: tuple[Callable[[Array], Array], ...] = ()
    scaling: tuple[Array, Array] | None = None
    sample: tuple[int, dict[int, int], float] | None = None

    def weights(self, rows: Partition) -> Array:
        """The weights of rows before they are normalised."""
        weight = np.ones(rows.facts.n) if rows.weight is None else rows.weight
        for factor in self.factors:
            weight = weight * factor(rows)
        return weight

    def data(self, rows: Partition, threads: int) -> LocalData | None:
        """The rows as data on this machine; None where none of them were drawn."""
        data: LocalData = rows.data.alike()
        weight = self.weights(rows) / self.total
        data.y, data.weight = rows.converted(*self.targets), weight
        data.scaling, data.threads = self.scaling, threads
        data.nbytes, data.keeps_images = max(self.nbytes, data.nbytes), False
        if self.sample is None:
            return data
        (seed, counts, factor), number = self.sample, rows.facts.number
        if number not in counts:
            return None
        rng = np.random.default_rng([seed, number])
        drawn = np.sort(rng.choice(data.n, size=counts[number], replace=False, shuffle=False))
        return data.take(drawn, weight[drawn] * factor)


def on_view(view: View, function: Callable[[LocalData], Any], rows: Partition, threads: int) -> Any:
    """A function of the rows of a partition as a view has them."""
    data = view.data(rows, threads)
    return None if data is None else function(data)


def weight_sum(view: View, rows: Partition, threads: int) -> float:
    """The sum of the weights of a partition before they are normalised."""
    with np.errstate(over="ignore"):
        return float(view.weights(rows).sum())
