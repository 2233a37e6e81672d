"""What offsets of rows and columns ask of observed entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared


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
class OffsetStep(Step):
    """What steps with offsets share: the prediction of each entry."""

    loss: Loss
    map: OffsetMap
    b: Array
    base: float

    def full(self, rows: Rows, u: Array) -> Array:
        """The predictions without `base`."""
        assert rows.places is not None
        return u + self.map.apply(self.b, rows.places)


@dataclass(frozen=True)
class OffsetValue(OffsetStep):
    """The weighted mean loss."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        losses = self.loss.value(self.full(rows, images[0]) + self.base, rows.y)
        return None, np.array([np.sum(losses * rows.s)])


@dataclass(frozen=True)
class OffsetSums(OffsetStep):
    """The weighted mean loss and its derivative in the offsets."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        assert rows.places is not None
        losses, derivative = self.loss.value_and_derivative(self.full(rows, images[0]) + self.base, rows.y)
        slope = self.map.adjoint(derivative * rows.s, rows.places)
        return None, np.concatenate([[np.sum(losses * rows.s)], slope])


@dataclass(frozen=True)
class OffsetCurvature(OffsetStep):
    """The second derivative in the offsets along a direction; its diagonal where the direction is None."""

    along: Array | None

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        assert rows.places is not None
        if is_squared(self.loss):
            h = np.broadcast_to(self.loss.smoothness * rows.s, len(rows.y))
        else:
            h = self.loss.second(self.full(rows, images[0]) + self.base, rows.y) * rows.s
        if self.along is not None:
            h = h * self.map.apply(self.along, rows.places)
        return None, self.map.adjoint(h, rows.places)


@dataclass(frozen=True)
class OffsetTangent(OffsetStep):
    """The weighted derivatives as residuals; sums of losses, of r (u + o), of their sizes, and h with its sizes."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        assert rows.places is not None
        full = self.full(rows, images[0])
        losses, derivative = self.loss.value_and_derivative(full + self.base, rows.y)
        losses, r = losses * rows.s, derivative * rows.s
        along, size = r * full, np.abs(r)
        scalars = (losses.sum(), np.abs(losses).sum(), along.sum(), np.abs(along).sum(), size.sum(), r @ derivative)
        h, sizes = self.map.adjoint(r, rows.places), self.map.adjoint(size, rows.places)
        return r, np.concatenate([scalars, h, sizes])
