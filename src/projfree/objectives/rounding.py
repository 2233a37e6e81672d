r"""Bounds on the rounding errors of the value, the tangent and the lower bound of a mean of losses.

For any predictions u, derivatives :math:`r_i = s_i\ell'(u_i + b)` and weights s,

.. math:: f(w, b') \ge \sum_i \big(s_i\ell(u_i + b) - r_i u_i\big) + \Big\langle\sum_i r_i A_i, w\Big\rangle
          + (b' - b)\sum_i r_i

by convexity of the loss alone. The constant is computed from the stored predictions, never as f(z) - <g, z>, so that
the inequality holds whatever their errors are: the allowance of a tangent covers the rounding of its sums, and the
effect of b' (`Rounding.of_tangent`).

Recomputing a value or a bound from the same rows in another order, storage format or BLAS also changes the predictions
:math:`u_i = (A w)_i + b`. Let e bound the root mean square of their errors, g that of the derivatives of the loss, and
L the second derivative. The value of a point then changes by at most :math:`g e + \tfrac{L}{2} e^2`, and its tangent,
evaluated anywhere in the set, by that plus :math:`L e` times the distance (`Rounding.value` and `Rounding.bound`). For
a non-negative loss with the value v, :math:`g \le \sqrt{2 L v}`. If the second derivative is unbounded, e is the
largest error, and :math:`S = 3 (v + \text{floor})` bounds the means of the absolute values of both derivatives, see
`LogLinkLoss`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from projfree.algebra import UNIT, size
from projfree.checks import Array
from projfree.data.base import Data
from projfree.losses.base import Loss, SmoothedLoss
from projfree.losses.squared import is_squared
from projfree.objectives.base import Evaluation, SmoothFunction
from projfree.objectives.row_steps import Sums
from projfree.sets.base import ConstraintSet

if TYPE_CHECKING:
    from projfree.objectives.intercept import Intercept

#: Number of rounding errors of operations other than a sum of products: a shift, a scale, the intercept.
FEW = 8.0
#: Relative rounding error of a value, which is a mean of many terms.
ROUNDING = 4.0 * UNIT
#: Bound, with a large margin, on the effect of underflow in derivatives and in the results of a sum.
UNDERFLOW = 1e-290


@dataclass(frozen=True)
class Rounding:
    """Bounds on the rounding errors of one objective.

    Attributes
    ----------
    loss, data : Loss and Data
        The loss and the rows.
    units : float
        Error bound of each sum and each derivative, in units of roundoff of the sum of absolute terms.
    floor : float
        Weighted mean of the size that errors of losses are relative to, in addition to the losses.
    intercept : Intercept or None
        The intercept of the objective.
    """

    loss: Loss
    data: Data
    units: float
    floor: float = 0.0
    intercept: Intercept | None = None

    def of_tangent(self, sums: Sums, b: Array | None = None) -> tuple[float, float]:
        """Return bounds on the errors of the constant and of the gradient (Euclidean norm) of a tangent.

        By the Cauchy-Schwarz inequality the mean square of the rows and ``sums.square`` bound the terms of the
        gradient; if squares underflow, the largest row norm and ``sums.slope_size`` do. The derivative at a perturbed
        prediction is the slope of another tangent, whose constant differs by less than the contribution of the floor.
        With an intercept b, the constant is lowered by the derivative in b times the range of the optimal intercepts of
        feasible points.
        """
        units, data = self.units, self.data.column_stats
        constant = UNIT * (units * (sums.size + sums.along_size + self.floor) + FEW * sums.shifted) + UNDERFLOW
        length = math.sqrt(data.mean_square)  # the product of the squares may overflow
        terms = math.sqrt(sums.square) * length
        if sums.square <= UNDERFLOW:
            terms = float(np.add.reduce(sums.slope_size)) * data.row_norm
        gradient = UNIT * units * terms + UNDERFLOW * (1.0 + length)
        if b is None or self.intercept is None:
            return constant, gradient
        slope, (away, factor) = np.abs(sums.slope) + UNIT * units * sums.slope_size, self.intercept.spread
        constant += float(slope @ (np.abs((b - self.intercept.constant).ravel()) + away))
        return constant, gradient + factor * data.row_norm * float(np.add.reduce(slope))

    def intercept_range(self, b: Array | None, largest: float) -> float:
        """Return a bound on the distance from ``b`` to optimal intercepts, summed over outputs.

        ``largest`` bounds the predictions.
        """
        if b is None or self.intercept is None:
            return 0.0
        return float(np.abs(b - self.intercept.constant).sum()) + b.size * self.intercept.radius(largest)

    def may_be_best(self, b: Array, largest: float) -> bool:
        """Return whether ``b`` may be the optimal intercept of a point whose predictions are at most ``largest``."""
        if self.intercept is None:
            return False
        constant, radius = self.intercept.constant, self.intercept.radius(largest)
        return bool(np.all(np.abs(b - constant) <= radius + UNIT * self.units * (radius + np.abs(constant) + largest)))

    def predictions(self, w: Array, b: Array | None) -> float:
        """Return a bound on the error of the predictions of ``w`` with the intercept ``b``."""
        if not w.any():
            return 0.0  # zero plus the intercept is exact
        terms = self.data.column_stats.terms  # zero if predictions are entries of the parameter
        own = (terms + FEW) * self.extent(w) if terms else 0.0
        return UNIT * (own + FEW * (0.0 if b is None else size(b)))

    def extent(self, w: Array) -> float:
        """Return a bound on the root mean square of the predictions of ``w``.

        Without a smoothness constant it bounds the largest prediction. It is computed column by column, which is much
        better than with norms if the columns differ in scale.
        """
        data, steep = self.data.column_stats, not math.isfinite(self.loss.smoothness)
        if not data.terms:
            return (data.row_norm if steep else math.sqrt(data.mean_square)) * size(w)
        columns = data.largest if steep else data.root_mean_square
        return float(np.sum(np.tensordot(columns, np.abs(w), axes=columns.ndim)))

    def extents(self, ball: ConstraintSet, shape: tuple[int, ...]) -> tuple[float, float]:
        """Return bounds on the root mean square and on the largest absolute value of predictions over the set."""
        data = self.data.column_stats
        most = self._largest(ball, shape, data.largest, data.row_norm)
        if not math.isfinite(self.loss.smoothness):
            return most, most
        return self._largest(ball, shape, data.root_mean_square, math.sqrt(data.mean_square)), most

    def apart(self, ball: ConstraintSet, w: Array) -> float:
        """Return a bound on the distance of the centred predictions of ``w`` from those of any point of the set."""
        data = self.data.column_stats
        if self.intercept is None or not is_squared(self.loss) or not data.terms:
            return math.inf  # only with the squared loss does the intercept remove the column means
        sizes = _for_entries(data.deviation(self.data.rounding_units, 0.0), w.shape)
        return self._largest(ball, w.shape, sizes, size(sizes)) + float(np.sum(sizes * np.abs(w)))

    def _largest(self, ball: ConstraintSet, shape: tuple[int, ...], sizes: Array, norm: float) -> float:
        """Return a bound on the predictions over the set, given a measure of each column and a norm of the rows."""
        most = norm * ball.reach(shape)
        if self.data.column_stats.terms and ball.structure(shape).absolute:
            # The norm does not depend on signs, so this is the largest sum of absolute values.
            most = min(most, ball.support(_for_entries(sizes, shape)))
        return most

    def value(self, value: float, w: Array, b: Array | None) -> float:
        """Return a bound on the error of the value at a point."""
        e = self.predictions(w, b)
        first, second = self._derivatives(value, e)
        # Near a kink that is smoothed, the Lipschitz constant bounds the change of the value.
        steepness = self.loss.lipschitz if isinstance(self.loss, SmoothedLoss) else math.inf
        moved = steepness * e if math.isfinite(steepness) else first * e + 0.5 * second * e * e
        return UNIT * self.units * (abs(value) + self.floor) + moved

    def bound(self, value: float, w: Array, b: Array | None, far: float, apart: float = math.inf) -> float:
        """Return a bound on the error of the lower bound from the tangent at a point, without that of the support.

        ``value``, ``w`` and ``b`` belong to the point, ``far`` is the largest prediction over the set, including
        intercepts, and ``apart`` bounds the distance of the predictions from those of the point, if it is known.
        """
        # Without a smoothness constant, the derivatives are those at rounded predictions.
        unit = UNIT * self.units
        e = self.predictions(w, b) + (0.0 if math.isfinite(self.loss.smoothness) else unit)
        (first, second), far = self._derivatives(value, e), far + self.extent(w)
        sums = unit * (abs(value) + self.floor + first * far)
        return sums + first * e + second * e * (min(far, apart) + 0.5 * e)

    def _derivatives(self, value: float, e: float) -> tuple[float, float]:
        """Return bounds, averaged over the rows, on |l'| and l'' for predictions perturbed by at most ``e``."""
        L = self.loss.smoothness
        if math.isfinite(L):
            return math.sqrt(2.0 * L) * math.sqrt(abs(value)), L
        with np.errstate(over="ignore"):
            both = 3 * (abs(value) + self.floor) * float(np.exp(e))
        return both, both


def reported_value(f: SmoothFunction, found: Evaluation) -> float:
    """Return the value, or a bound on the exact value if that is larger because of rounding."""
    value, x = found.value, found.point
    rounding = f.structure.rounding if f.convex else None  # other functions have no lower bounds
    hidden = value if rounding is None else rounding.value(value, x.w, x.intercept)
    return hidden if 0.0 <= value < hidden else value


def _for_entries(sizes: Array, shape: tuple[int, ...]) -> Array:
    """Repeat a measure of each column for all outputs."""
    return np.broadcast_to(sizes.reshape(sizes.shape + (1,) * (len(shape) - sizes.ndim)), shape).copy()


def is_rounding(change: float, value: float) -> bool:
    """Return whether a difference of two values is within their rounding errors, 64 units of roundoff of `value`.

    The rounding errors of predictions, losses and sums add up to some tens of units.
    """
    return change <= 2.0 * FEW * ROUNDING * abs(value)
