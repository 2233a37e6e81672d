"""The hull of points of a completion problem with offsets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.data.rows import Rows
from projfree.data.workspace import Workspace
from projfree.objectives.hull import Hull, Local, QuadraticHull
from projfree.objectives.intercepts.matrix_offsets import Offsets
from projfree.objectives.intercepts.offset_steps import OffsetStep


@dataclass(frozen=True)
class DifferenceSlope(OffsetStep):
    """The derivative in the offsets of a quadratic as its image moves from the first point to another one."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        assert rows.places is not None
        moved = self.loss.smoothness * (rows.s * (images[1] - images[0]))
        return None, self.map.adjoint(moved, rows.places)


@dataclass(frozen=True)
class OffsetProducts(OffsetStep):
    """The weighted products of the residual at the first point and of the directions to the others.

    ``shifts`` are the offsets that go with the directions.
    """

    shifts: tuple[Array, ...]

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        assert rows.places is not None
        parts = [self.full(rows, images[0]) + self.base - rows.y]
        for image, shift in zip(images[1:], self.shifts, strict=True):
            parts.append(image - images[0] + self.map.apply(shift, rows.places))
        return None, np.array([np.sum(rows.s * a * b) for a in parts for b in parts])


@dataclass(frozen=True)
class OffsetHullSums(OffsetStep):
    """Value, gradient and Hessian at a place of a hull, with fixed offsets."""

    m: tuple[float, ...]

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        differences, full = [image - images[0] for image in images[1:]], self.full(rows, images[0]) + self.base
        for c, d in zip(self.m, differences, strict=True):
            full = full + c * d
        losses, derivative = self.loss.value_and_derivative(full, rows.y)
        bend, r = self.loss.second(full, rows.y) * rows.s, derivative * rows.s
        gradient = [float(r @ d) for d in differences]
        hessian = [float((bend * d) @ e) for d in differences for e in differences]
        return None, np.array([np.sum(losses * rows.s), *gradient, *hessian])


class OffsetSquaresHull(QuadraticHull):
    """The squared loss: the offsets of a mixture follow its image linearly, so that they are minimised out exactly."""

    def __init__(
        self,
        offsets: Offsets,
        workspace: Workspace,
        points: tuple[Point, ...],
        gradient: Array | None,
        tilt: Array | None,
    ) -> None:
        super().__init__(points, gradient, tilt, convex=True)
        self.offsets, self.workspace = offsets, workspace

    def _expand(self) -> Local:
        offsets, workspace, L = self.offsets, self.workspace, self.offsets.loss.smoothness
        workspace.hold(self.points)
        (b,) = offsets.locate(workspace, self.points[:1])
        assert b is not None
        shared = (offsets.loss, offsets.map, b, offsets.base)
        shifts = []
        for point in self.points[1:]:
            slope = workspace.fold(DifferenceSlope(*shared), (self.points[0], point))
            shifts.append(-offsets.solve(workspace, self.points[0], b, slope, 1e-8))
        k = len(self.points)
        products = L * workspace.fold(OffsetProducts(*shared, tuple(shifts)), self.points).reshape(k, k)
        ridges = np.array([b, *shifts]) @ np.array([b, *shifts]).T
        products = products + offsets.kappa * ridges
        return Local(0.5 * float(products[0, 0]), products[1:, 0], products[1:, 1:])


class OffsetHull(Hull):
    """Any loss, with the offsets of the first point: an upper bound on the hull that touches it there."""

    def __init__(
        self,
        offsets: Offsets,
        workspace: Workspace,
        points: tuple[Point, ...],
        gradient: Array | None,
        tilt: Array | None,
    ) -> None:
        super().__init__(points, gradient, tilt, convex=True)
        self.offsets, self.workspace = offsets, workspace
        self._b: Array | None = None

    @property
    def b(self) -> Array:
        """The offsets of the first point."""
        if self._b is None:
            self.workspace.hold(self.points)
            (self._b,) = self.offsets.locate(self.workspace, self.points[:1])
        assert self._b is not None
        return self._b

    def _evaluate(self, m: Array) -> Local:
        step = OffsetHullSums(self.offsets.loss, self.offsets.map, self.b, self.offsets.base, tuple(m.tolist()))
        sums, k = self.workspace.fold(step, self.points), len(m)
        value = float(sums[0]) + self.offsets.ridge(self.b)
        return Local(value, sums[1 : 1 + k], sums[1 + k :].reshape(k, k))

    @property
    def curvature(self) -> float:
        from projfree.objectives.image_hull import SquaredDifference

        square = self.workspace.fold(SquaredDifference(0.0), self.points[:2])[0]
        return self.offsets.loss.smoothness * float(square)
