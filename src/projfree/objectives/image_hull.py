"""The hull of points whose images a workspace holds: each place that is looked at is a fold, no read of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.data.rows import Step
from projfree.data.workspace import Workspace
from projfree.objectives.hull import Hull, Local, reduced
from projfree.objectives.hull_steps import HullPlace, HullSums, MeanDifference, SquaredDifference
from projfree.objectives.intercepts.base import Intercept


class RowHull(Hull):
    """What hulls share whose places are folds over the images of their points."""

    def __init__(
        self,
        intercept: Intercept,
        workspace: Workspace,
        points: tuple[Point, ...],
        gradient: Array | None,
        tilt: Array | None,
    ) -> None:
        super().__init__(points, gradient, tilt, intercept.loss.convex)
        self.intercept, self.workspace = intercept, workspace

    def _folded(self, step: Step, k: int, intercepts: Sequence[Array | None]) -> list[Local]:
        """Value, gradient and Hessian in ``k`` coordinates for each place of a step, with the intercepts there."""
        sums = self.workspace.fold(step, self.points).reshape(len(intercepts), -1)
        found = []
        for own, b in zip(sums, intercepts, strict=True):
            found.append(Local(float(own[0]), own[1 : 1 + k], own[1 + k :].reshape(k, k), b))
        return found

    def _bend(self, mean: Array | float) -> float:
        """A bound on the second derivative along the first segment, whose images differ by ``mean`` in the mean."""
        if not np.isfinite(self.intercept.loss.smoothness):
            return self.intercept.steepest() * self.squared_length
        square = self.workspace.fold(SquaredDifference(mean), self.points[:2])[0]
        return self.intercept.loss.smoothness * float(square)


class ImageHull(RowHull):
    """Any loss: value, gradient and Hessian from the images, the intercept minimised out at each place."""

    #: The intercept at the last place that was looked at.
    _last: Array | None = None

    def _evaluate(self, m: Array) -> Local:
        b = self._intercept(m)
        (here,) = self._joint(((tuple(m.tolist()), b),))
        gradient, hessian, _ = reduced(here.gradient, here.hessian, len(m))
        return Local(here.value, gradient, hessian, b)

    def _joint(self, places: tuple[HullPlace, ...]) -> list[Local]:
        """The function of places and, where there are some, of their intercepts, in one fold."""
        m, b = places[0]
        k = len(m) + (0 if b is None else max(1, b.size))
        return self._folded(HullSums(self.intercept.loss, places), k, [b for _, b in places])

    def _intercept(self, m: Array) -> Array | None:
        if self.intercept.constant is None:
            return None
        # Convex: from the last place looked at. Otherwise from the first point, so that a place has one value.
        start = self._last if self.convex and self._last is not None else self.intercept.guess(self.points[0])
        x = self.mix(m)
        (self._last,) = self.intercept.locate(self.workspace, (x.starting_at(start),))
        return self._last

    def _place(self, m: Array) -> Array:
        if self.intercept.constant is None or not self.convex:
            return m
        b = np.broadcast_to(np.asarray(self.intercept.guess(self.points[0])), self.intercept.outputs)
        return np.concatenate([m, np.ravel(b)])

    def _look(self, place: Array) -> Local:
        if len(place) == len(self.tilt):
            return self.at(place)
        self._prepare([place])
        return self._seen[place.tobytes()]  # longer than the key of a place without an intercept

    def _prepare(self, places: Sequence[Array]) -> None:
        k = len(self.tilt)
        new = {place.tobytes(): place for place in places if place.tobytes() not in self._seen}
        free = self.intercept.constant is not None
        if not new or (free and len(places[0]) == k):  # each place has an intercept to be searched for
            return
        outputs = self.intercept.outputs
        asked = tuple((tuple(p[:k].tolist()), p[k:].reshape(outputs) if free else None) for p in new.values())
        for (key, place), here in zip(new.items(), self._joint(asked), strict=True):
            self._seen[key] = self._tilted(place[:k], here)

    def _leave(self, place: Array, here: Local) -> Array:
        m = place[: len(self.tilt)]
        if len(place) > len(m):
            gradient, hessian, _ = reduced(here.gradient, here.hessian, len(m))
            # Its intercept is where the next search starts.
            self._seen[m.tobytes()] = Local(here.value, gradient, hessian, here.intercept)
        return m

    @property
    def curvature(self) -> float:
        mean: Array | float = 0.0
        if self.intercept.constant is not None and self.convex:
            mean = self.workspace.fold(MeanDifference(), self.points[:2]).reshape(self.intercept.outputs)
        return self._bend(mean)
