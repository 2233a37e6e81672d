r"""What rounding does to the value, the tangent and the bound of a mean of losses.

For any predictions u, derivatives :math:`r_i = s_i\ell'(u_i + b)` and weights s,

.. math:: f(w, b') \ge \sum_i \big(s_i\ell(u_i + b) - r_i u_i\big) + \Big\langle\sum_i r_i A_i, w\Big\rangle
          + (b' - b)\sum_i r_i

by convexity of the loss alone. The constant is formed from the predictions that are held, never as f(z) - <g, z>, so
that the inequality is true for whatever they are: a tangent carries the rounding of its sums alone, and what b' may
add (`Rounding.of_tangent`).

Whoever recomputes a value or a bound from the same rows in another order, storage or BLAS also has other predictions
:math:`u_i = (A w)_i + b`. Let e bound the root mean square of their errors, g that of the derivatives of the loss, and
L its second derivative. The value of a point is then off by at most :math:`g e + \tfrac{L}{2} e^2`, and the tangent at
the point, evaluated anywhere in the set, by that and :math:`L e` times the distance to there (`Rounding.value` and
`Rounding.bound`). For a loss that is never negative, with the value v, :math:`g \le \sqrt{2 L v}`. Where the second
derivative has no bound, e is the largest error, and :math:`S = 3 (v + \text{floor})` bounds the means of the sizes of
both derivatives, see `LogLinkLoss`.
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

#: Operations besides those of a sum of products: a shift, a scale, the intercept. A few roundings.
FEW = 8.0
#: Relative rounding error of a value, which is a mean of many terms.
ROUNDING = 4.0 * UNIT
#: Far more than what derivatives, and all the results of a sum, lose below the smallest normal number.
UNDERFLOW = 1e-290


@dataclass(frozen=True)
class Rounding:
    """The rounding of one objective.

    Attributes
    ----------
    loss, data : Loss and Data
        The loss and the rows.
    units : float
        Each sum and each derivative err by at most this many units of rounding of their absolute terms.
    floor : float
        The weighted mean of what errors of losses are relative to besides the losses.
    intercept : Intercept or None
        That of the objective.
    """

    loss: Loss
    data: Data
    units: float
    floor: float = 0.0
    intercept: Intercept | None = None

    def of_tangent(self, sums: Sums, b: Array | None = None) -> tuple[float, float]:
        """Bounds on the error of the constant of a tangent, and on the Euclidean norm of that of its gradient.

        By Cauchy-Schwarz ``data.mean_square`` and ``sums.square`` bound the terms of the gradient; where squares
        underflow, ``data.row_norm`` and ``sums.slope_size`` do, ``data`` being the statistics of its columns. A
        derivative that belongs to a moved prediction is the slope of a tangent too, whose constant differs by less than
        the floor's share. With an intercept b the tangent is charged with the derivative there times the range of the
        best intercepts of feasible points.
        """
        units, data = self.units, self.data.column_stats
        constant = UNIT * (units * (sums.size + sums.along_size + self.floor) + FEW * sums.shifted) + UNDERFLOW
        length = math.sqrt(data.mean_square)  # the root of a product would overflow where both are as large as 1e160
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
        """How far ``b`` is from best intercepts where predictions are up to ``largest``, added over outputs."""
        if b is None or self.intercept is None:
            return 0.0
        return float(np.abs(b - self.intercept.constant).sum()) + b.size * self.intercept.radius(largest)

    def may_be_best(self, b: Array, largest: float) -> bool:
        """Whether ``b`` may be the best intercept of a point whose predictions are up to ``largest``."""
        if self.intercept is None:
            return False
        constant, radius = self.intercept.constant, self.intercept.radius(largest)
        return bool(np.all(np.abs(b - constant) <= radius + UNIT * self.units * (radius + np.abs(constant) + largest)))

    def predictions(self, w: Array, b: Array | None) -> float:
        """The error of the predictions of ``w`` with the intercept ``b``."""
        if not w.any():
            return 0.0  # zero, and zero plus the intercept, are exact
        terms = self.data.column_stats.terms  # zero where predictions are entries of the parameter
        own = (terms + FEW) * self.extent(w) if terms else 0.0
        return UNIT * (own + FEW * (0.0 if b is None else size(b)))

    def extent(self, w: Array) -> float:
        """The size of the predictions of ``w``, at most: their root mean square, or the largest for a steep loss.

        Columns bound predictions entry by entry, which is far better than norms where they differ in scale.
        """
        data, steep = self.data.column_stats, not math.isfinite(self.loss.smoothness)
        if not data.terms:
            return (data.row_norm if steep else math.sqrt(data.mean_square)) * size(w)
        columns = data.largest if steep else data.root_mean_square
        return float(np.sum(np.tensordot(columns, np.abs(w), axes=columns.ndim)))

    def extents(self, ball: ConstraintSet, shape: tuple[int, ...]) -> tuple[float, float]:
        """The root mean square and the largest size of a prediction over all vectors of the set, at most."""
        data = self.data.column_stats
        most = self._largest(ball, shape, data.largest, data.row_norm)
        if not math.isfinite(self.loss.smoothness):
            return most, most
        return self._largest(ball, shape, data.root_mean_square, math.sqrt(data.mean_square)), most

    def apart(self, ball: ConstraintSet, w: Array) -> float:
        """How far the predictions of ``w`` are from those of any vector of the set, about their means, at most."""
        data = self.data.column_stats
        if self.intercept is None or not is_squared(self.loss) or not data.terms:
            return math.inf  # only the intercept of squares takes up the means of the columns
        sizes = _for_entries(data.deviation(self.data.rounding_units, 0.0), w.shape)
        return self._largest(ball, w.shape, sizes, size(sizes)) + float(np.sum(sizes * np.abs(w)))

    def _largest(self, ball: ConstraintSet, shape: tuple[int, ...], sizes: Array, norm: float) -> float:
        """The largest prediction over the set, given the sizes of columns and a norm by which they are bounded too."""
        most = norm * ball.reach(shape)
        if self.data.column_stats.terms and ball.structure(shape).absolute:
            # The norm does not depend on signs, so that this is the largest sum of sizes.
            most = min(most, ball.support(_for_entries(sizes, shape)))
        return most

    def value(self, value: float, w: Array, b: Array | None) -> float:
        """The error of the value at a point, at most."""
        e = self.predictions(w, b)
        first, second = self._derivatives(value, e)
        # Near the corner of a loss that is smoothed, the value moves as far as the loss is steep.
        steepness = self.loss.lipschitz if isinstance(self.loss, SmoothedLoss) else math.inf
        moved = steepness * e if math.isfinite(steepness) else first * e + 0.5 * second * e * e
        return UNIT * self.units * (abs(value) + self.floor) + moved

    def bound(self, value: float, w: Array, b: Array | None, far: float, apart: float = math.inf) -> float:
        """By how much the bound proved by the tangent at a point moves, at most, up to the rounding of the support.

        ``value``, ``w`` and ``b`` are those of the point, ``far`` is the largest size of predictions anywhere in the
        set, intercepts included, and ``apart`` how far they are from those of the point, where that is known.
        """
        # Steep derivatives are those of predictions that are moved by rounding, besides their errors.
        unit = UNIT * self.units
        e = self.predictions(w, b) + (0.0 if math.isfinite(self.loss.smoothness) else unit)
        (first, second), far = self._derivatives(value, e), far + self.extent(w)
        sums = unit * (abs(value) + self.floor + first * far)
        return sums + first * e + second * e * (min(far, apart) + 0.5 * e)

    def _derivatives(self, value: float, e: float) -> tuple[float, float]:
        """Bounds on the first and second derivative of the loss within ``e`` of the predictions, in the mean."""
        L = self.loss.smoothness
        if math.isfinite(L):
            return math.sqrt(2.0 * L) * math.sqrt(abs(value)), L
        with np.errstate(over="ignore"):
            both = 3 * (abs(value) + self.floor) * float(np.exp(e))
        return both, both


def reported_value(f: SmoothFunction, found: Evaluation) -> float:
    """The value that was found, but no less than what rounding may hide of it, where that is known."""
    value, x = found.value, found.point
    rounding = f.structure.rounding if f.convex else None  # of other functions nothing is proved
    hidden = value if rounding is None else rounding.value(value, x.w, x.intercept)
    return hidden if 0.0 <= value < hidden else value


def _for_entries(sizes: Array, shape: tuple[int, ...]) -> Array:
    """A measure of each column, repeated for all outputs."""
    return np.broadcast_to(sizes.reshape(sizes.shape + (1,) * (len(shape) - sizes.ndim)), shape).copy()


def is_rounding(change: float, value: float) -> bool:
    """Whether a change of a value is no larger than the rounding errors of the two values that it is between.

    These are 64 units of rounding: the rounding of predictions, of losses and of sums of them adds up to some tens.
    """
    return change <= 2.0 * FEW * ROUNDING * abs(value)
