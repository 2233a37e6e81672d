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
from projfree.data.base import Data
from projfree.losses.base import Loss

SCALARS = 6
#: Far more than all the results of a sum that fell below the smallest normal number can amount to.
UNDERFLOW = 1e-290
#: And than what derivatives, or their products with one number, lose there.
LOST = 1e-300


def weigh(r: Array, s: Array | float) -> Array:
    """Each row of ``r`` times its weight."""
    weighted: Array = (r.T * s).T
    return weighted


def block_sums(loss: Loss, u: Array, b: Array | None, y: Array, s: Array | float) -> tuple[Array, Array]:
    """The weighted derivative of a block of rows and the sums that `Sums` names; here sample weights enter."""
    full = u if b is None else u + b
    losses, derivative = loss.value_and_derivative(full, y)
    r, weighted = weigh(derivative, s), weigh(losses, s)
    along = r * u
    scalars = (
        weighted.sum(),
        np.abs(weighted).sum(),
        along.sum(),
        np.abs(along).sum(),
        0.0 if b is None else np.abs(r * full).sum(),
        np.vdot(r, derivative),
    )
    by_output = (r.sum(axis=0), np.abs(r).sum(axis=0), weigh(u, s).sum(axis=0))
    return r, np.concatenate([scalars, np.ravel(by_output)])


@dataclass
class Beside:
    """A second mixture of what a pass meets, of which only image and mean loss are wanted; there is no intercept.

    Attributes
    ----------
    scale, coefficients : float, ndarray
        Of the known part and of the pending vectors.
    image : ndarray
        Where its image goes.
    """

    scale: float
    coefficients: Array
    image: Array


@dataclass
class TangentKernel:
    """What a pass does with a block of rows: meet the pending vectors, mix, and sum a tangent if asked for one.

    Called with the images of a block it works in NumPy; data that has compiled kernels reads the fields instead.

    Attributes
    ----------
    loss, y, b : Loss, array, array or None
        The loss, the targets of all rows and the intercept.
    data : Data
        Whose weights apply.
    base, scale : ndarray or None, float
        The part of the image that is known is ``scale * base``.
    coefficients : ndarray
        Of the pending vectors in the image.
    met : ndarray of shape (pending, n, ...)
        Where the images of the pending vectors go.
    whole, keep : ndarray, bool
        An array of the shape of the whole image, and whether that is to be written there.
    tangent : bool
        Whether residuals and sums are wanted.
    offsets : ndarray or None
        A number (k numbers) for each pending vector that is added to its images: how a shift of the features enters.
    beside : Beside or None
        A second mixture; its mean loss comes behind the sums of the tangent.
    """

    loss: Loss
    y: Array
    b: Array | None
    data: Data
    base: Array | None
    coefficients: Array
    met: Array
    whole: Array
    tangent: bool
    scale: float = 1.0
    keep: bool = True
    offsets: Array | None = None
    beside: Beside | None = None

    def __call__(self, rows: slice, *images: Array) -> tuple[Array | None, Array]:
        if self.offsets is not None:
            images = tuple(image + offset for image, offset in zip(images, self.offsets, strict=True))
        for store, image in zip(self.met, images, strict=True):
            store[rows] = image
        u = self._mixed(rows, self.scale, self.coefficients, images)
        if self.keep:
            self.whole[rows] = u
        if not self.tangent:
            return None, np.zeros(())
        y, s = self.y[rows], self.data.weights(rows)
        r, sums = block_sums(self.loss, u, self.b, y, s)
        if self.beside is None:
            return r, sums
        image = self._mixed(rows, self.beside.scale, self.beside.coefficients, images)
        self.beside.image[rows] = image
        return r, np.append(sums, weigh(self.loss.value(image, y), s).sum())

    def _mixed(self, rows: slice, scale: float, coefficients: Array, images: tuple[Array, ...]) -> Array:
        u = np.zeros(()) if self.base is None else self.base[rows]
        u = u if scale == 1.0 else scale * u
        for c, image in zip(coefficients.tolist(), images, strict=True):
            u = u + c * image
        return u

    def residual_sum(self, sums: Array) -> Array:
        """The sum of the residuals over all rows, a number or k numbers, from the sums of a pass."""
        outputs = self.whole.shape[1:]
        return sums[SCALARS : SCALARS + math.prod(outputs)].reshape(outputs)


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
        """From the array that `block_sums` returns, added over blocks."""
        value, size, along, along_size, shifted, square = packed[:SCALARS].tolist()
        slope, slope_size, mean_image = np.reshape(packed[SCALARS:], (3, -1))
        return cls(
            value,
            size,
            along,
            along_size,
            shifted,
            square,
            slope,
            slope_size,
            mean_image,
        )

    def errors(self, units: float, mean_square: float, row_norm: float) -> tuple[float, float]:
        """Bounds on the rounding of the constant, and on the Euclidean norm of that of the gradient.

        Parameters
        ----------
        units : float
            Each sum and each derivative err by at most this many units of rounding of their absolute terms.
        mean_square : float
            The weighted mean of the squared norms of the rows: by Cauchy-Schwarz it bounds the absolute terms of
            the gradient's sums together with ``square``.
        row_norm : float
            The largest norm of a row, which does the same together with ``slope_size`` where squares underflow.
        """
        constant = UNIT * (units * (self.size + self.along_size) + 4.0 * self.shifted) + UNDERFLOW
        # The root of a product would overflow where both are as large as 1e160.
        length = math.sqrt(mean_square)
        terms = math.sqrt(self.square) * length if self.square > UNDERFLOW else float(self.slope_size.sum()) * row_norm
        return constant, UNIT * units * terms + LOST * (1.0 + length)

    def recentre(self, curvature: float) -> Array:
        """For a quadratic loss, move to the exact intercept; return by how much it moves."""
        shift: Array = -self.slope / curvature
        self.value += float(shift @ self.slope + 0.5 * curvature * shift @ shift)
        self.along += float(curvature * shift @ self.mean_image)
        self.slope = np.zeros_like(self.slope)
        return shift
