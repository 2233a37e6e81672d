"""`SealedData`: rows that only their own workspace can touch, the law of the border between objectives and data."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from projfree.algebra import Handle, Point
from projfree.checks import Array
from projfree.data.base import Data, Fold
from projfree.data.gram import Gram, Moments
from projfree.data.local import LocalData
from projfree.data.rows import Blocks, Rows, Step
from projfree.data.tables import DenseData
from projfree.data.workspace import Workspace
from projfree.numerics.sums import tree_sum


class Opaque:
    """A vector with an entry a row, of which nothing can be seen: no length, no entries, no conversion to an array."""

    __slots__ = ()

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise TypeError("the rows of SealedData cannot be seen; go through `sweep`, `fold` or a method of the data.")

    __len__ = None
    __iter__ = None
    __getitem__ = None
    __array_ufunc__ = None


class SealedData(Data):
    """A table for tests whose rows are out of reach, as those of a cluster or a device are.

    Targets and weights are opaque; steps are pickled and unpickled before each use; partitions are worked on in random
    order; images are forgotten at random. What runs on it touches rows through the doors of a workspace alone, and must
    find what it finds on the same rows in memory, to rounding.

    Parameters
    ----------
    X, y, sample_weight
        As for `as_data`, dense.
    partitions : int
        How many pieces the rows are cut into.
    seed : int
        Of the order of partitions and of what is forgotten.
    forgets : float
        The probability with which an image is forgotten after each use of a workspace.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, minimize
    >>> from projfree.testing import SealedData
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> minimize(Objective(Squared(), SealedData(X, y)), LpBall(1.5, radius=1.0)).w.round(3)
    array([0.499, 0.748])
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any = None, *, partitions: int = 3, seed: int = 0, forgets: float = 0.3
    ) -> None:
        inner: LocalData = DenseData(X, y, sample_weight, threads=1)
        self._inner, self._seed, self._forgets = inner, seed, forgets
        self._cuts = np.linspace(0, inner.n, min(partitions, inner.n) + 1).astype(np.intp)
        inner.total_weight = None if sample_weight is None else float(np.sum(sample_weight))
        self._take_over(inner)

    def _take_over(self, inner: LocalData) -> None:
        self.n, self.column_stats, self.total_weight = inner.n, inner.column_stats, inner.total_weight
        widest = int(np.diff(self._cuts).max())  # any order within a partition, then a tree over partitions
        self.rounding_units = max(inner.rounding_units, Blocks(widest, widest).units() + len(self._cuts))
        self.y: Any = Opaque()
        self.weight: Any = None if inner.weight is None else Opaque()

    def open(self) -> SealedWorkspace:
        return SealedWorkspace(self, np.random.default_rng(self._seed))

    def with_targets(
        self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None
    ) -> SealedData:
        return self._over(self._inner.with_targets(*_sent((convert, reweight))))

    def subset(self, rows: Array | Fold) -> SealedData:
        return self._over(self._inner.subset(rows))

    def _over(self, inner: LocalData) -> SealedData:
        data = copy(self)
        data._inner = inner
        data._cuts = np.linspace(0, inner.n, min(len(self._cuts) - 1, inner.n) + 1).astype(np.intp)
        data._take_over(inner)
        return data

    def labels(self) -> list[Array]:
        return self._inner.labels()

    def quantile(self, q: float) -> Array:
        return self._inner.quantile(q)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return self._inner.shape(outputs)

    def gram(self) -> Gram:
        return self._inner.gram()

    def standardized(self, centre: Any, scale: Any) -> SealedData:
        return self._over(self._inner.standardized(centre, scale))

    def fingerprint(self) -> str:
        return f"sealed {self._inner.fingerprint()}"

    def _partition(self, k: int) -> tuple[Array, Rows]:
        """The features of a partition, and what a step is told about its rows."""
        rows, inner = slice(self._cuts[k], self._cuts[k + 1]), self._inner
        part = inner.take(np.arange(rows.start, rows.stop), None)
        shift, scale = inner.scaling or (0.0, 1.0)
        X = (np.concatenate([table for _, table in part.tables()]) - shift) / scale
        return X, Rows(inner.y[rows], inner.weights(rows))


class SealedWorkspace(Workspace):
    """The only way to the rows of `SealedData`."""

    def __init__(self, data: SealedData, rng: np.random.Generator, whole: Workspace | None = None) -> None:
        self._data, self._rng, self._whole = data, rng, whole
        self._images: dict[Handle, list[Array]] = {}

    @property
    def _count(self) -> int:
        return len(self._data._cuts) - 1

    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        images = [self._formed(x) for x in points]
        sums, adjoints = self._work(step, images, adjoint=True)
        if keep:
            self._images.update(zip([x.handle for x in points], images, strict=True))
        self.rows_read += self._data.n
        self._forget()
        return sums, adjoints

    def fold(self, step: Step, points: Sequence[Point]) -> Array:
        self._hold(points)
        sums, _ = self._work(step, [self._images[x.handle] for x in points], adjoint=False)
        self._forget()
        return sums

    def _hold(self, points: Sequence[Point]) -> None:
        missing = [x for x in points if x.handle not in self._images]
        for x in missing:
            self._images[x.handle] = self._formed(x)
        if any(x.w.any() for x in missing):
            self.rows_read += self._data.n

    def holds(self, x: Point) -> bool:
        return x.handle in self._images or not x.w.any()

    def sample(self, m: int, rng: np.random.Generator) -> SealedWorkspace:
        inner = self._data._inner
        return SealedWorkspace(self._data._over(inner.representative(inner.sample(m, rng))), self._rng, self)

    def moments(self, step: Step, x: Point, wanted: Moments) -> Any:
        if wanted.factors:
            return None
        self._hold([x])
        step, shift = _sent(step), self._data.column_stats.mean if wanted.centred else 0.0
        parts: list[Any] = [None] * self._count
        for k in self._order():
            X, rows = self._data._partition(k)
            h = wanted.weights_of(step.block(rows, self._images[x.handle][k])[0])
            z = np.column_stack([wanted.select(X - shift), np.ones(len(X))])
            parts[k] = np.einsum("ij,ia,ib->jab", h, z, z)
        self.rows_read += self._data.n
        self._forget()
        return tree_sum(np.array(parts))

    def _formed(self, x: Point) -> list[Array]:
        """The image of a point, partition by partition; remembered or formed anew, never mixed."""
        if x.handle in self._images:
            return self._images[x.handle]
        w = _sent(np.array(x.w))
        return [self._data._partition(k)[0] @ w for k in range(self._count)]

    def _work(self, step: Step, images: list[list[Array]], *, adjoint: bool) -> tuple[Array, Any]:
        step = _sent(step)
        sums: list[Any] = [None] * self._count
        adjoints: list[Any] = [None] * self._count
        for k in self._order():
            X, rows = self._data._partition(k)
            residual, sums[k] = step.block(rows, *(image[k] for image in images))
            if adjoint and residual is not None:
                adjoints[k] = X.T @ residual
        total = tree_sum(np.array(sums))
        return total, None if adjoints[0] is None else tree_sum(np.array(adjoints))

    def _order(self) -> list[int]:
        order: list[int] = self._rng.permutation(self._count).tolist()
        return order

    def _forget(self) -> None:
        kept = {handle: image for handle, image in self._images.items() if self._rng.random() >= self._data._forgets}
        self._images = dict(list(kept.items())[-6:])


def _sent(thing: Any) -> Any:
    """What arrives elsewhere: a copy that shares nothing."""
    return pickle.loads(pickle.dumps(thing))
