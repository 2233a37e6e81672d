"""The squared sigmoid loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from projfree.checks import Array
from projfree.losses.base import Loss
from projfree.numerics import scalars


@dataclass(frozen=True)
class SquaredSigmoid(Loss):
    r"""Squared error of a sigmoid, a bounded loss for noisy labels -1 and +1; not convex.

    .. math::
        \ell(u, y) = (t - \sigma(u))^2 = s^2, \qquad
        \ell' = -2 y\, s^2 (1 - s), \qquad
        \ell'' = 2 s^2 (1 - s)(2 - 3 s),

    with :math:`t = (1 + y)/2`, :math:`\sigma(u) = 1/(1 + e^{-u})` and :math:`s = \sigma(-y u)`, which avoids
    cancellation.

    Notes
    -----
    The second derivative is stationary in s where :math:`12 s^2 - 15 s + 4 = 0`, that is at
    :math:`s = (15 \mp \sqrt{33})/24`. There it equals :math:`(36 - 55 s)/96 = (39 \pm 55 \sqrt{33})/2304`: its
    range is [-0.12020..., 0.15405...], and the maximum is the smoothness constant.

    Examples
    --------
    >>> import numpy as np
    >>> loss = SquaredSigmoid()
    >>> u, y = np.array([0.0, 50.0, -50.0]), np.array([1.0, 1.0, 1.0])
    >>> loss.value(u, y)
    array([2.50000000e-01, 3.72007598e-44, 1.00000000e+00])
    >>> round(loss.smoothness, 10)
    0.1540585701
    """

    convex = False
    lower_bound = 0.0
    labels = True
    smoothness = (39 + 55 * math.sqrt(33)) / 2304

    def value(self, u: Array, y: Array) -> Array:
        return np.asarray(np.square(expit(-y * u)))

    def derivative(self, u: Array, y: Array) -> Array:
        m = y * u
        return np.asarray(-2 * y * (np.square(expit(-m)) * expit(m)))

    def second(self, u: Array, y: Array) -> Array:
        m = y * u
        s = expit(-m)
        return np.asarray(np.square(s) * expit(m) * (4 - 6 * s))

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        for i in range(len(u)):
            value[i] = scalars.decay(u[i])
        for i in range(len(u)):
            m, e = y[i] * u[i], value[i]
            q = 1.0 / (1.0 + e)
            s = (e if m > 0.0 else 1.0) * q
            value[i] = s * s
            slope[i] = -2.0 * y[i] * s * (e * q * q)
