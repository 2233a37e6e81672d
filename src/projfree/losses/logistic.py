"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from projfree.checks import Array
from projfree.losses.base import Loss
from projfree.numerics import scalars


@dataclass(frozen=True)
class Logistic(Loss):
    r"""Logistic loss for labels -1 and +1.

    .. math::
        \ell(u, y) = \log(1 + e^{-m}), \qquad
        \ell' = -y\, \sigma(-m), \qquad
        \ell'' = \sigma(m)\, \sigma(-m), \qquad m = y u, \quad \sigma(m) = \frac{1}{1 + e^{-m}}.

    Value and derivative are accurate relative to their size, also if they are tiny because the margin m is large. The
    second derivative has its maximum 1/4 at 0.

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

    def value(self, u: Array, y: Array) -> Array:
        m = y * u
        return np.asarray(np.log1p(np.exp(-np.abs(m))) - np.minimum(m, 0))  # no cancellation: both terms are >= 0

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(-y * expit(-y * u))

    def second(self, u: Array, y: Array) -> Array:
        m = y * u
        return np.asarray(expit(m) * expit(-m))

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        # The exponentials have a separate loop: a single loop would need more registers than there are.
        for i in range(len(u)):
            value[i] = scalars.decay(u[i])
        for i in range(len(u)):
            m, e = y[i] * u[i], value[i]
            value[i] = scalars.log1p(e) - min(m, 0.0)
            slope[i] = -y[i] * ((e if m > 0.0 else 1.0) / (1.0 + e))
