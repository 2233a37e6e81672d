"""Partitions of a Dask collection: pure tasks build them from blocks, and views select and weight their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from projfree.algebra.hashing import condensed, short_hash
from projfree.checks import Array, all_finite, is_sparse, plain_array, real_array, shown
from projfree.data.convert import as_data
from projfree.data.frames import NUMERIC, from_frame, from_series, is_frame
from projfree.data.local import LocalData
from projfree.data.standardized import Standardized


@dataclass(frozen=True)
class Facts:
    """What the client knows about a partition.

    Attributes
    ----------
    number, n, d : int
        Its number in the collection, its rows and its columns.
    names : tuple of str or None
        Of the columns.
    dtype, kind : str
        Of the features, and whether they are dense or sparse.
    outputs : tuple of int
        The trailing shape of the targets.
    targets : str
        Whether they are numbers or labels.
    weighted : bool
        Whether the rows have sample weights.
    nbytes : int
        What it takes in memory.
    stored : int or None
        The number of entries that sparse rows store.
    rounding_units : float
        Units of rounding of a sum over its rows.
    checksum : str
        A hash of all its numbers.
    """

    number: int
    n: int
    d: int
    names: tuple[str, ...] | None
    dtype: str
    kind: str
    outputs: tuple[int, ...]
    targets: str
    weighted: bool
    nbytes: int
    stored: int | None
    rounding_units: float
    checksum: str


class Partition:
    """Rows with targets and weights as they were given: an immutable value, the result of a pure task.

    Parameters
    ----------
    data : LocalData
        The features.
    y : ndarray
        Targets, or with ``labels`` the index of the label of each row.
    labels : ndarray or None
        The sorted labels where targets are not numbers.
    weight : ndarray or None
        Sample weights.
    facts : Facts
        What the client knows about it.
    """

    def __init__(self, data: LocalData, y: Array, labels: Array | None, weight: Array | None, facts: Facts) -> None:
        self.data, self.y, self.labels, self.weight, self.facts = data, y, labels, weight, facts
        self._align()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._align()

    def _align(self) -> None:
        """Align arrays that were received from another process, else NumPy multiplies them to other last digits."""
        X: Any = getattr(self.data, "X", None)
        if isinstance(X, np.ndarray):
            self.data.X = aligned(X)  # type: ignore[attr-defined]  # dense data have it
        elif X is not None:
            X.data, X.indices, X.indptr = aligned(X.data), aligned(X.indices), aligned(X.indptr)
        self.y, self.weight = aligned(self.y), None if self.weight is None else aligned(self.weight)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.facts.nbytes  # the size that Dask counts

    def converted(self, functions: Sequence[Callable[[Array], Array]]) -> Array:
        """The targets after some elementwise functions; of labels, each distinct one is converted once."""
        y = self.y if self.labels is None else self.labels
        for function in functions:
            y = function(y)
        return y if self.labels is None else y[self.y]


def aligned(array: Array) -> Array:
    """The array, copied where its memory is not aligned."""
    return array if array.flags.aligned else array.copy()


def build_partition(number: int, X: Any, y: Any, weight: Any) -> Partition | None:
    """The partition with this number from blocks of features, targets and weights; None where it has no rows."""
    with naming(number):
        X, names = from_frame("X", X) if is_frame(X) else (X, None)
        X = X if is_sparse(X) else aligned(plain_array("X", X))
        try:
            y = plain_array("y", from_series("y", y))
        except TypeError:  # a series of labels
            y = np.asarray(y, dtype=object)
        if X.ndim == 2 and not X.shape[0] and not len(y):
            return None
        codes, labels = _encoded(y)
        data = as_data(X, codes, threads=1)
        return _partition(number, data, codes, labels, from_series("sample_weight", weight), names)


def read_partition(
    number: int, path: str, y: Any, weight: str | None, columns: Sequence[str] | None, memory: int
) -> Partition | None:
    """The partition of the rows of one Parquet file; its features are read chunk by chunk in every round."""
    from pyarrow import parquet

    with naming(number):
        own = [y] if isinstance(y, str) else list(y)
        table = parquet.read_table(path, columns=[*own, *([] if weight is None else [weight])])
        if not len(table):
            return None
        values = [table[name].to_numpy() for name in own]
        codes, labels = _encoded(values[0] if isinstance(y, str) else np.stack(values, axis=1))
        names = columns or [name for name in parquet.read_schema(path).names if name not in (*own, weight)]
        data = as_data(Path(path), codes, columns=names, memory=memory, threads=1)
        return _partition(number, data, codes, labels, None if weight is None else table[weight].to_numpy(), names)


def _partition(
    number: int, data: LocalData, y: Array, labels: Array | None, weight: Any, names: Sequence[str] | None
) -> Partition:
    if weight is not None:
        weight = all_finite("sample_weight", real_array("sample_weight", weight)).astype(np.float64)
        if weight.shape != (data.n,):
            raise ValueError(f"`sample_weight` must have one entry for each of the {data.n} rows, got {weight.shape}.")
        if weight.min() < 0.0:
            row = int(np.argmin(weight))
            raise ValueError(
                f"`sample_weight` must be non-negative, got {shown(weight[row])} in row {row}; drop the rows that "
                "should not count."
            )
    X: Any = getattr(data, "X", None)  # None for a file
    stored = [] if X is None else [X.data, X.indices, X.indptr] if is_sparse(X) else [X]
    pieces = [piece for array in stored for piece in condensed(array)]
    text = "" if labels is None else repr(labels.tolist())
    facts = Facts(
        number=number,
        n=data.n,
        d=data.shape(())[0],
        names=None if names is None else tuple(names),
        dtype=str(data.source.dtype if X is None else X.dtype),  # type: ignore[attr-defined]  # files have a source
        kind="dense" if data.stored is None else "sparse",
        outputs=y.shape[1:],
        targets="numbers" if labels is None else "labels",
        weighted=weight is not None,
        nbytes=sum(array.nbytes for array in (*stored, y)) + (0 if weight is None else weight.nbytes),
        stored=data.stored,
        rounding_units=data.summation(),
        checksum=short_hash(f"{data.fingerprint()} {text}", *pieces, y, weight),
    )
    return Partition(data, y, labels, weight, facts)


def _encoded(y: Array) -> tuple[Array, Array | None]:
    """Numbers as they are and None, or the index of the label of each row and the sorted labels."""
    if y.dtype.kind in NUMERIC:
        return y, None
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError:  # labels without an order, such as words and None
        kinds = [type(label).__name__ for label in y.ravel()]
        other = next(place for place, kind in enumerate(kinds) if kind != kinds[0])
        raise ValueError(
            f"`y` must hold labels of one kind, got {kinds[other]} in row {other // (y.size // len(y))} and {kinds[0]} "
            "before it; drop or relabel the others."
        ) from None
    return codes.reshape(y.shape), labels


@contextmanager
def naming(number: int) -> Iterator[None]:
    """Say which partition an error is about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError) or "of the data:" in str(error):
            raise
        raise type(error)(f"partition {number} of the data: {error}") from error


@dataclass(frozen=True, eq=False)
class TargetFactor:
    """Weights that a function of the targets gives."""

    function: Callable[[Array], Array]

    def __call__(self, rows: Partition) -> Array:
        return rows.converted((self.function,))


@dataclass(frozen=True)
class FoldFactor:
    """One for the rows inside of a fold (or outside of it) and zero for others; folds are drawn within partitions.

    Consecutive partitions start with different folds, in a random order, so that folds have the same size also where
    partitions have fewer rows than there are folds.
    """

    seed: int
    folds: int
    fold: int
    inside: bool

    def __call__(self, rows: Partition) -> Array:
        turn, place = divmod(rows.facts.number, self.folds)
        first = np.random.default_rng([self.seed, turn, self.folds]).permutation(self.folds)[place]
        order = np.random.default_rng([self.seed, rows.facts.number]).permutation(rows.facts.n)
        return ((order + first) % self.folds == self.fold) == self.inside


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to draw from each partition: how many by number, a seed, and the factor that keeps sums unbiased."""

    seed: int
    counts: dict[int, int]
    factor: float


@dataclass(frozen=True, eq=False)
class View:
    """How the rows of partitions are used; small, because it is sent with every round.

    Attributes
    ----------
    factors : tuple of callable
        From a partition to numbers that its weights are multiplied by.
    unit : pair of float
        Weights are divided by the largest of all rows, and by their sum in units of it.
    targets : tuple of callable
        From targets as they were given to those that a loss takes, one after the other.
    scaling : pair of ndarray or None
        Shift and scale of the features.
    sample : Sample or None
        The rows to draw; None for all.
    nbytes : int
        The size of all partitions: passes are compiled where they would be for one table of this size.
    """

    factors: tuple[Callable[[Partition], Array], ...] = ()
    unit: tuple[float, float] = (1.0, 1.0)
    targets: tuple[Callable[[Array], Array], ...] = ()
    scaling: tuple[Array, Array] | None = None
    sample: Sample | None = None
    nbytes: int = 0

    def weights(self, rows: Partition) -> Array:
        """The weights of rows before they are normalised."""
        weight = np.ones(rows.facts.n) if rows.weight is None else rows.weight
        for factor in self.factors:
            weight = weight * factor(rows)
        return weight

    def data(self, rows: Partition, threads: int) -> LocalData | None:
        """The rows as data on this machine; None where none of them were drawn."""
        data: LocalData = rows.data.alike()
        data.y, data.weight = rows.converted(self.targets), self.weights(rows) / self.unit[0] / self.unit[1]
        data.threads, data.nbytes, data.keeps_images = threads, max(self.nbytes, data.nbytes), False
        if self.scaling is not None:
            data = _standardized(data, *self.scaling)
        if self.sample is None:
            return data
        if not (m := self.sample.counts.get(rows.facts.number, 0)):
            return None
        rng = np.random.default_rng([self.sample.seed, rows.facts.number])
        drawn = np.sort(rng.choice(data.n, size=m, replace=False, shuffle=False))
        part, weight = data.subset(drawn), data.weights(drawn)
        part.weight = np.asarray(weight * self.sample.factor)
        return part


def on_view(view: View, function: Callable[[LocalData], Any], rows: Partition, threads: int) -> Any:
    """A function of the rows of a partition as a view has them."""
    data = view.data(rows, threads)
    return None if data is None else function(data)


def weight_ranges(views: Sequence[View], rows: Partition, threads: int) -> tuple[tuple[float, float, float], ...]:
    """For each view the largest weight, the smallest positive one, and their sum in units of the largest."""
    found = []
    for view in views:
        weight = view.weights(rows)
        largest = float(weight.max())
        least = float(weight.min(where=weight > 0.0, initial=np.inf))
        found.append((largest, least, float((weight / (largest or 1.0)).sum())))
    return tuple(found)


def _standardized(data: LocalData, shift: Array, scale: Array) -> Standardized:
    """The view of standardised features without the read that measures the rows: the client has these numbers."""
    view = object.__new__(Standardized)
    view.shift, view.scale = shift, scale
    view._hold(data)
    return view
