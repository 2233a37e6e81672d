"""What offsets of rows and columns ask of observed entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.losses.base import Loss
from projfree.objectives.row_steps import weigh


@dataclass(frozen=True)
class OffsetMap:
    """The linear map from offsets ``(b_0, rows, columns)`` of a matrix to its entries.

    Attributes
    ----------
    shape : tuple of int
        The shape of the matrix.
    kinds : tuple of bool
        Whether there is an offset for all, for each row, for each column; the others stay zero.
    """

    shape: tuple[int, int]
    kinds: tuple[bool, bool, bool]

    def zero(self) -> Array:
        """No offsets."""
        return np.zeros(1 + self.shape[0] + self.shape[1])

    def apply(self, b: Array, places: tuple[Array, Array]) -> Array:
        """The offset of each entry."""
        out = np.full(len(places[0]), b[0])
        if self.kinds[1]:
            out += b[1 : 1 + self.shape[0]][places[0]]
        if self.kinds[2]:
            out += b[1 + self.shape[0] :][places[1]]
        return out

    def adjoint(self, r: Array, places: tuple[Array, Array]) -> Array:
        """The sums of ``r`` over all entries, those of each row and those of each column."""
        out, (m, n) = self.zero(), self.shape
        if self.kinds[0]:
            out[0] = r.sum()
        if self.kinds[1]:
            out[1 : 1 + m] = np.bincount(places[0], weights=r, minlength=m)
        if self.kinds[2]:
            out[1 + m :] = np.bincount(places[1], weights=r, minlength=n)
        return out


@dataclass(frozen=True)
class WithOffsets(Step):
    """Another step on predictions: images to which offsets are added. The sums of its residuals stand behind its own.

    Attributes
    ----------
    step : Step
        The step.
    map : OffsetMap
        Where offsets go, and over which entries residuals are added up.
    b : tuple of ndarray
        The offsets of each image, or one for all of them.
    base : float
        Added to every prediction.
    """

    step: Step
    map: OffsetMap
    b: tuple[Array, ...]
    base: float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        assert rows.places is not None
        residual, sums = self.predicted(rows, *images)
        if residual is None:
            return None, sums
        return residual, np.concatenate([sums, self.map.adjoint(residual, rows.places)])

    def predicted(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        """The step on predictions."""
        assert rows.places is not None
        offsets = [self.map.apply(b, rows.places) + self.base for b in self.b]
        if len(offsets) == 1:
            offsets *= len(images)
        return self.step.block(rows, *(u + o for u, o in zip(images, offsets, strict=True)))


@dataclass(frozen=True)
class WithSizes(Step):
    """A step with offsets, and behind its sums those of the sizes of its residuals."""

    step: WithOffsets

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        assert rows.places is not None
        residual, sums = self.step.block(rows, *images)
        assert residual is not None
        return residual, np.concatenate([sums, self.step.map.adjoint(np.abs(residual), rows.places)])


@dataclass(frozen=True)
class CurvatureAlong(Step):
    """The second derivative in the offsets along a direction, given the step whose residuals are curvatures."""

    curvatures: WithOffsets
    along: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        assert rows.places is not None
        bend, offsets = self.curvatures.predicted(rows, *images)[0], self.curvatures.map
        assert bend is not None
        return None, offsets.adjoint(bend * offsets.apply(self.along, rows.places), rows.places)


@dataclass(frozen=True)
class ValueAndResidual(Step):
    """The weighted mean loss at one point, and the weighted derivatives as residuals."""

    loss: Loss

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        losses, derivative = self.loss.value(images[0], rows.y), self.loss.derivative(images[0], rows.y)
        return weigh(derivative, rows.s), np.array([weigh(losses, rows.s).sum()])
