"""The intercept of the squared loss: centring, through the mean row of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, is_structured
from projfree.checks import Array
from projfree.data.base import Data
from projfree.data.workspace import Workspace
from projfree.losses.base import Loss
from projfree.objectives.hull_steps import MeanImages
from projfree.objectives.intercepts.base import Intercept
from projfree.objectives.row_steps import DerivativeSums
from projfree.objectives.tangent import Sums, intercept_error


class Centred(Intercept):
    r"""The intercept :math:`b(w) = \bar y - \langle\bar x, w\rangle`: O(d), and one read for a tangent.

    The sums of a sweep tell by how much the rounded intercept misses the best one; values, gradients and the intercept
    are then moved there.
    """

    constant: Array
    described = " with intercept"

    def __init__(self, loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
        super().__init__(loss, data, outputs)
        self.constant = data.mean_target()

    def locate(self, workspace: Workspace, points: tuple[Point, ...]) -> tuple[Array | None, ...]:
        return tuple(self.at(x.w) for x in points)

    def guess(self, x: Point) -> Array:
        return self.at(x.w)

    def at(self, w: Any) -> Array:
        """The intercept at the parameter ``w``."""
        row = self.data.mean_row()
        if is_structured(row):
            along: Any = row.inner(w)
        else:
            along = row @ w if row.ndim == 1 else np.tensordot(row, w, axes=row.ndim)
        return np.asarray(self.constant - along)

    def minorant(self, sums: Sums, rest: Array, g: Any, b: Array | None) -> tuple[Minorant, Array | None]:
        assert b is not None
        slope = sums.slope.reshape(self.outputs)
        constant_error, gradient_error = self.errors(sums)
        g = g - outer(self.data.mean_row(), slope)
        gradient_error += UNIT * self.units * self.data.row_norm * float(np.add.reduce(np.abs(slope), axis=None))
        b = b + sums.recentre(self.loss.smoothness).reshape(self.outputs)
        constant_part, gradient_part = intercept_error(sums, b, self.units, self.constant, self.data.row_norm)
        m = Minorant(sums.value - sums.along, g, constant_error + constant_part, gradient_error + gradient_part)
        return m, b

    def estimate(self, workspace: Workspace, x: Point) -> Any:
        # With the means of all rows, which keeps the estimate unbiased.
        slope, g = workspace.sweep(DerivativeSums(self.loss, self.at(x.w)), (x,))
        return g - outer(self.data.mean_row(), slope.reshape(self.outputs))

    def products(self, workspace: Workspace, points: tuple[Point, ...]) -> Array:
        means = workspace.fold(MeanImages(), points).reshape(len(points), *self.outputs)
        return self.loss.smoothness * self._about(workspace, points, tuple(means))


def outer(row: Any, slope: Array) -> Any:
    """The outer product of a parameter with one output and the slopes of all outputs."""
    return row * float(slope) if is_structured(row) else np.multiply.outer(row, slope)
