"""The hull of points whose images are known: O(n) for each place that is looked at, no pass over the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.objectives.hull import Hull, Local, QuadraticHull, reduced
from projfree.objectives.intercept import joint_curvature
from projfree.objectives.tangent import weigh

if TYPE_CHECKING:
    from projfree.objectives.erm import Objective


class _Images:
    """The image of the first point and the differences to it, met in at most one read a point."""

    def __init__(self, f: Objective, points: tuple[Point, ...]) -> None:
        self.base = f.settled(points[0])
        self.differences = [f.settled(p) - self.base for p in points[1:]]
        self.weights = f.data.weights(slice(None))


class ImageHull(Hull):
    """Any loss: value, gradient and Hessian from the images, the intercept profiled at each place."""

    def __init__(self, f: Objective, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None) -> None:
        super().__init__(points, gradient, tilt, f.convex)
        self.f = f
        self._cached: _Images | None = None
        self._b: Array | None = None
        self._looked: dict[bytes, Local] = {}

    @property
    def images(self) -> _Images:
        """The images of the points, met on first use."""
        if self._cached is None:
            self._cached = _Images(self.f, self.points)
        return self._cached

    def _evaluate(self, m: Array) -> Local:
        u = self._image(m)
        b = self._intercept(u)
        here = self._joint(u, b)
        gradient, hessian, _ = reduced(here.gradient, here.hessian, len(m))
        return Local(here.value, gradient, hessian, b)

    def _image(self, m: Array) -> Array:
        u = self.images.base
        for c, d in zip(m.tolist(), self.images.differences, strict=True):
            u = u + c * d
        return u

    def _joint(self, u: Array, b: Array | None) -> Local:
        """The function of the place and, where there is one, of the intercept."""
        f, images, loss = self.f, self.images, self.f.loss
        full = u if b is None else u + b
        losses, derivative = loss.value_and_derivative(full, f.y)
        r = weigh(derivative, images.weights)
        gradient = np.array([np.vdot(r, d) for d in images.differences])
        if b is not None:
            gradient = np.concatenate([gradient, np.ravel(r.sum(axis=0))])
        hessian = joint_curvature(loss, full, f.y, images.weights, images.differences, b is not None)
        return Local(float(np.sum(weigh(losses, images.weights))), gradient, hessian, b)

    def _intercept(self, u: Array) -> Array | None:
        f = self.f
        if f.constant_intercept is None:
            return None
        # Convex: from the last place looked at. Otherwise from the first point, so that a place has one value.
        start = self._b if f.convex and self._b is not None else f.hint(self.points[0])
        self._b = f.profiled(u, start)
        return self._b

    def _place(self, m: Array) -> Array:
        if self.f.constant_intercept is None or not self.convex:
            return m
        b = np.broadcast_to(np.asarray(self.f.hint(self.points[0])), self.f.outputs)
        return np.concatenate([m, np.ravel(b)])

    def _look(self, place: Array) -> Local:
        k = len(self.tilt)
        if len(place) == k:
            return self.at(place)
        key = place.tobytes()
        if key not in self._looked:
            m, b = place[:k], place[k:].reshape(self.f.outputs)
            here = self._joint(self._image(m), b)
            gradient = here.gradient + np.concatenate([self.tilt, np.zeros(len(place) - k)])
            self._looked[key] = Local(here.value + float(self.tilt @ m), gradient, here.hessian, b)
        return self._looked[key]

    def _leave(self, place: Array, here: Local) -> Array:
        m = place[: len(self.tilt)]
        if len(place) > len(m):
            gradient, hessian, _ = reduced(here.gradient, here.hessian, len(m))
            # Its intercept is where the next search starts.
            self._seen[m.tobytes()] = Local(here.value, gradient, hessian, here.intercept)
        return m

    @property
    def curvature(self) -> float:
        d = self.images.differences[0]
        if self.f.constant_intercept is not None and self.f.convex:
            d = d - np.sum(weigh(d, self.images.weights), axis=0)
        return self.f.loss.smoothness * float(np.sum(weigh(d**2, self.images.weights)))


class SquaresHull(QuadraticHull):
    """The squared loss: a quadratic, centred where there is an intercept."""

    def __init__(self, f: Objective, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None) -> None:
        super().__init__(points, gradient, tilt, convex=True)
        self.f = f

    def _expand(self) -> Local:
        f, images = self.f, _Images(self.f, self.points)
        centre = f.constant_intercept is not None
        residual = self._centred(images.base - f.y, images.weights, centre)
        differences = [self._centred(d, images.weights, centre) for d in images.differences]
        weighted = [weigh(d, images.weights) for d in differences]
        L = f.loss.smoothness
        gradient = L * np.array([np.vdot(d, residual) for d in weighted])
        hessian = L * np.array([[np.vdot(a, b) for b in differences] for a in weighted])
        value = 0.5 * L * float(np.sum(weigh(residual**2, images.weights)))
        return Local(value, gradient, hessian)

    @staticmethod
    def _centred(u: Array, s: Array | float, centre: bool) -> Array:
        return u - np.sum(weigh(u, s), axis=0) if centre else u
