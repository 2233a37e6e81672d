"""The quantile loss, smoothed near zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, positive, shown
from projfree.losses.base import SmoothedLoss


@dataclass(frozen=True)
class Quantile(SmoothedLoss):
    r"""Smoothed quantile (pinball) loss, for regression of the q-th quantile of the target.

    .. math::
        \ell(u, y) = \theta r - \tfrac{\delta}{2} \theta^2, \quad \ell' = -\theta
        \quad\text{with}\quad \theta = \min(\max(r / \delta, q - 1), q), \qquad r = y - u,

    and :math:`\ell'' = 1/\delta` for r between :math:`(q - 1) \delta` and :math:`q \delta`, else 0. The exact loss
    :math:`\max(q r, (q - 1) r)` exceeds it by at most :math:`c\,\delta` with :math:`c = \max(q, 1 - q)^2 / 2`, and is
    never smaller. Hence a lower bound on the smoothed objective is one on the exact objective; a run reports the value
    of the exact objective, and its difference from this bound as the gap.

    Parameters
    ----------
    quantile : float, default 0.5
        Quantile q, between 0 and 1; 0.5 is the median.
    delta : float, default 1
        Width of the quadratic part, in the units of the targets. The gap cannot be much smaller than c delta;
        estimators choose delta such that this is half of the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Quantile(0.5, delta=1.0)
    >>> u, y = np.array([0.1, 3.0]), np.zeros(2)
    >>> loss.value(u, y), loss.derivative(u, y)
    (array([0.005, 1.375]), array([0.1, 0.5]))

    References
    ----------
    Koenker, Bassett (1978), Regression quantiles; Nesterov (2005), Smooth minimization of non-smooth functions.
    """

    quantile: float = 0.5
    delta: float = 1.0

    lower_bound = 0.0
    rounding = 4.0  # 1/2 eps in r, doubled in the quadratic part; three operations add 3/2: 5/2 eps

    def __post_init__(self) -> None:
        q = positive("Quantile(quantile=...)", self.quantile)
        if q >= 1.0:
            raise ValueError(f"`Quantile(quantile=...)` must lie between 0 and 1, got {shown(q)}.")
        object.__setattr__(self, "quantile", q)
        object.__setattr__(self, "delta", positive("Quantile(delta=...)", self.delta))

    @property
    def smoothness(self) -> float:
        return 1.0 / self.delta

    @property
    def lipschitz(self) -> float:  # type: ignore[override]  # read-only here: it follows from the quantile
        return max(self.quantile, 1.0 - self.quantile)

    @property
    def smoothing_error(self) -> float:  # type: ignore[override]  # read-only here
        return 0.5 * self.lipschitz**2 * self.delta

    def exact(self, u: Array, y: Array) -> Array:
        r = y - u
        return np.maximum(self.quantile * r, (self.quantile - 1.0) * r)

    def value(self, u: Array, y: Array) -> Array:
        theta = self._theta(y - u)
        with np.errstate(over="ignore"):  # theta has the sign of r, so the second factor is at least |r| / 2
            return theta * ((y - u) - (0.5 * self.delta) * theta)

    def derivative(self, u: Array, y: Array) -> Array:
        return np.negative(self._theta(y - u))

    def second(self, u: Array, y: Array) -> Array:
        r: Array = y - u
        inside = (r >= (self.quantile - 1.0) * self.delta) & (r <= self.quantile * self.delta)
        return inside.astype(r.dtype) / self.delta

    def _theta(self, r: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.minimum(np.maximum(r / self.delta, self.quantile - 1.0), self.quantile)

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        q, delta = parameters[0], parameters[1]
        for i in range(len(u)):
            r = y[i] - u[i]
            theta = min(max(r / delta, q - 1.0), q)
            value[i] = theta * (r - 0.5 * delta * theta)
            slope[i] = -theta
