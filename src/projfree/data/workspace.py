"""`Workspace`: where a run touches rows, by `sweep` and `fold` and in no other way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import Handle, Point
from projfree.checks import Array
from projfree.data.folding import fold_images
from projfree.data.rows import Derived, FormImages, Pass, Step
from projfree.runtime import lock_of

if TYPE_CHECKING:
    from projfree.data.local import LocalData
    from projfree.data.second_moments import Moments, RowWeights

#: The most images that a workspace keeps; the one that was used least recently goes first.
MOST_IMAGES = 6
#: The most results of `derive` that it keeps, unless more are in use: a search needs one.
MOST_DERIVED = 1

#: The images that are known of what a point is a mixture of, with their coefficients, and the points that have none.
Parts = tuple[list[tuple[float, Handle]], list[tuple[float, Point]]]


class Meter:
    """Counts the rows that were read."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows = 0


class Workspace(ABC):
    """The images of a few points over one data set, and the count of what was read for them.

    Attributes
    ----------
    meter : Meter
        The rows read in this workspace.
    """

    meter: Meter

    @abstractmethod
    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        """Read the data once: the sums of ``step`` over all rows, and the adjoint of its residuals or None.

        ``keep`` asks for the images to be kept also where forming them anew is as cheap: a search will follow.
        """

    @abstractmethod
    def fold(self, step: Step, points: Sequence[Point], derived: Sequence[Derived] = ()) -> Array:
        """The sums of ``step`` over all rows from images alone; images that are missing cost one read for all.

        The step is given the images of the points and, behind them, what was derived from images.
        """

    @abstractmethod
    def derive(self, step: Step, points: Sequence[Point]) -> tuple[Array, Derived]:
        """`fold`, and the residuals of ``step`` as something that later folds can be over.

        For searches that need the same numbers of each row many times, such as the curvature of the loss at one place.
        """

    @abstractmethod
    def hold(self, points: Sequence[Point]) -> None:
        """Form the images of the points that have none, in one read, and keep them."""

    @abstractmethod
    def holds(self, x: Point) -> bool:
        """Whether a fold over ``x`` would cost no read."""

    @abstractmethod
    def sampled(self, m: int, rng: np.random.Generator) -> Workspace:
        """A workspace over ``m`` rows, each drawn with the same probability; it counts into this one's meter."""

    @abstractmethod
    def second_moments(self, step: Step, x: Point, wanted: Moments) -> Array:
        """Weighted products of features, the weights being what ``step`` returns as residuals at ``x``; one read."""

    def row_residuals(self, step: Step, x: Point) -> Array | None:
        """The residuals of ``step`` at ``x``, one for each row; None where rows are out of reach."""
        return None


class LocalWorkspace(Workspace):
    """A workspace whose images are arrays in the memory of this process.

    The image of a mixture is mixed from those of its points where that saves reading vectors, and else formed anew.
    An image never leaves the workspace, so that the memory of one that is dropped can be used again.
    """

    def __init__(self, data: LocalData, meter: Meter | None = None) -> None:
        self.data, self.meter = data, Meter() if meter is None else meter
        self._depth = len(data.shape(()))
        self._images: dict[Handle, Array] = {}
        self._derived: dict[Handle, Array] = {}
        self._free: list[Array] = []
        self._lock = lock_of(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data}

    def __setstate__(self, state: dict[str, Any]) -> None:
        LocalWorkspace.__init__(self, state["data"])

    def __deepcopy__(self, memo: dict[int, Any]) -> LocalWorkspace:
        return LocalWorkspace(self.data)

    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        with self._lock:
            found = self._sweep(step, points, keep=keep or (self.data.keeps_images and not step.transient))
            self._drop(points)
            return found

    def fold(self, step: Step, points: Sequence[Point], derived: Sequence[Derived] = ()) -> Array:
        with self._lock:
            made = self._made(derived) if derived else []  # first, because it may drop images
            if not all([x.handle in self._images for x in points]):
                self.hold(points)
            return fold_images(self.data, step, [self._image(x.handle) for x in points] + made, self.meter.rows)

    def derive(self, step: Step, points: Sequence[Point]) -> tuple[Array, Derived]:
        made = Derived(step, tuple(points))
        with self._lock:
            sums = self._make(made)
            self._drop_derived({made.handle})
        return sums, made

    def hold(self, points: Sequence[Point]) -> None:
        with self._lock:
            missing = [x for x in points if not self._settle(x)]
            if missing:
                # The parts of mixtures where they are as few: later mixtures may share them.
                parts = {part.handle: part for x in missing for _, part in self._parts(x)[1]}
                as_few = len(parts) <= len(missing)
                self._sweep(FormImages(), list(parts.values()) if as_few else missing, keep=True)
                for x in missing if as_few else ():
                    self._settle(x)
            self._drop(points)

    def holds(self, x: Point) -> bool:
        return x.handle in self._images or not self._parts(x)[1]

    def sampled(self, m: int, rng: np.random.Generator) -> LocalWorkspace:
        return LocalWorkspace(self.data.subset(self.data.sample(m, rng)), self.meter)

    def second_moments(self, step: Step, x: Point, wanted: Moments) -> Array:
        with self._lock:
            return self.data.second_moments(self._weights(step, x, wanted), wanted)

    def row_residuals(self, step: Step, x: Point) -> Array:
        with self._lock:
            self.hold([x])
            work = self._pass(step, [x], (x.w,), np.ones((1, 1)), None, np.zeros(1), (None,))
            return np.asarray(work(slice(0, self.data.n), self._images[x.handle])[0])

    def _weights(self, step: Step, x: Point, wanted: Moments) -> RowWeights:
        """The residuals of ``step`` at the image of ``x``, which is formed in the same read where it is not held."""
        held: Array | None = None
        if self.holds(x):
            self.hold([x])
            held = self._images[x.handle]
        work = self._pass(step, [x], (x.w,), np.ones((1, 1)), None, np.zeros(1), (None,))

        def weights(rows: slice, table: Any) -> Array:
            self.meter.rows += rows.stop - rows.start  # now, for a deadline may end the read before the last rows
            image = self.data.image_of(table, x.w) if held is None else held[rows]
            return wanted.weights_of(work(rows, image)[0])

        return weights

    def _sweep(self, step: Step, points: Sequence[Point], *, keep: bool) -> tuple[Array, Any]:
        vectors, coefficients, base, scale = self._mixture(points)
        stores: tuple[Array | None, ...] = (None,) * len(points)
        if keep:
            stores = tuple(None if x.handle in self._images else self._array_for(x) for x in points)
        work = self._pass(step, points, tuple(vectors), coefficients, base, scale, stores)
        found = self.data.run(work)
        if vectors or self.data.adjoint_reads:
            self.meter.rows += self.data.n
        # Only now, so that an interrupted pass leaves the workspace as it was.
        for x, store in zip(points, stores, strict=True):
            if store is not None:
                self._images[x.handle] = store
        return found

    def _pass(
        self,
        step: Step,
        points: Sequence[Point],
        vectors: tuple[Any, ...],
        coefficients: Array,
        base: Array | None,
        scale: Array,
        keep: tuple[Array | None, ...],
    ) -> Pass:
        data, outputs = self.data, points[0].w.shape[self._depth :]
        shared = (step, data.n, data.y, data.weight)
        return Pass(*shared, vectors, coefficients, base, scale, keep, outputs, None, data.places, self.meter.rows)

    def _mixture(self, points: Sequence[Point]) -> tuple[list[Any], Array, Array | None, Array]:
        """The vectors to read, their coefficients, a known image and its factor for each point."""
        split = [self._parts(x) for x in points]
        columns: dict[Handle, int] = {}
        vectors: list[Any] = []
        bases: set[Handle] = set()
        fresh = 0
        for known, new in split:
            fresh += bool(new)
            for _, handle in known:
                bases.add(handle)
            for _, part in new:
                if part.handle not in columns:
                    columns[part.handle] = len(vectors)
                    vectors.append(part.w)
        if len(vectors) >= fresh > 0 or (len(bases) > 1 and len(points) > 1):
            return self._singly(points, split)
        coefficients, scale = np.zeros((len(points), len(vectors))), np.zeros(len(points))
        for j, (known, new) in enumerate(split):
            for c, part in new:
                coefficients[j, columns[part.handle]] += c
            for c, _ in known:
                scale[j] += c
        if len(bases) > 1:  # of a single point
            return vectors, coefficients, self._combined(split[0][0]), np.ones(1)
        return vectors, coefficients, self._image(bases.pop()) if bases else None, scale

    def _singly(self, points: Sequence[Point], split: Sequence[Parts]) -> tuple[list[Any], Array, Array | None, Array]:
        """`_mixture` where every point is read by itself, but the first whose image is held and those that are zero."""
        base: Handle | None = None
        columns: dict[Handle, int] = {}
        vectors: list[Any] = []
        for x, (known, new) in zip(points, split, strict=True):
            if base is None and x.handle in self._images:
                base = x.handle
            elif x.handle not in columns and x.handle is not base and (known or new):
                columns[x.handle] = len(vectors)
                vectors.append(x.w)
        coefficients, scale = np.zeros((len(points), len(vectors))), np.zeros(len(points))
        for j, x in enumerate(points):
            if x.handle in columns:
                coefficients[j, columns[x.handle]] = 1.0
            elif x.handle is base:
                scale[j] = 1.0
        return vectors, coefficients, None if base is None else self._image(base), scale

    def _parts(self, x: Point) -> Parts:
        """What is known of the image of a point, and what is not."""
        known: list[tuple[float, Handle]] = []
        new: list[tuple[float, Point]] = []
        for c, part in ((1.0, x),) if x.handle in self._images else x.of or ((1.0, x),):
            if part.handle in self._images:
                known.append((c, part.handle))
            elif part.w.any():
                new.append((c, part))
        return known, new

    def _settle(self, x: Point) -> bool:
        """Mix the image of ``x`` where its points have theirs; whether it is held now."""
        if x.handle not in self._images:
            known, new = self._parts(x)
            if new:
                return False
            mixed = self._array_for(x)
            if known:
                self._combined(known, mixed)
            else:
                mixed[...] = 0.0
            self._images[x.handle] = mixed
        return True

    def _combined(self, terms: Sequence[tuple[float, Handle]], out: Array | None = None) -> Array:
        (c, handle), *rest = terms
        out = np.multiply(self._image(handle), c, out=out)
        for c, handle in rest:
            out += c * self._image(handle)
        return out

    def _image(self, handle: Handle) -> Array:
        self._images[handle] = image = self._images.pop(handle)  # the last one is the one used most recently
        return image

    def _drop(self, points: Sequence[Point]) -> None:
        """Make the images few again, but leave those of the points that are in use."""
        if len(self._images) <= MOST_IMAGES:
            return
        used = {x.handle for x in points}
        for handle in [handle for handle in self._images if handle not in used]:
            if len(self._images) <= MOST_IMAGES:
                return
            self._free.append(self._images.pop(handle))

    def _array_for(self, x: Point) -> Array:
        shape = (self.data.n, *x.w.shape[self._depth :])
        while self._free:
            array = self._free.pop()
            if array.shape == shape:
                return array
        return np.empty(shape)

    def _made(self, derived: Sequence[Derived]) -> list[Array]:
        for one in derived:
            if one.handle not in self._derived:
                self._make(one)
        self._drop_derived({one.handle for one in derived})
        return [self._derived[one.handle] for one in derived]

    def _make(self, derived: Derived) -> Array:
        """Form what a step derives from images and keep it; return the sums of the step."""
        self.hold(derived.points)
        parts: dict[int, Any] = {}
        images = [self._image(x.handle) for x in derived.points]
        sums = fold_images(self.data, derived.step, images, self.meter.rows, parts)
        if any(part is None for part in parts.values()):
            raise TypeError(
                f"{type(derived.step).__name__} has no residuals, which is what `derive` keeps; use `fold`."
            )
        self._derived[derived.handle] = np.concatenate([parts[first] for first in sorted(parts)])
        return sums

    def _drop_derived(self, used: set[Handle]) -> None:
        unused = [handle for handle in self._derived if handle not in used]
        for handle in unused[: max(0, len(self._derived) - MOST_DERIVED)]:
            del self._derived[handle]
