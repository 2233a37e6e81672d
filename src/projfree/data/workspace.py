"""`Workspace`: access to the rows of a data set during a run, through passes (`sweep`) and sums over rows (`fold`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import Handle, Point
from projfree.checks import Array
from projfree.data.rows import Blocks, FormPredictions, Pass, Step
from projfree.numerics.sums import tree_sum
from projfree.runtime import get_lock, parallel_for

if TYPE_CHECKING:
    from projfree.data.gram import Moments
    from projfree.data.local import LocalData

#: Maximum number of cached predictions: those of two points, of two combinations of points, and of the points that a
#: third one combines.
MAX_PREDICTIONS = 6


class Workspace(ABC):
    """A cache for the predictions of a few points on one data set, with a counter of the rows read."""

    #: Number of rows read through this workspace and its samples.
    rows_read = 0
    #: The workspace that this one is a sample of; it counts the rows read.
    _parent: Workspace | None = None

    def _count(self, rows: int) -> None:
        """Add to `rows_read`; a sample adds to the counter of its parent."""
        (self if self._parent is None else self._parent).rows_read += rows

    @abstractmethod
    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        """Make one pass over the data; return the sums of ``step``, and the adjoint of its residuals or None.

        With ``keep``, cache the predictions even if recomputing them is as cheap, because a line search will use them.
        """

    @abstractmethod
    def fold(self, step: Step, points: Sequence[Point]) -> Array:
        """Return the sums of ``step`` over all rows, from predictions; missing ones are computed in one pass."""

    @abstractmethod
    def holds(self, x: Point) -> bool:
        """Return whether `fold` needs no pass for ``x``, because its predictions are cached or zero."""

    @abstractmethod
    def sample(self, m: int, rng: np.random.Generator) -> Workspace:
        """Create a workspace over ``m`` random rows, each with the same inclusion probability.

        The rows it reads are added to the `rows_read` of this workspace.
        """

    @abstractmethod
    def moments(self, step: Step, x: Point, wanted: Moments) -> Any:
        """Return the moments of the rows, with the residuals that ``step`` returns at ``x`` as weights.

        This takes one pass, and another one if the predictions of ``x`` are not cached.

        If ``wanted.factors``, return instead a copy of the columns of all rows (CSC or in Fortran order; if
        ``wanted.centred``, any constant may be subtracted from a column) and the weights, or None if that takes more
        than a pass.
        """


class LocalWorkspace(Workspace):
    """A workspace that caches predictions as arrays in the memory of this process.

    The predictions of a linear combination of points are computed from those of the points if all of these are cached.
    Otherwise `sweep` computes them from the parameter, and `fold` computes and caches the predictions of the points,
    because the next combination uses them as well.
    """

    def __init__(self, data: LocalData, parent: Workspace | None = None) -> None:
        self.data, self._parent = data, parent
        self._depth = len(data.shape(()))
        self._images: dict[Handle, Array] = {}  # in order of use: the last entry was used most recently
        self.lock: tuple[int, Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalWorkspace, (self.data,)

    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        with get_lock(self):
            data, outputs = self.data, points[0].w.shape[self._depth :]
            keep = keep or (data.caches_predictions and not step.transient)
            read: dict[Handle, Any] = {}
            sources: list[int | Array | None] = []
            for x in points:
                held = self.holds(x)
                if not held:
                    read.setdefault(x.handle, x.w)
                sources.append((self._image(x) if x.w.any() else None) if held else list(read).index(x.handle))
            stores = [np.empty((data.n, *outputs)) if keep and x.handle not in self._images else None for x in points]
            read_once = data.run if data.scaling is None else data.read
            found = read_once(Pass(step, data, tuple(read.values()), tuple(sources), tuple(stores), outputs))
            if read or data.adjoint_reads:
                self._count(data.n)
            # Update the cache last, so that an interrupted pass leaves the workspace unchanged.
            self._images.update({x.handle: own for x, own in zip(points, stores, strict=True) if own is not None})
            self._drop(points)
            return found

    def fold(self, step: Step, points: Sequence[Point]) -> Array:
        with get_lock(self):
            parts = {part.handle: part for x in points for _, part in self._parts(x)}
            if any(handle not in self._images for handle in parts):
                self.sweep(FormPredictions(), list(parts.values()), keep=True)
            images, n = [self._image(x) for x in points], self.data.n
            self._drop(points)
            cut = Blocks(n, 4 * Blocks.of(n).rows)  # larger blocks, because no features are read
            if cut.count == 1:
                return step.block(self.data.rows(slice(0, n)), *images)[1]
            found: list[Any] = [None] * cut.count

            def block(k: int) -> None:
                rows = cut.block(k)
                found[k] = step.block(self.data.rows(rows), *[image[rows] for image in images])[1]

            parallel_for(block, cut.count, self.data.threads)
            return tree_sum(np.stack(found))

    def holds(self, x: Point) -> bool:
        return all(part.handle in self._images for _, part in self._parts(x))

    def sample(self, m: int, rng: np.random.Generator) -> LocalWorkspace:
        return LocalWorkspace(self.data.representative(self.data.sample(m, rng)), self)

    def moments(self, step: Step, x: Point, wanted: Moments) -> Any:
        with get_lock(self):
            data, columns = self.data, None
            if wanted.factors:
                features = slice(None) if wanted.features is None else wanted.features
                columns = data.scaled_columns(features, centred=wanted.centred)
                if columns is None:
                    return None
            if not self.holds(x):
                self.sweep(FormPredictions(), [x], keep=True)
            image = self._image(x)

            def weights(rows: slice) -> Array:
                residual = step.block(data.rows(rows), image[rows])[0]
                assert residual is not None
                return residual

            if wanted.factors:
                return columns, weights(slice(0, data.n))
            self._count(data.n)
            return data.second_moments(weights, wanted)

    def _parts(self, x: Point) -> list[tuple[float, Point]]:
        """Return coefficients and points whose predictions sum to those of ``x``, without zero predictions."""
        parts = ((1.0, x),) if x.handle in self._images else x.of or ((1.0, x),)
        return [(c, part) for c, part in parts if part.handle in self._images or part.w.any()]

    def _image(self, x: Point) -> Array:
        """Return the predictions of a point, combined from those of its parts, which must be cached."""
        parts = self._parts(x)
        for _, part in parts:
            self._images[part.handle] = self._images.pop(part.handle)
        if x.handle not in self._images:
            combined = np.zeros((self.data.n, *x.w.shape[self._depth :]))
            for c, part in parts:
                combined += c * self._images[part.handle]
            self._images[x.handle] = combined
        return self._images[x.handle]

    def _drop(self, points: Sequence[Point]) -> None:
        """Remove the least recently used predictions from the cache, except those of ``points``."""
        used = [x.handle for x in points]
        for handle in list(self._images):
            if len(self._images) > MAX_PREDICTIONS and handle not in used:
                del self._images[handle]
