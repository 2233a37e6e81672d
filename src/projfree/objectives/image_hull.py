"""The hull of points whose images are known: O(n) for each place that is looked at, no pass over the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.objectives.hull import Hull, Local, QuadraticHull
from projfree.objectives.intercept import profile, projected_curvature
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
        self._b: Array | float | None = None

    @property
    def images(self) -> _Images:
        """The images of the points, met on first use."""
        if self._cached is None:
            self._cached = _Images(self.f, self.points)
        return self._cached

    def _evaluate(self, m: Array) -> Local:
        f, images, loss = self.f, self.images, self.f.loss
        u = images.base + sum(c * d for c, d in zip(m.tolist(), images.differences, strict=True))
        b = self._intercept(u)
        full = u if b is None else u + b
        losses, derivative = loss.value_and_derivative(full, f.y)
        r = weigh(derivative, images.weights)
        gradient = np.array([np.vdot(r, d) for d in images.differences])
        hessian = projected_curvature(loss, full, f.y, images.weights, images.differences, b is not None)
        return Local(float(np.sum(weigh(losses, images.weights))), gradient, hessian, b)

    def _intercept(self, u: Array) -> Array | None:
        f = self.f
        if f.constant_intercept is None:
            return None
        # Convex: from the last place looked at. Otherwise from the first point, so that a place has one value.
        start = self._b if f.convex and self._b is not None else f.hint(self.points[0])
        self._b = profile(f.loss, u, f.y, self.images.weights, start)
        return self._b

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
