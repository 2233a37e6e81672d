"""The Huber loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, positive
from projfree.losses.base import Loss


@dataclass(frozen=True)
class Huber(Loss):
    r"""Huber loss: the square near zero, continued by its tangents; convex and robust to outliers.

    .. math::
        \ell(u, y) = \begin{cases} r^2 & |r| \le \delta \\ 2 \delta |r| - \delta^2 & |r| > \delta \end{cases}
        \;=\; c\,(2 |r| - c), \qquad r = u - y, \quad c = \min(|r|, \delta),

    :math:`\ell' = 2 \max(-\delta, \min(r, \delta))`, and :math:`\ell'' = 2` for :math:`|r| \le \delta`, else 0.
    As :math:`\delta \to \infty` it converges to `Squared`, with the same factor. A value that overflows is ``inf``,
    without a warning.

    Parameters
    ----------
    delta : float, default 1
        Residual at which the loss changes from quadratic to linear; in the units of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Huber(delta=1.0)
    >>> u, y = np.array([0.5, 3.0]), np.zeros(2)
    >>> loss.value(u, y), loss.derivative(u, y)
    (array([0.25, 5.  ]), array([1., 2.]))

    References
    ----------
    Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35 (1964).
    """

    delta: float = 1.0

    smoothness = 2.0
    lower_bound = 0.0
    rounding = 4.0  # 1/2 eps in r, doubled by c (2|r| - c); two operations add 1, float32 delta 1/2: 5/2 eps

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", positive("Huber(delta=...)", self.delta))

    def value(self, u: Array, y: Array) -> Array:
        r: Array = np.abs(u - y)
        with np.errstate(over="ignore"):
            # 2|r| - c is at least |r|: no branch, no cancellation, and no overflow of r^2 for large r.
            c = np.minimum(r, self.delta)
            return np.asarray(c * (2 * r - c))

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(2 * np.maximum(np.minimum(u - y, self.delta), -self.delta))

    def second(self, u: Array, y: Array) -> Array:
        r: Array = np.abs(u - y)
        return (r <= self.delta).astype(r.dtype) * 2

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        delta = parameters[0]
        for i in range(len(u)):
            r = u[i] - y[i]
            a = abs(r)
            value[i] = r * r if a <= delta else delta * (2.0 * a - delta)
            slope[i] = 2.0 * min(max(r, -delta), delta)
