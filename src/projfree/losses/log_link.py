"""The Poisson and the Gamma loss: half the deviance of targets whose mean is the exponential of the prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.losses.base import LogLinkLoss, within

#: Above this prediction the exponential is continued by its tangent (Poisson), or below this one (Gamma), so that sums
#: are finite in any type.
LIMIT, LOWEST = 80.0, -45.0


@dataclass(frozen=True)
class Poisson(LogLinkLoss):
    r"""Half the deviance of counts whose mean is :math:`e^u`: Poisson regression.

    .. math::
        \ell(u, y) = e^u - y u + (y \log y - y), \qquad \ell' = e^u - y, \qquad \ell'' = e^u, \qquad y \ge 0.

    Never negative, and zero where :math:`e^u = y`. The second derivative has no bound: step rules that need one refuse.
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

    lower_bound = 0.0
    # With t = u - log y the terms are y e^t, y, y log y and y t, and e^t + |t| <= 3 (e^t - 1 - t) + 10. An exponential
    # (4), a logarithm (4) and the operations leave 6 y (e^t + |t|) + 4 y |log y|, so 18 (loss + floor).

    def value(self, u: Array, y: Array) -> Array:
        mean = self.second(u, y)
        with np.errstate(over="ignore"):
            out = mean * np.maximum(u - LIMIT, 0) + (mean - y) - y * (u - log_of(y))
        return np.asarray(np.maximum(out, 0))  # rounding may leave less than nothing where the mean is as the target

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(self.second(u, y) - y)

    def second(self, u: Array, y: Array) -> Array:
        return np.asarray(np.exp(np.minimum(u, LIMIT))).astype(np.result_type(u, y), copy=False)

    def floor(self, y: Array) -> Array:
        return np.asarray(y * (4 + np.abs(log_of(y))))

    def targets(self, y: Array) -> Array:
        return within(y, 0, 10**30, "a Poisson loss takes counts, or other numbers that are not negative")

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        for i in range(len(u)):
            mean = np.exp(LIMIT if u[i] > LIMIT else u[i])
            beyond = mean * max(u[i] - LIMIT, 0.0)
            rest = beyond + (mean - y[i]) - y[i] * (u[i] - np.log(y[i] if y[i] > 0.0 else 1.0))
            value[i] = 0.0 if rest < 0.0 else rest
            slope[i] = mean - y[i]


@dataclass(frozen=True)
class Gamma(LogLinkLoss):
    r"""Half the deviance of positive amounts whose mean is :math:`e^u`: Gamma regression.

    .. math::
        \ell(u, y) = y e^{-u} + u - \log y - 1, \qquad \ell' = 1 - y e^{-u}, \qquad \ell'' = y e^{-u}, \qquad y > 0.

    Never negative, and zero where :math:`e^u = y`; errors count relative to the mean. The second derivative has no
    bound: step rules that need one refuse. For :math:`u < -45` the loss is continued by its tangent at -45, where a
    mean would be far below all targets that are taken (1e-15 to 1e15); `second` stays as it is at -45.

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

    lower_bound = 0.0
    # With t = log y - u the terms are e^t, 1 and t, and e^t + |t| <= 3 (e^t - 1 - t) + 10. An exponential (4), a
    # logarithm (4) and the operations leave 7 (e^t + |t|) + 4 |log y| + 1, so 21 (loss + floor).

    def value(self, u: Array, y: Array) -> Array:
        ratio = self.second(u, y)
        with np.errstate(over="ignore"):
            out = ratio * np.maximum(LOWEST - u, 0) + (ratio - 1) - (log_of(y) - u)
        return np.asarray(np.maximum(out, 0))

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(1 - self.second(u, y))

    def second(self, u: Array, y: Array) -> Array:
        return np.asarray(y * np.exp(-np.maximum(u, LOWEST)))

    def floor(self, y: Array) -> Array:
        return np.asarray(4 + np.abs(log_of(y)))

    def targets(self, y: Array) -> Array:
        return within(y, 1 / 10**15, 10**15, "a Gamma loss takes positive amounts")

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        for i in range(len(u)):
            ratio = y[i] * np.exp(-(LOWEST if u[i] < LOWEST else u[i]))
            rest = ratio * max(LOWEST - u[i], 0.0) + (ratio - 1.0) - (np.log(y[i]) - u[i])
            value[i] = 0.0 if rest < 0.0 else rest
            slope[i] = 1.0 - ratio


def log_of(y: Array) -> Array:
    """The logarithm, 0 where ``y`` is 0: it is then multiplied by 0."""
    return np.asarray(np.log(np.where(y > 0, y, 1).astype(np.asarray(y).dtype, copy=False)))
