r"""The arithmetic of a tangent: its sums over a block of rows, and what they prove in floating point.

For any image u, derivative :math:`r_i = s_i\ell'(u_i + b)` and weights s,

.. math:: f(w, b') \ge \sum_i \big(s_i\ell(u_i + b) - r_i u_i\big) + \Big\langle\sum_i r_i A_i, w\Big\rangle
          + (b' - b)\sum_i r_i

by convexity of the loss alone. The constant is formed from the image that is held, never as f(z) - <g, z>, so that
the inequality is true for whatever image that is; only the rounding of the sums is left to be bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array
from projfree.data import layout
from projfree.data.base import Data

#: Far more than all the results of a sum that fell below the smallest normal number can amount to.
UNDERFLOW = 1e-290
#: And than what derivatives, or their products with one number, lose there.
LOST = 1e-300


@dataclass
class Sums:
    r"""Sums over all rows; with k outputs the last three have k entries.

    ``value`` and ``size``: of the weighted losses and of their absolute values. ``along`` and ``along_size``: the
    same for r u. ``shifted``: of \|r (u + b)\|. ``square``: the weighted mean square of the derivative. ``slope``
    and ``slope_size``: of r and \|r\|. ``mean_image``: the weighted mean of u.
    """

    value: float
    size: float
    along: float
    along_size: float
    shifted: float
    square: float
    slope: Array
    slope_size: Array
    mean_image: Array

    @classmethod
    def unpack(cls, packed: Array) -> Sums:
        """From the vector that `data.layout` describes, without the values of further points."""
        return cls(*packed[: layout.SCALARS].tolist(), *packed[layout.SCALARS :].reshape(layout.PER_OUTPUT, -1))

    def errors(self, units: float, rows: Data, floor: float = 0.0) -> tuple[float, float]:
        """Bounds on the rounding of the constant, and on the Euclidean norm of that of the gradient.

        Parameters
        ----------
        units : float
            Each sum and each derivative err by at most this many units of rounding of their absolute terms.
        rows : Data
            By Cauchy-Schwarz its ``mean_square`` bounds the absolute terms of the gradient's sums together with
            ``square``; its ``row_norm`` does the same together with ``slope_size`` where squares underflow.
        floor : float
            The weighted mean of the loss's `floor`. A derivative that belongs to a moved prediction is the slope of a
            tangent too, whose constant differs by less than the floor's share.
        """
        constant = UNIT * (units * (self.size + self.along_size + floor) + 4.0 * self.shifted) + UNDERFLOW
        size = float(np.add.reduce(self.slope_size))
        return constant, gradient_error(units, self.square, size, rows)

    def recentre(self, curvature: float) -> Array:
        """For a quadratic loss, move to the exact intercept; return by how much it moves."""
        shift: Array = -self.slope / curvature
        self.value += float(shift @ self.slope + 0.5 * curvature * shift @ shift)
        self.along += float(curvature * shift @ self.mean_image)
        self.slope = np.zeros(len(self.slope))
        return shift


def gradient_error(units: float, square: float, size: float, rows: Data) -> float:
    """A bound on the Euclidean norm of the rounding of a gradient; see `Sums.errors`.

    Parameters
    ----------
    units, rows
        As there.
    square, size : float
        The weighted mean square of the derivatives, and the sum of their sizes.
    """
    # The root of a product would overflow where both are as large as 1e160.
    length = math.sqrt(rows.mean_square)
    terms = math.sqrt(square) * length if square > UNDERFLOW else size * rows.row_norm
    return UNIT * units * terms + LOST * (1.0 + length)


def intercept_error(
    sums: Sums, b: Array, units: float, constant: Array, row_norm: float, apart: float = 0.0, factor: float = 1.0
) -> tuple[float, float]:
    r"""What the derivative in b, zero only up to rounding, may cost: its size times how far b may have to go.

    Optimal intercepts of feasible w differ from that of w = 0 by at most ``apart + factor * max|u|``.
    """
    rest = np.abs(sums.slope) + UNIT * units * sums.slope_size
    away = np.abs((b - constant).ravel())
    return float(rest @ (away + apart)), factor * row_norm * float(np.add.reduce(rest))
