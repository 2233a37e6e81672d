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

    Samples with a margin m of at least 1 cost nothing, so that the solution depends on the others alone. A value beyond
    the floating-point range is ``inf``, without a warning.

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
    rounding = 2.0  # 1 - m is rounded once (eps / 2), doubled by the square, which is rounded once: 3/2

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
            h = 0.0 if h < 0.0 else h  # in this order, so that what is not a number stays so
            value[i] = h * h
            slope[i] = -2.0 * y[i] * h


def _short(u: Array, y: Array) -> Array:
    """By how much the margin falls short of 1."""
    return np.asarray(np.maximum(1 - y * u, 0))
