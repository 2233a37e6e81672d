"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.losses.base import ExponentialLoss
from projfree.numerics import scalars
from projfree.numerics.forms import register


@dataclass(frozen=True)
class Logistic(ExponentialLoss):
    r"""Logistic loss for labels -1 and +1.

    .. math::
        \ell(u, y) = \log(1 + e^{-m}), \qquad
        \ell' = -y\, \sigma(-m), \qquad
        \ell'' = \sigma(m)\, \sigma(-m), \qquad m = y u, \quad \sigma(m) = \frac{1}{1 + e^{-m}}.

    Both value and derivative keep their relative accuracy where they are tiny, that is for samples far on the
    right side. The second derivative is largest, 1/4, at 0.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Logistic()
    >>> u, y = np.array([0.0, 100.0, -100.0]), np.array([1.0, 1.0, 1.0])
    >>> loss.value(u, y)
    array([6.93147181e-01, 3.72007598e-44, 1.00000000e+02])
    >>> loss.derivative(u, y)
    array([-5.00000000e-01, -3.72007598e-44, -1.00000000e+00])
    """

    labels = True
    smoothness = 0.25
    lower_bound = 0.0
    lipschitz = 1.0
    rounding = 10  # value: exp 4, log1p 4, one addition; derivative: exp 4, two operations. y u is exact.

    def value(self, u: Array, y: Array) -> Array:
        m = y * u
        return np.asarray(np.log1p(decay(m)) - np.minimum(m, 0))  # two terms of one sign: as accurate as they are

    def value_and_derivative(self, u: Array, y: Array) -> tuple[Array, Array]:
        m = y * u
        e = decay(m)
        return np.asarray(np.log1p(e) - np.minimum(m, 0)), np.asarray(-y * falling(m, e))

    def second(self, u: Array, y: Array) -> Array:
        return slope(decay(y * u))


def decay(m: Array) -> Array:
    r""":math:`e^{-|m|}`, the one exponential that every quantity below is made of."""
    return np.exp(-np.abs(m))


def falling(m: Array, e: Array) -> Array:
    r""":math:`\sigma(-m) = 1 / (1 + e^m)`, accurate relative to its size, from ``e = decay(m)``."""
    # e / (1 + e) for positive m and 1 / (1 + e) otherwise; e is at most 1, so a maximum with the truth value
    # makes the numerator, several times faster than np.where.
    return np.asarray(np.maximum(e, m <= 0) / (1 + e))


def slope(e: Array) -> Array:
    r""":math:`\sigma(m) \sigma(-m) = e / (1 + e)^2`, the derivative of the sigmoid."""
    return np.asarray(e / np.square(1 + e))


def _tile(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
    # Exponentials have a loop of their own: with what follows in the same one, the registers do not suffice.
    for i in range(len(u)):
        value[i] = scalars.decay(u[i])
    for i in range(len(u)):
        m, e = y[i] * u[i], value[i]
        value[i] = scalars.log1p(e) - min(m, 0.0)
        slope[i] = -y[i] * ((e if m > 0.0 else 1.0) / (1.0 + e))


register(Logistic, tile=_tile)
