r"""How far the value and the bound of an objective move where the same rows are summed in another way.

Another order of rows, another storage or another BLAS rounds the predictions :math:`u_i = (A w)_i + b` and all sums
differently. Let e bound the root mean square of the errors of predictions, g that of the derivatives of the loss, and L
its second derivative. The value of a point is then off by at most :math:`g e + \tfrac{L}{2} e^2`, and the tangent at
the point, evaluated anywhere in the set, by that and :math:`L e` times the distance to there. For a loss that is never
negative, with the value v, :math:`g \le \sqrt{2 L v}`. Where the second derivative has no bound, e is the largest
error, and :math:`S = 3 (v + \text{floor})` bounds the means of the sizes of both derivatives, see `Loss.smoothness`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT, size
from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.intercept import Intercept
from projfree.sets.base import ConstraintSet

#: Operations on one prediction besides its sum of products: a shift, a scale, the intercept.
FEW = 8.0


@dataclass(frozen=True)
class Rounding:
    """The rounding of one objective.

    Attributes
    ----------
    intercept : Intercept
        Holds the loss, the rows, and the units of rounding by which sums err.
    columns : ndarray of shape (2, ...), optional
        Root mean square and largest size of the entries of each column. With them predictions are bounded entry by
        entry, which is far better than by norms where columns differ in scale.
    deviations : ndarray, optional
        Standard deviations of the columns, for squares with an intercept: predictions are then compared about their
        means.
    corner : bool
        Whether values are those of a loss with a corner: near it they move as far as the loss is steep.
    """

    intercept: Intercept
    columns: Array | None = None
    deviations: Array | None = None
    corner: bool = False

    @property
    def _steep(self) -> bool:
        return not math.isfinite(self.intercept.loss.smoothness)

    @property
    def _norms(self) -> tuple[float, float]:
        """The root mean square of the norms of rows, and the largest."""
        own = self.intercept.data.column_stats
        return math.sqrt(own.mean_square), own.row_norm

    def predictions(self, w: Array, b: Array | None) -> float:
        """The error of the predictions of ``w`` with the intercept ``b``."""
        if not w.any():
            return 0.0  # zero, and zero plus the intercept, are exact
        terms = self.intercept.data.column_stats.terms  # zero where predictions are entries of the parameter
        own = (terms + FEW) * self.extent(w) if terms else 0.0
        return UNIT * (own + FEW * (0.0 if b is None else size(b)))

    def extent(self, w: Array) -> float:
        """The size of the predictions of ``w``, at most."""
        if self.columns is None:
            return self._norms[self._steep] * size(w)
        return float(np.sum(_for_entries(self.columns[int(self._steep)], w.shape) * np.abs(w)))

    def extents(self, ball: ConstraintSet, shape: tuple[int, ...]) -> tuple[float, float]:
        """The root mean square and the largest size of a prediction over all vectors of the set, at most."""
        mean, most = (norm * ball.reach(shape) for norm in self._norms)
        if self.columns is not None and ball.structure(shape).absolute:
            # The norm does not depend on signs, so that this is the largest sum of sizes.
            mean = min(mean, ball.support(_for_entries(self.columns[0], shape)))
            most = min(most, ball.support(_for_entries(self.columns[1], shape)))
        return (most, most) if self._steep else (mean, most)

    def apart(self, ball: ConstraintSet, w: Array) -> float:
        """How far the predictions of ``w`` are from those of any vector of the set, about their means, at most."""
        if self.deviations is None:
            return math.inf
        sizes = _for_entries(self.deviations, w.shape)
        most = ball.reach(w.shape) * size(sizes)
        if ball.structure(w.shape).absolute:
            most = min(most, ball.support(sizes))
        return most + float(np.sum(sizes * np.abs(w)))

    def _derivatives(self, value: float, e: float) -> tuple[float, float]:
        """Bounds on the first and second derivative of the loss within ``e`` of the predictions, in the mean."""
        L = self.intercept.loss.smoothness
        if self._steep:
            both = 3.0 * (abs(value) + self.intercept.floor) * math.exp(min(e, 700.0))  # which does not overflow
            return both, both
        return math.sqrt(2.0 * L) * math.sqrt(abs(value)), L

    def value(self, value: float, w: Array, b: Array | None) -> float:
        """The error of the value at a point, at most."""
        e, steepness = self.predictions(w, b), self.intercept.loss.steepness
        first, second = self._derivatives(value, e)
        moved = math.inf if self.corner else first * e + 0.5 * second * e * e
        return self._sums(value) + min(moved, steepness * e if e else 0.0)

    def bound(self, value: float, w: Array, b: Array | None, far: float, apart: float = math.inf) -> float:
        """By how much the bound proved by the tangent at a point moves, at most, up to the rounding of the support.

        Parameters
        ----------
        value, w, b
            Of the point.
        far : float
            The largest size of predictions anywhere in the set, intercepts included.
        apart : float
            How far predictions are from those of the point, where that is known to be less.
        """
        # Steep derivatives are those of predictions that are moved by rounding, besides their errors.
        e = self.predictions(w, b) + (UNIT * self.intercept.units if self._steep else 0.0)
        (first, second), far = self._derivatives(value, e), far + self.extent(w)
        sums = self._sums(value) + UNIT * self.intercept.units * first * far
        return sums + first * e + second * e * (min(far, apart) + 0.5 * e)

    def _sums(self, value: float) -> float:
        return UNIT * self.intercept.units * (abs(value) + self.intercept.floor)


def reported_value(f: SmoothFunction, found: Evaluation) -> float:
    """The value that was found, but no less than what rounding may hide of it, where that is known."""
    value, x = found.value, found.point
    for fine in (False, True):
        rounding = f.rounding(fine=fine) if f.convex else None  # of other functions nothing is proved
        hidden = value if rounding is None else rounding.value(value, x.w, x.intercept)
        if value < 0.0 or hidden <= value:
            return value
    return hidden


def _for_entries(sizes: Array, shape: tuple[int, ...]) -> Array:
    """A measure of each column, repeated for all outputs."""
    return np.broadcast_to(sizes.reshape(sizes.shape + (1,) * (len(shape) - sizes.ndim)), shape).copy()
