"""The bi-weight loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, positive, shown
from projfree.losses.base import Loss

#: The square of this number and its reciprocal are normal floating-point numbers.
LARGEST = 1e150


@dataclass(frozen=True)
class BiWeight(Loss):
    r"""A bounded loss for regression with gross outliers; not convex.

    .. math::
        \ell(u, y) = \frac{r^2}{c^2 + r^2}, \qquad
        \ell' = \frac{2 r c^2}{(c^2 + r^2)^2}, \qquad
        \ell'' = \frac{2 c^2 (c^2 - 3 r^2)}{(c^2 + r^2)^3}, \qquad r = u - y.

    The second derivative lies between :math:`-1/(2 c^2)`, at :math:`|r| = c`, and :math:`2/c^2`, at 0.

    Parameters
    ----------
    scale : float, default 1
        Residual c at which the loss is one half; in the units of the targets, from 1e-150 to 1e150.

    Examples
    --------
    >>> import numpy as np
    >>> loss = BiWeight()
    >>> u, y = np.array([1.0, 3.0]), np.zeros(2)
    >>> loss.value(u, y), loss.derivative(u, y)
    (array([0.5, 0.9]), array([0.5 , 0.06]))
    """

    scale: float = 1.0

    convex = False
    lower_bound = 0.0

    def __post_init__(self) -> None:
        scale = positive("BiWeight(scale=...)", self.scale)
        if not 1 / LARGEST <= scale <= LARGEST:
            raise ValueError(
                f"`BiWeight(scale=...)` must lie between 1e-150 and 1e150, got {shown(scale)}; rescale the targets."
            )
        object.__setattr__(self, "scale", scale)

    @property
    def smoothness(self) -> float:
        return 2 / self.scale**2

    def value(self, u: Array, y: Array) -> Array:
        # 1 / (1 + (c/r)^2) is correct in both limits: 0 if the quotient overflows, and 1 if it underflows.
        with np.errstate(over="ignore", divide="ignore"):
            return np.asarray(1 / (1 + np.square(self.scale / (u - y))))

    def derivative(self, u: Array, y: Array) -> Array:
        r = u - y
        # 2 r (w / c)^2 with w = c^2 / (c^2 + r^2). An error of r counts 3 times, of r/c 4 times, of w/c twice:
        # 17 roundings of eps / 2, or 19 in float32, where the scale is rounded too. 9.5 eps is below the default.
        w = self._weight(r) / self.scale
        return np.asarray(2 * (r * w * w))

    def second(self, u: Array, y: Array) -> Array:
        w = self._weight(u - y)
        return (4 * w - 3) * w * w * self.smoothness

    def _weight(self, r: Array) -> Array:
        """Return c^2 / (c^2 + r^2), which is zero if r^2 overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.square(r / self.scale)))

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        scale = parameters[0]
        for i in range(len(u)):
            t = min(max((u[i] - y[i]) / scale, -LARGEST), LARGEST)
            q = 1.0 / (1.0 + t * t)
            value[i] = t * t * q
            slope[i] = 2.0 / scale * (t * q * q)
