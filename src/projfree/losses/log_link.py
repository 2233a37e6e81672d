"""The Poisson and Gamma losses: half the deviance of targets with mean ``exp(u)``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.losses.base import LogLinkLoss, within

#: Above LIMIT (Poisson) and below LOWEST (Gamma) the exponential is continued by its tangent, so that sums are finite
#: in every dtype.
LIMIT, LOWEST = 80.0, -45.0


@dataclass(frozen=True)
class Poisson(LogLinkLoss):
    r"""Half the deviance of counts whose mean is :math:`e^u`: Poisson regression.

    .. math::
        \ell(u, y) = e^u - y u + (y \log y - y), \qquad \ell' = e^u - y, \qquad \ell'' = e^u, \qquad y \ge 0.

    It is nonnegative, and zero if :math:`e^u = y`. The second derivative is unbounded; step rules that need a bound
    raise an error. For :math:`u > 80`, where the mean exceeds 5e34, the loss is continued by its tangent at 80, and
    `second` is constant.

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
    # With t = u - log y the terms are y e^t, y, y log y and y t, and e^t + |t| <= 3 (e^t - 1 - t) + 10. With errors of
    # 4 eps in exp and log the total is at most 6 y (e^t + |t|) + 4 y |log y| eps, hence 18 (loss + floor) eps.

    def value(self, u: Array, y: Array) -> Array:
        mean = self.second(u, y)
        with np.errstate(over="ignore"):
            out = mean * np.maximum(u - LIMIT, 0) + (mean - y) - y * (u - log_of(y))
        return np.asarray(np.maximum(out, 0))  # rounding errors may make it negative if the mean is near the target

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

    It is nonnegative, zero if :math:`e^u = y`, and depends on the ratio of target and mean. The second derivative is
    unbounded; step rules that need a bound raise an error. For :math:`u < -45`, where the mean is much smaller than
    all valid targets (1e-15 to 1e15), the loss is continued by its tangent at -45, and `second` is constant.

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
    # With t = log y - u the terms are e^t, 1 and t, and e^t + |t| <= 3 (e^t - 1 - t) + 10. With errors of 4 eps in exp
    # and log the total is at most 7 (e^t + |t|) + 4 |log y| + 1 eps, hence 21 (loss + floor) eps.

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
    """Return the logarithm of ``y``, and 0 for ``y = 0``, where callers multiply it by 0."""
    return np.asarray(np.log(np.where(y > 0, y, 1).astype(np.asarray(y).dtype, copy=False)))
