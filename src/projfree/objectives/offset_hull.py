"""The hull of points of a completion problem with offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.objectives.hull import Hull, Local, QuadraticHull

if TYPE_CHECKING:
    from projfree.objectives.offsets import OffsetObjective


class OffsetSquaresHull(QuadraticHull):
    """The squared loss: the offsets of a mixture follow its image linearly, so that they are minimised out exactly."""

    def __init__(
        self, f: OffsetObjective, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None
    ) -> None:
        super().__init__(points, gradient, tilt, convex=True)
        self.f = f

    def _expand(self) -> Local:
        f, offsets = self.f, self.f.offsets
        u, b = f.profiled(self.points[0])
        L, s = f.loss.smoothness, np.broadcast_to(f.data.weights(slice(None)), u.shape)
        residual = u + offsets.apply(b) + f.base - f.y
        directions, shifts = [], []
        for point in self.points[1:]:
            d = f.settled(point) - u
            shift = -offsets.solve(offsets.adjoint(L * s * d), L * s, 1e-8)
            directions.append(d + offsets.apply(shift))
            shifts.append(shift)
        value = 0.5 * L * float(np.sum(s * residual**2)) + 0.5 * offsets.kappa * float(b @ b)
        gradient = np.array(
            [L * float(np.sum(s * residual * d)) + offsets.kappa * float(b @ c) for d, c in _pairs(directions, shifts)]
        )
        hessian = np.array(
            [
                [L * float(np.sum(s * d * e)) + offsets.kappa * float(c @ g) for e, g in _pairs(directions, shifts)]
                for d, c in _pairs(directions, shifts)
            ]
        )
        return Local(value, gradient, hessian)


def _pairs(directions: list[Array], shifts: list[Array]) -> list[tuple[Array, Array]]:
    return list(zip(directions, shifts, strict=True))


class OffsetHull(Hull):
    """Any loss, with the offsets of the first point: an upper bound on the hull that touches it there."""

    def __init__(
        self, f: OffsetObjective, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None
    ) -> None:
        super().__init__(points, gradient, tilt, convex=True)
        self.f = f
        self._images: tuple[Any, ...] | None = None

    @property
    def images(self) -> tuple[Any, ...]:
        """The prediction at the first point, the differences to it, the weights and the ridge's part of the value."""
        if self._images is None:
            f = self.f
            u, b = f.profiled(self.points[0])
            differences = [f.settled(point) - u for point in self.points[1:]]
            ridge = 0.5 * f.offsets.kappa * float(b @ b)
            self._images = (u + f.offsets.apply(b) + f.base, differences, f.data.weights(slice(None)), ridge)
        return self._images

    def _evaluate(self, m: Array) -> Local:
        full, differences, s, ridge = self.images
        for c, d in zip(m.tolist(), differences, strict=True):
            full = full + c * d
        losses, derivative = self.f.loss.value_and_derivative(full, self.f.y)
        bend = self.f.loss.second(full, self.f.y) * s
        r = derivative * s
        gradient = np.array([float(r @ d) for d in differences])
        hessian = np.array([[float((bend * d) @ e) for e in differences] for d in differences])
        return Local(float(np.sum(losses * s)) + ridge, gradient, hessian)

    @property
    def curvature(self) -> float:
        _, differences, s, _ = self.images
        return self.f.loss.smoothness * float(np.sum(differences[0] ** 2 * s))
