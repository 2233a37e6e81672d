"""The Gamma loss with a logarithmic link."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.losses.base import Loss
from projfree.losses.poisson import log_of
from projfree.losses.targets import within
from projfree.numerics import scalars
from projfree.numerics.forms import register

#: Below this prediction the exponential is continued by its tangent, so that sums are finite in any type.
LOWEST = -45.0


@dataclass(frozen=True)
class Gamma(Loss):
    r"""Half the deviance of positive amounts whose mean is :math:`e^u`: Gamma regression.

    .. math::
        \ell(u, y) = y e^{-u} + u - \log y - 1, \qquad \ell' = 1 - y e^{-u}, \qquad \ell'' = y e^{-u}, \qquad y > 0.

    Never negative, and zero where :math:`e^u = y`; errors count relative to the mean. The second derivative has no
    bound. With an intercept the objective is smooth all the same: the best intercept is
    :math:`\log\operatorname{mean}(y e^{-u})`, and what is left is a logarithm of a mean of exponentials. Without one,
    rules that need a smoothness constant refuse.

    For :math:`u < -45` the loss is continued by its tangent at -45, where a mean would be far below all targets that
    are taken (1e-15 to 1e15); `second` stays as it is at -45.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Gamma()
    >>> u, y = np.array([0.0, 0.0]), np.array([1.0, 2.0])
    >>> loss.value(u, y).round(4), loss.derivative(u, y)
    (array([0.    , 0.3069]), array([ 0., -1.]))

    References
    ----------
    McCullagh, Nelder (1989), Generalized linear models.
    """

    smoothness = math.inf
    lower_bound = 0.0
    domain = (1e-15, 1e15)
    # With t = log y - u the terms are e^t, 1 and t, and e^t + |t| <= 3 (e^t - 1 - t) + 10. An exponential (4), a
    # logarithm (4) and the operations leave 7 (e^t + |t|) + 4 |log y| + 1, so 21 (loss + floor).
    rounding = 21

    def value(self, u: Array, y: Array) -> Array:
        return self.value_and_derivative(u, y)[0]

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(1 - _ratio(u, y))

    def value_and_derivative(self, u: Array, y: Array) -> tuple[Array, Array]:
        ratio = _ratio(u, y)
        with np.errstate(over="ignore"):
            out: Array = ratio * np.maximum(LOWEST - u, 0)
            out += ratio - 1
            out -= log_of(y) - u
        return np.maximum(out, 0, out=out), np.asarray(1 - ratio)

    def second(self, u: Array, y: Array) -> Array:
        return _ratio(u, y)

    def floor(self, y: Array) -> Array:
        return 4.0 + np.abs(log_of(y))

    def intercept_step(self, slope: Array, second: Array) -> Array:
        return -np.log1p(slope / second)  # log mean(y e^-u), because slope + second is the sum of the weights

    def mean(self, u: Array) -> Array:
        return np.exp(u)

    def targets(self, y: Array) -> Array:
        return within(y, *self.domain, "a Gamma loss takes positive amounts")


def _ratio(u: Array, y: Array) -> Array:
    """Y e^-u, the target over the mean."""
    return np.asarray(y * np.exp(-np.maximum(u, LOWEST)))


def _tile(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
    for i in range(len(u)):
        value[i] = y[i] * scalars.bounded_exponential(-max(u[i], -45.0))
    for i in range(len(u)):
        ratio = value[i]
        rest = ratio * max(-45.0 - u[i], 0.0) + (ratio - 1.0) - (scalars.logarithm(y[i]) - u[i])
        value[i] = 0.0 if rest < 0.0 else rest
        slope[i] = 1.0 - ratio


register(Gamma, tile=_tile)
