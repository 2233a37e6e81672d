"""The quantile loss, smoothed near zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, positive, shown
from projfree.losses.base import SmoothedLoss


@dataclass(frozen=True)
class Quantile(SmoothedLoss):
    r"""The quantile loss with a parabola in place of its corner, for the q-th quantile of the target.

    .. math::
        \ell(u, y) = \theta r - \tfrac{\delta}{2} \theta^2, \quad \ell' = -\theta
        \quad\text{with}\quad \theta = \min(\max(r / \delta, q - 1), q), \qquad r = y - u,

    and :math:`\ell'' = 1/\delta` for r between :math:`(q - 1) \delta` and :math:`q \delta`, else 0. The quantile loss
    :math:`\max(q r, (q - 1) r)` lies above it, by at most :math:`c\,\delta` with :math:`c = \max(q, 1 - q)^2 / 2`. So
    a lower bound of the smoothed objective holds for the exact one as well: a run reports the value of the quantile
    loss itself, and as its gap that value less this bound.

    Parameters
    ----------
    quantile : float, default 0.5
        The quantile q, between 0 and 1; one half is the median.
    delta : float, default 1
        The width of the parabola, in the units of the targets. No gap is smaller than about c delta; estimators choose
        it so that this is half of the tolerance.

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
    rounding = 4.0  # r: 1/2, doubled by r^2; beyond, r - d has both parts of one sign and three operations: 5/2

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
        with np.errstate(over="ignore"):  # both factors have one sign, and the second is at least half of r
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
