"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.losses.base import Loss
from projfree.losses.sigmoid import decay, falling, slope
from projfree.losses.targets import signs
from projfree.numerics import scalars
from projfree.numerics.forms import register


@dataclass(frozen=True)
class Logistic(Loss):
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
    least = 0.0
    steepness = 1.0
    bend = 1.0
    rounding = 10  # value: exp 4, log1p 4, one addition; derivative: exp 4, two operations. y u is exact.

    def value(self, u: Array, y: Array) -> Array:
        m = y * u
        return _value(m, decay(m))

    def derivative(self, u: Array, y: Array) -> Array:
        m = y * u
        return _derivative(m, decay(m), y)

    def value_and_derivative(self, u: Array, y: Array) -> tuple[Array, Array]:
        m = y * u
        e = decay(m)
        return _value(m, e), _derivative(m, e, y)

    def second(self, u: Array, y: Array) -> Array:
        return slope(decay(y * u))

    def slopes(self, u: Array, y: Array) -> tuple[Array, Array]:
        m = y * u
        e = decay(m)
        return _derivative(m, e, y), slope(e)

    def constant(self, mean: Array) -> Array | None:
        # The logarithm of the odds; rounding may turn a share that is tiny into none.
        return np.asarray(2.0 * np.arctanh(np.minimum(np.maximum(mean, 1e-15 - 1.0), 1.0 - 1e-15)))

    def targets(self, y: Array) -> Array:
        return signs(y)


def _value(m: Array, e: Array) -> Array:
    out = np.log1p(e)
    out -= np.minimum(m, 0)  # two terms of one sign, so the sum is as accurate as they are
    return out


def _derivative(m: Array, e: Array, y: Array) -> Array:
    s = falling(m, e)
    s *= y
    return np.negative(s, out=s)


def _tile(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
    # Exponentials have a loop of their own: with what follows in the same one, the registers do not suffice.
    for i in range(len(u)):
        value[i] = scalars.decay(u[i])
    for i in range(len(u)):
        m, e = y[i] * u[i], value[i]
        value[i] = scalars.log1p(e) - min(m, 0.0)
        slope[i] = -y[i] * ((e if m > 0.0 else 1.0) / (1.0 + e))


register(Logistic, tile=_tile)
