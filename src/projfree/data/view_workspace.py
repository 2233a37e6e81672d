"""The workspace of centred and scaled features over rows that are out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import Handle, Point, frozen
from projfree.checks import Array
from projfree.data.rows import Derived, Rows, Step, WithResidualSum
from projfree.data.workspace import MOST_IMAGES, Workspace

if TYPE_CHECKING:
    from projfree.data.second_moments import Moments
    from projfree.data.standardized import StandardizedView


@dataclass(frozen=True)
class Shifted(Step):
    """Another step on images to which numbers are added, one (or one for each output) for each point.

    What was derived from images stands behind them and stays as it is.
    """

    step: Step
    offsets: tuple[Array, ...]

    @property
    def transient(self) -> bool:
        return self.step.transient

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        k = len(self.offsets)
        shifted = (image + c for image, c in zip(images[:k], self.offsets, strict=True))
        return self.step.block(rows, *shifted, *images[k:])


class ViewWorkspace(Workspace):
    """A workspace of the data underneath, whose points are those of the view divided by the scale.

    The shift of the features enters as a number that is added to each image. The points underneath have handles of
    their own, which are kept for as many points as a workspace keeps images.
    """

    def __init__(self, view: StandardizedView, inner: Workspace) -> None:
        self._view, self._inner, self.meter = view, inner, inner.meter
        self._points: dict[Handle, Point] = {}

    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        wrapped = WithResidualSum(self._shifted(step, points))
        sums, g = self._inner.sweep(wrapped, self._under(points), keep=keep)
        if g is None:
            return sums, None
        outputs = g.shape[1:]
        total = wrapped.residual_sum(sums, outputs)
        return sums[: len(sums) - total.size], self._view.divided(g - np.multiply.outer(self._view.shift, total))

    def fold(self, step: Step, points: Sequence[Point], derived: Sequence[Derived] = ()) -> Array:
        return self._inner.fold(self._shifted(step, points), self._under(points), derived)

    def derive(self, step: Step, points: Sequence[Point]) -> tuple[Array, Derived]:
        return self._inner.derive(self._shifted(step, points), self._under(points))

    def hold(self, points: Sequence[Point]) -> None:
        self._inner.hold(self._under(points))

    def holds(self, x: Point) -> bool:
        return self._inner.holds(self._under([x])[0])

    def sampled(self, m: int, rng: np.random.Generator) -> ViewWorkspace:
        return ViewWorkspace(self._view, self._inner.sampled(m, rng))

    def second_moments(self, step: Step, x: Point, wanted: Moments) -> Array:
        moments = self._inner.second_moments(self._shifted(step, [x]), self._under([x])[0], wanted)
        shift, scale = wanted.among(self._view.shift), wanted.among(self._view.scale)
        change = np.diag(np.append(1.0 / scale, 1.0))
        if not wanted.centred:  # else the rows are taken about their own mean, and the shift does not matter
            change[:-1, -1] = -shift / scale
        changed: Array = change[wanted.kept][:, wanted.kept] @ moments @ change.T
        return changed

    def _under(self, points: Sequence[Point]) -> list[Point]:
        found = []
        for x in points:
            under = self._points.pop(x.handle, None)
            under = Point(frozen(self._view.divided(x.w))) if under is None else under
            self._points[x.handle] = under
            found.append(under)
        while len(self._points) > MOST_IMAGES:
            del self._points[next(iter(self._points))]
        return found

    def _shifted(self, step: Step, points: Sequence[Point]) -> Shifted:
        offsets = tuple(np.asarray(-(self._view.shift @ under.w)) for under in self._under(points))
        return Shifted(step, offsets)
