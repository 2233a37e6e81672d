"""The squared loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.losses.base import Loss


@dataclass(frozen=True)
class Squared(Loss):
    r"""Squared error, for least squares and matrix completion.

    .. math:: \ell(u, y) = (u - y)^2, \qquad \ell' = 2 (u - y), \qquad \ell'' = 2.

    A value that overflows is ``inf``, without a warning.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Squared()
    >>> u, y = np.array([1.0, 2.0]), np.array([0.0, 2.5])
    >>> loss.value(u, y), loss.derivative(u, y)
    (array([1.  , 0.25]), array([ 2., -1.]))
    """

    smoothness = 2.0
    lower_bound = 0.0
    rounding = 2.0  # 1/2 eps in u - y, doubled by the square, which adds 1/2: 3/2 eps

    def value(self, u: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.square(u - y))

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(2 * (u - y))

    def second(self, u: Array, y: Array) -> Array:
        return np.full(np.shape(u), 2.0, dtype=np.result_type(u, y))

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        for i in range(len(u)):
            r = u[i] - y[i]
            value[i] = r * r
            slope[i] = 2.0 * r


def is_squared(loss: Loss) -> bool:
    """Whether the loss is `Squared` and not a subclass; the objective is then a quadratic given by a Gram matrix."""
    return type(loss) is Squared
