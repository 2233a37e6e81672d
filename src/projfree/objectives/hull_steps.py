"""What hulls ask of rows: sums over the images of their points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.losses.base import Loss, row_blocks
from projfree.objectives.row_steps import weigh

#: The coordinates of a place of a hull, and the intercept there or None.
HullPlace = tuple[tuple[float, ...], Array | None]


@dataclass(frozen=True)
class HullSums(Step):
    """Value, gradient and Hessian at places of a hull and, where there is one, in the intercept behind each.

    Attributes
    ----------
    loss : Loss
        The loss.
    places : tuple of (tuple of float, ndarray or None)
        Their coordinates and intercepts.
    """

    loss: Loss
    places: tuple[HullPlace, ...]

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        differences = [image - images[0] for image in images[1:]]
        return None, np.concatenate([self._at(rows, images[0], differences, m, b) for m, b in self.places])

    def _at(self, rows: Rows, full: Array, differences: list[Array], m: tuple[float, ...], b: Array | None) -> Array:
        loss = self.loss
        for c, d in zip(m, differences, strict=True):
            full = full + c * d
        full = full if b is None else full + b
        losses, derivative = loss.value_and_derivative(full, rows.y)
        r = weigh(derivative, rows.s)
        gradient = [np.vdot(r, d) for d in differences]
        if b is not None:
            gradient += np.ravel(r.sum(axis=0)).tolist()
        hessian = joint_curvature(loss, full, rows, differences, b is not None)
        return np.concatenate([[weigh(losses, rows.s).sum()], gradient, hessian.ravel()])


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
