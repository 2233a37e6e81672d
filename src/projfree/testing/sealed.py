"""`SealedData`: rows that only their own workspace can touch, the law of the border between objectives and data."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np

from projfree.algebra import Handle, Point
from projfree.checks import Array
from projfree.data.base import Data, Fold
from projfree.data.gram import Gram, Moments
from projfree.data.local import LocalData
from projfree.data.rows import Blocks, Step
from projfree.data.tables import DenseData
from projfree.data.workspace import MOST_IMAGES, Workspace
from projfree.numerics.sums import tree_sum

#: Pieces of unequal size that the rows are cut into.
PARTITIONS = 5


class Opaque:
    """A vector with an entry a row, of which nothing can be seen: no length, no entries, no conversion to an array."""

    __array_ufunc__ = None

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise TypeError("the rows of SealedData cannot be seen; go through `sweep`, `fold` or a method of the data.")


class SealedData(Data):
    """A table for tests whose rows are out of reach, as those of a cluster or a device are.

    Targets and weights are opaque; steps are pickled and unpickled before each use; partitions are worked on in random
    order; images are forgotten at random. What runs on it touches rows through the doors of a workspace alone, and must
    find what it finds on the same rows in memory, to rounding.

    Parameters
    ----------
    X, y, sample_weight
        As for `as_data`, dense.
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

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, *, forgets: float = 0.3) -> None:
        self._forgets = forgets
        inner = DenseData(X, y, sample_weight, threads=1)
        inner.total_weight = None if sample_weight is None else float(np.sum(sample_weight))
        self._take_over(inner)

    def _take_over(self, inner: LocalData) -> None:
        """Cut the scaled features and the rest of the rows into partitions."""
        self._inner, n = inner, inner.n
        cuts = np.linspace(0, n, min(PARTITIONS, n) + 1).astype(np.intp).tolist()
        X, parts = inner.scaled_columns(slice(None), centred=False), [slice(*ends) for ends in pairwise(cuts)]
        self._tables, self._rows = [X[part] for part in parts], [inner.rows(part) for part in parts]
        self.n, self.column_stats, self.total_weight = n, inner.column_stats, inner.total_weight
        widest = max(map(len, self._tables))  # any order within a partition, then a tree over partitions
        self.rounding_units = max(inner.rounding_units, Blocks(widest, widest).units() + len(cuts))
        self.y: Any = Opaque()
        self.weight: Any = None if inner.weight is None else Opaque()

    def _over(self, inner: LocalData) -> SealedData:
        data = copy(self)
        data._take_over(inner)
        return data

    def open(self) -> SealedWorkspace:
        return SealedWorkspace(self, np.random.default_rng(0))

    def with_targets(
        self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None
    ) -> SealedData:
        return self._over(self._inner.with_targets(*_sent((convert, reweight))))

    def subset(self, rows: Array | Fold) -> SealedData:
        return self._over(self._inner.subset(rows))

    def standardized(self, centre: Any, scale: Any) -> SealedData:
        return self._over(self._inner.standardized(centre, scale))

    def labels(self) -> list[Array]:
        return self._inner.labels()

    def quantile(self, q: float) -> Array:
        return self._inner.quantile(q)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return self._inner.shape(outputs)

    def gram(self) -> Gram:
        return self._inner.gram()

    def fingerprint(self) -> str:
        return f"sealed {self._inner.fingerprint()}"


class SealedWorkspace(Workspace):
    """The only way to the rows of `SealedData`."""

    def __init__(self, data: SealedData, rng: np.random.Generator, whole: Workspace | None = None) -> None:
        self._data, self._rng, self._whole = data, rng, whole
        self._images: dict[Handle, list[Array]] = {}

    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        self.rows_read += self._data.n
        images = [self._image(x) for x in points]
        if keep:
            self._images.update(zip([x.handle for x in points], images, strict=True))
        step, tables = _sent(step), self._data._tables

        def work(k: int) -> tuple[Array, Array | None]:
            residual, sums = step.block(self._data._rows[k], *(image[k] for image in images))
            return sums, None if residual is None else tables[k].T @ residual

        sums, adjoints = zip(*self._visit(work), strict=True)
        return tree_sum(np.array(sums)), None if adjoints[0] is None else tree_sum(np.array(adjoints))

    def fold(self, step: Step, points: Sequence[Point]) -> Array:
        images, step = self._held(points), _sent(step)
        sums = self._visit(lambda k: step.block(self._data._rows[k], *(image[k] for image in images))[1])
        return tree_sum(np.array(sums))

    def holds(self, x: Point) -> bool:
        return x.handle in self._images or not x.w.any()

    def sample(self, m: int, rng: np.random.Generator) -> SealedWorkspace:
        inner = self._data._inner
        return SealedWorkspace(self._data._over(inner.representative(inner.sample(m, rng))), self._rng, self)

    def moments(self, step: Step, x: Point, wanted: Moments) -> Any:
        if wanted.factors:
            return None
        image, step = self._held([x])[0], _sent(step)
        shift = self._data.column_stats.mean if wanted.centred else 0.0
        self.rows_read += self._data.n

        def work(k: int) -> Array:
            X, h = self._data._tables[k], wanted.weights_of(step.block(self._data._rows[k], image[k])[0])
            z = np.column_stack([wanted.select(X - shift), np.ones(len(X))])
            return np.asarray(np.einsum("ij,ia,ib->jab", h, z, z))

        return tree_sum(np.array(self._visit(work)))

    def _held(self, points: Sequence[Point]) -> list[list[Array]]:
        """The images of points; those that are missing are formed in one read, and kept."""
        if not all(map(self.holds, points)):
            self.rows_read += self._data.n
        self._images.update({x.handle: self._image(x) for x in points})
        return [self._images[x.handle] for x in points]

    def _image(self, x: Point) -> list[Array]:
        """The image of a point, partition by partition; remembered or formed anew, never mixed."""
        if x.handle in self._images:
            return self._images[x.handle]
        w = _sent(np.array(x.w))
        return [X @ w for X in self._data._tables]

    def _visit(self, work: Callable[[int], Any]) -> list[Any]:
        """What ``work`` returns for each partition; they are visited in random order, and images are forgotten then."""
        found = {int(k): work(k) for k in self._rng.permutation(len(self._data._tables))}
        kept = [handle for handle in self._images if self._rng.random() >= self._data._forgets]
        self._images = {handle: self._images[handle] for handle in kept[-MOST_IMAGES:]}
        return [found[k] for k in range(len(found))]


def _sent(thing: Any) -> Any:
    """What arrives elsewhere: a copy that shares nothing."""
    return pickle.loads(pickle.dumps(thing))
