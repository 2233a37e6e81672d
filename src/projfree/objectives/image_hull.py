"""The hull of points whose images a workspace holds: each place that is looked at is a fold, no read of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.data.workspace import Workspace
from projfree.losses.base import Loss, row_blocks
from projfree.objectives.hull import Hull, Local, QuadraticHull, reduced
from projfree.objectives.intercepts.base import Intercept
from projfree.objectives.row_steps import weigh


@dataclass(frozen=True)
class HullSums(Step):
    """Value, gradient and Hessian at a place of a hull and, where there is one, in the intercept behind it.

    Attributes
    ----------
    loss : Loss
        The loss.
    m : tuple of float
        The coordinates of the place.
    b : ndarray or None
        The intercept.
    """

    loss: Loss
    m: tuple[float, ...]
    b: Array | None

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        base, loss = images[0], self.loss
        differences = [image - base for image in images[1:]]
        full = base
        for c, d in zip(self.m, differences, strict=True):
            full = full + c * d
        full = full if self.b is None else full + self.b
        losses, derivative = loss.value_and_derivative(full, rows.y)
        r = weigh(derivative, rows.s)
        gradient = [np.vdot(r, d) for d in differences]
        if self.b is not None:
            gradient += np.ravel(r.sum(axis=0)).tolist()
        hessian = joint_curvature(loss, full, rows, differences, self.b is not None)
        return None, np.concatenate([[weigh(losses, rows.s).sum()], gradient, hessian.ravel()])


@dataclass(frozen=True)
class MeanImages(Step):
    """The weighted means of the first image less the targets, and of the differences of the other images to it."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        parts = residual_and_differences(rows, images)
        return None, np.concatenate([np.ravel(weigh(part, rows.s).sum(axis=0)) for part in parts])


@dataclass(frozen=True)
class MeanDifference(Step):
    """The weighted mean of the difference of two images."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return None, np.ravel(weigh(images[1] - images[0], rows.s).sum(axis=0))


@dataclass(frozen=True)
class ImageProducts(Step):
    """The weighted products of the residual of the first image and of the differences to it, about given means."""

    means: tuple[Array | float, ...]

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        parts = residual_and_differences(rows, images)
        parts = [part - mean for part, mean in zip(parts, self.means, strict=True)]
        weighted = [weigh(part, rows.s) for part in parts]
        return None, np.array([np.vdot(a, b) for a in weighted for b in parts])


@dataclass(frozen=True)
class SquaredDifference(Step):
    """The weighted sum of the squares of the difference of two images, less a mean."""

    mean: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        away = images[1] - images[0] - self.mean
        return None, np.array([weigh(away**2, rows.s).sum()])


def residual_and_differences(rows: Rows, images: tuple[Array, ...]) -> list[Array]:
    """What a quadratic on a hull is made of."""
    return [images[0] - rows.y, *(image - images[0] for image in images[1:])]


def joint_curvature(loss: Loss, u: Array, rows: Rows, directions: list[Array], free: bool) -> Array:
    """The Hessian in the coordinates of image directions and, if ``free``, of the intercept behind them."""
    if loss.coupled:
        return _coupled_curvature(loss, u, rows, directions, free)
    h = weigh(loss.second(u, rows.y), rows.s)
    weighted = [h * d for d in directions]
    H = np.array([[np.vdot(a, b) for b in directions] for a in weighted])
    if not free:
        return H
    cross = np.array([np.ravel(a.sum(axis=0)) for a in weighted])
    return np.block([[H, cross], [cross.T, np.diag(np.ravel(h.sum(axis=0)))]])


def _coupled_curvature(loss: Loss, u: Array, rows: Rows, directions: list[Array], free: bool) -> Array:
    y, s = rows.y, rows.s
    H = np.array([[np.sum(loss.curvature(u, y, a, b) * s) for b in directions] for a in directions])
    if not free:
        return H
    weights, k = np.broadcast_to(s, len(u)), u.shape[1]
    cross = np.zeros((len(directions), k))
    for part in row_blocks(len(u), k * k):
        second = loss.second(u[part], y[part])
        cross += [weights[part] @ np.einsum("ijk,ik->ij", second, a[part]) for a in directions]
    return np.block([[H, cross], [cross.T, loss.summed_second(u, y, weights)]])


class ImageHull(Hull):
    """Any loss: value, gradient and Hessian from the images, the intercept minimised out at each place."""

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
        self._last: Array | None = None
        self._looked: dict[bytes, Local] = {}

    def _evaluate(self, m: Array) -> Local:
        b = self._intercept(m)
        here = self._joint(m, b)
        gradient, hessian, _ = reduced(here.gradient, here.hessian, len(m))
        return Local(here.value, gradient, hessian, b)

    def _joint(self, m: Array, b: Array | None) -> Local:
        """The function of the place and, where there is one, of the intercept."""
        step = HullSums(self.intercept.loss, tuple(m.tolist()), b)
        sums = self.workspace.fold(step, self.points)
        k = len(m) + (0 if b is None else max(1, b.size))
        return Local(float(sums[0]), sums[1 : 1 + k], sums[1 + k :].reshape(k, k), b)

    def _intercept(self, m: Array) -> Array | None:
        if self.intercept.constant is None:
            return None
        self.workspace.hold(self.points)
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
        k = len(self.tilt)
        if len(place) == k:
            return self.at(place)
        key = place.tobytes()
        if key not in self._looked:
            m, b = place[:k], place[k:].reshape(self.intercept.outputs)
            here = self._joint(m, b)
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
        mean: Array | float = 0.0
        if self.intercept.constant is not None and self.convex:
            mean = self.workspace.fold(MeanDifference(), self.points[:2]).reshape(self.intercept.outputs)
        square = self.workspace.fold(SquaredDifference(mean), self.points[:2])[0]
        return self.intercept.loss.smoothness * float(square)


class SquaresHull(QuadraticHull):
    """The squared loss: a quadratic, centred where there is an intercept."""

    def __init__(
        self,
        intercept: Intercept,
        workspace: Workspace,
        points: tuple[Point, ...],
        gradient: Array | None,
        tilt: Array | None,
    ) -> None:
        super().__init__(points, gradient, tilt, convex=True)
        self.intercept, self.workspace = intercept, workspace

    def _expand(self) -> Local:
        k, outputs, L = len(self.points), self.intercept.outputs, self.intercept.loss.smoothness
        means: tuple[Array | float, ...] = (0.0,) * k
        if self.intercept.constant is not None:
            means = tuple(self.workspace.fold(MeanImages(), self.points).reshape(k, *outputs))
        products = L * self.workspace.fold(ImageProducts(means), self.points).reshape(k, k)
        return Local(0.5 * float(products[0, 0]), products[1:, 0], products[1:, 1:])
