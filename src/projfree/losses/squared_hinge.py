"""The squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.losses.base import Loss


@dataclass(frozen=True)
class SquaredHinge(Loss):
    r"""The squared hinge loss of linear support vector machines, for labels -1 and +1.

    .. math::
        \ell(u, y) = \max(0, 1 - m)^2, \qquad
        \ell' = -2 y \max(0, 1 - m), \qquad
        \ell'' = 2 \text{ for } m < 1, \text{ else } 0, \qquad m = y u.

    The loss of samples with a margin m of at least 1 is zero, so that the solution depends only on the others. A value
    that overflows is ``inf``, without a warning.

    Examples
    --------
    >>> import numpy as np
    >>> loss = SquaredHinge()
    >>> u, y = np.array([0.5, 2.0, -1.0]), np.ones(3)
    >>> loss.value(u, y), loss.derivative(u, y)
    (array([0.25, 0.  , 4.  ]), array([-1., -0., -4.]))
    """

    labels = True
    smoothness = 2.0
    lower_bound = 0.0
    rounding = 2.0  # 1/2 eps in 1 - m, doubled by the square, which adds 1/2: 3/2 eps

    def value(self, u: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.square(_short(u, y)))

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(-2 * y * _short(u, y))

    def second(self, u: Array, y: Array) -> Array:
        h = _short(u, y)
        return (h > 0).astype(h.dtype) * 2

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        for i in range(len(u)):
            h = 1.0 - y[i] * u[i]
            h = 0.0 if h < 0.0 else h  # this order propagates NaN
            value[i] = h * h
            slope[i] = -2.0 * y[i] * h


def _short(u: Array, y: Array) -> Array:
    """Return ``max(0, 1 - y u)``."""
    return np.asarray(np.maximum(1 - y * u, 0))
