r"""How far the value and the bound of an objective move where the same rows are summed in another way.

Another order of rows, another storage or another BLAS rounds the images :math:`u_i = (A w)_i + b` and all sums
differently. Let e bound the root mean square of the errors of the images, and L the second derivative of the loss. For
a loss that is never negative :math:`\ell'^2 \le 2 L \ell`, so that the value v of a point, computed without any further
error, is off by at most

.. math:: \sum_i s_i |\ell'_i| e_i + \tfrac{L}{2} e_i^2 \le e\sqrt{2 L v} + \tfrac{L}{2} e^2,

and the tangent at the point, evaluated anywhere in the set, by :math:`L e` times the distance to there and the second
of these terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT, size
from projfree.checks import Array
from projfree.data.base import Data
from projfree.sets.base import ConstraintSet, NormBall

#: Operations on one prediction besides its sum of products: a shift, a scale, the intercept.
FEW = 8.0


@dataclass(frozen=True)
class Rounding:
    """What the rounding of one objective depends on.

    Attributes
    ----------
    terms : float
        The products that one prediction is a sum of; zero where predictions are entries of the parameter.
    units : float
        Each sum over rows and each loss err by at most this many units of rounding of their absolute terms.
    smoothness : float
        The largest second derivative of the loss.
    rows : Data
        Norms of the rows.
    columns : ndarray of shape (2, ...), optional
        Root mean square and largest size of the entries of each column. With them predictions are bounded entry by
        entry, which is far better than by norms where columns differ in scale.
    steepness : float
        The largest derivative of the loss, which may be infinite.
    floor : float
        The weighted mean of the loss's floor.
    deviations : ndarray, optional
        Standard deviations of the columns, for squares with an intercept: predictions are then compared about their
        means.
    """

    terms: float
    units: float
    smoothness: float
    rows: Data
    columns: Array | None = None
    steepness: float = math.inf
    floor: float = 0.0
    deviations: Array | None = None

    @property
    def root(self) -> float:
        """The root of the weighted mean of the squared norms of the rows."""
        return math.sqrt(self.rows.mean_square)

    @property
    def longest(self) -> float:
        """The largest norm of a row."""
        return self.rows.row_norm

    def image(self, w: Array, b: Array | None) -> float:
        """The root mean square of the errors of the images of ``w`` with the intercept ``b``."""
        if not w.any():
            return 0.0  # zero, and zero plus the intercept, are exact
        if not self.terms:
            return UNIT * FEW * _length(b)
        return UNIT * (self.terms + FEW) * self.extent(w) + UNIT * FEW * _length(b)

    def extent(self, w: Array) -> float:
        """The root mean square of the images of ``w``, at most."""
        return self.root * size(w) if self.columns is None else float(np.sum(self._spread(0, w.shape) * np.abs(w)))

    def extents(self, ball: ConstraintSet, shape: tuple[int, ...]) -> tuple[float, float]:
        """The root mean square and the largest size of a prediction over all vectors of the set, at most."""
        reach = ball.reach(shape)
        norms = self.root * reach, self.longest * reach
        if self.columns is None or ball.spectral or not isinstance(ball, NormBall):
            return norms
        # Norms that are not spectral do not depend on signs, so that this is the largest sum of sizes.
        mean, most = (ball.support(self._spread(k, shape)) for k in range(2))
        return min(mean, norms[0]), min(most, norms[1])

    def apart(self, ball: ConstraintSet, w: Array) -> float:
        """How far the predictions of ``w`` are from those of any vector of the set, about their means, at most."""
        if self.deviations is None:
            return math.inf
        sizes = _for_entries(self.deviations, w.shape)
        most = ball.reach(w.shape) * size(sizes)
        if isinstance(ball, NormBall) and not ball.spectral:
            most = min(most, ball.support(sizes))
        return most + float(np.sum(sizes * np.abs(w)))

    def _spread(self, k: int, shape: tuple[int, ...]) -> Array:
        """A measure of the columns for each entry of a parameter."""
        assert self.columns is not None
        return _for_entries(self.columns[k], shape)

    def value(self, value: float, w: Array, b: Array | None) -> float:
        """The error of the value at a point, at most."""
        e = self.image(w, b)
        moved = min(self._slope(value) * e + 0.5 * self.smoothness * e * e, self.steepness * e if e else 0.0)
        return UNIT * self.units * (abs(value) + self.floor) + moved

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
        e, slope, far = self.image(w, b), self._slope(value), far + self.extent(w)
        sums = UNIT * self.units * (abs(value) + self.floor + slope * far)
        return sums + slope * e + self.smoothness * e * (min(far, apart) + 0.5 * e)

    def _slope(self, value: float) -> float:
        """The root mean square of the derivative of a loss that is never negative, at most."""
        return math.sqrt(2.0 * self.smoothness) * math.sqrt(abs(value))


@dataclass(frozen=True)
class CorneredRounding(Rounding):
    """For values of a loss with a corner above the smoothed one: near it they move as far as the loss is steep."""

    def value(self, value: float, w: Array, b: Array | None) -> float:
        e = self.image(w, b)
        return UNIT * self.units * (abs(value) + self.floor) + (self.steepness * e if e else 0.0)


@dataclass(frozen=True)
class SteepRounding(Rounding):
    r"""For a loss whose second derivative has no bound, but has one by the value: see `Loss.smoothness`.

    With e the largest error of a prediction, the value is off by at most :math:`e\,S` and the tangent by that times the
    largest distance of predictions, where :math:`S = 3 (v + \text{floor})` bounds the mean of the sizes of first and
    second derivatives.
    """

    def extent(self, w: Array) -> float:
        """The largest size of an image of ``w``."""
        return self.longest * size(w) if self.columns is None else float(np.sum(self._spread(1, w.shape) * np.abs(w)))

    def extents(self, ball: ConstraintSet, shape: tuple[int, ...]) -> tuple[float, float]:
        """The largest size of a prediction over all vectors of the set, at most, twice."""
        _, most = super().extents(ball, shape)
        return most, most

    def value(self, value: float, w: Array, b: Array | None) -> float:
        e = self.image(w, b)
        return UNIT * self.units * (abs(value) + self.floor) + self._moved(value, e) * e

    def bound(self, value: float, w: Array, b: Array | None, far: float, apart: float = math.inf) -> float:
        # Derivatives are those of predictions that are moved by rounding, besides the errors of images.
        e, far = self.image(w, b) + UNIT * self.units, far + self.extent(w)
        moved = self._moved(value, e)
        return UNIT * self.units * (abs(value) + self.floor + moved * far) + moved * e * (far + 0.5 * e)

    def _moved(self, value: float, e: float) -> float:
        """The mean of the sizes of first and second derivatives within ``e`` of the predictions."""
        return 3.0 * (abs(value) + self.floor) * math.exp(min(e, 700.0))


def _for_entries(sizes: Array, shape: tuple[int, ...]) -> Array:
    """A measure of each column, repeated for all outputs."""
    return np.broadcast_to(sizes.reshape(sizes.shape + (1,) * (len(shape) - sizes.ndim)), shape).copy()


def _length(b: Array | None) -> float:
    return 0.0 if b is None else size(b)
