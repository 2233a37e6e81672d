"""The Poisson loss with a logarithmic link."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.losses.base import Loss
from projfree.losses.targets import within
from projfree.numerics import scalars
from projfree.numerics.forms import register

#: Above this prediction the exponential is continued by its tangent, so that sums are finite in any type.
LIMIT = 80.0


@dataclass(frozen=True)
class Poisson(Loss):
    r"""Half the deviance of counts whose mean is :math:`e^u`: Poisson regression.

    .. math::
        \ell(u, y) = e^u - y u + (y \log y - y), \qquad \ell' = e^u - y, \qquad \ell'' = e^u, \qquad y \ge 0.

    Never negative, and zero where :math:`e^u = y`. The second derivative has no bound. With an intercept the objective
    is smooth all the same: the best intercept is :math:`\log\bar y - \log\operatorname{mean} e^u`, and what is left is
    a logarithm of a mean of exponentials. Without one, rules that need a smoothness constant refuse.

    For :math:`u > 80` the loss is continued by its tangent at 80, where a mean would exceed 5e34; `second` stays as it
    is at 80.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Poisson()
    >>> u, y = np.array([0.0, 0.0]), np.array([1.0, 0.0])
    >>> loss.value(u, y), loss.derivative(u, y)
    (array([0., 1.]), array([0., 1.]))

    References
    ----------
    McCullagh, Nelder (1989), Generalized linear models.
    """

    smoothness = math.inf
    lower_bound = 0.0
    domain = (0.0, 1e30)
    # With t = u - log y the terms are y e^t, y, y log y and y t, and e^t + |t| <= 3 (e^t - 1 - t) + 10. An exponential
    # (4), a logarithm (4) and the operations leave 6 y (e^t + |t|) + 4 y |log y|, so 18 (loss + floor).
    rounding = 18

    def value(self, u: Array, y: Array) -> Array:
        return _value(u, y, _mean(u))

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(_mean(u) - y)

    def value_and_derivative(self, u: Array, y: Array) -> tuple[Array, Array]:
        mean = _mean(u)
        return _value(u, y, mean), np.asarray(mean - y)

    def second(self, u: Array, y: Array) -> Array:
        return _mean(u).astype(np.result_type(u, y), copy=False)

    def floor(self, y: Array) -> Array:
        return y * (4.0 + np.abs(log_of(y)))

    def intercept_step(self, slope: Array, second: Array) -> Array:
        return np.log1p(-slope / second)  # log(mean y / mean e^u)

    def mean(self, u: Array) -> Array:
        return np.exp(u)

    def targets(self, y: Array) -> Array:
        return within(y, *self.domain, "a Poisson loss takes counts, or other numbers that are not negative")


def log_of(y: Array) -> Array:
    """The logarithm, 0 where ``y`` is 0: it is then multiplied by 0."""
    return np.asarray(np.log(np.where(y > 0, y, 1).astype(np.asarray(y).dtype, copy=False)))


def _mean(u: Array) -> Array:
    return np.asarray(np.exp(np.minimum(u, LIMIT)))


def _value(u: Array, y: Array, mean: Array) -> Array:
    with np.errstate(over="ignore"):
        out: Array = mean * np.maximum(u - LIMIT, 0)
        out += mean - y
        out -= y * (u - log_of(y))
    # Rounding may leave less than nothing where the mean is as the target.
    return np.maximum(out, 0, out=out)


def _tile(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
    for i in range(len(u)):
        value[i] = scalars.bounded_exponential(u[i])
    for i in range(len(u)):
        mean = value[i]
        beyond = mean * max(u[i] - 80.0, 0.0)
        rest = beyond + (mean - y[i]) - y[i] * (u[i] - scalars.logarithm(y[i]))
        value[i] = 0.0 if rest < 0.0 else rest
        slope[i] = mean - y[i]


register(Poisson, tile=_tile)
