r"""Euclidean projection onto the ball of the k-support norm.

The square of the norm is the least :math:`\sum_i w_i^2 / \theta_i` over all :math:`0 \le \theta_i \le 1` whose sum is
at most k. With a multiplier :math:`\lambda` of the ball the projection of x is therefore

.. math:: w_i = \frac{\theta_i}{\theta_i + \lambda} x_i, \qquad
          \theta_i = \min(1, \max(0, t |x_i| - \lambda)), \qquad \sum_i \theta_i = k .

The a largest entries have :math:`\theta_i = 1`, the next ones up to the b-th lie between and the rest is zero, so that
t has a formula once a and b are known, and so has the norm:

.. math:: t = \frac{k - a + \lambda (b - a)}{\sum_{a < i \le b} |x|_{(i)}}, \qquad
          \|w\|^2 = \frac{\sum_{i \le a} |x|_{(i)}^2}{(1 + \lambda)^2} + \frac{k - a}{t^2} .

References
----------
McDonald, Pontil, Stamos (2016), New perspectives on k-support and cluster norms.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.numerics.newton_root import Look, bracketed_root

#: Entries this much smaller than the largest one are zero in a projection that has others to choose from.
NEGLIGIBLE = 1e-100
#: Points farther away than so many radii are brought to this distance, which moves their projection by rounding alone.
FARTHEST = 1e15


def shrunk(x: Array, k: int, radius: float) -> Array:
    """The projection of a vector of sizes, none negative, whose norm exceeds the radius; to rounding.

    Cost: a sort, and some ten searches among the sorted entries.
    """
    top = float(x.max())
    order = np.argsort(-x, kind="stable")
    z = x[order] / top
    z, top, w = z[z > NEGLIGIBLE], min(top, FARTHEST * radius), np.zeros_like(x)
    w[order[: len(z)]] = radius * z / np.linalg.norm(z) if len(z) <= k else top * _Sorted(z, k).nearest(radius / top)
    return w


@dataclass
class _Sorted:
    """More than k positive entries in decreasing order, the largest one being 1, with the sums of the first ones."""

    z: Array
    k: int

    def __post_init__(self) -> None:
        # Searches compare a few entries each: plain numbers are quicker there than arrays.
        self.negative: list[float] = (-self.z).tolist()
        self.sums: list[float] = [0.0, *np.cumsum(self.z).tolist()]
        self.squares: list[float] = [0.0, *np.cumsum(self.z**2).tolist()]

    def nearest(self, radius: float) -> Array:
        """The projection onto the ball of this radius."""

        def look(multiplier: float) -> Look:
            # The reciprocal of the norm is nearly linear in the multiplier, and exactly so within l_1 and l_2 balls.
            norm, slope = self._norm(multiplier)
            return 1.0 / norm - 1.0 / radius, -slope / norm**2, 4e-16 / radius

        most = math.sqrt(self.squares[-1]) / radius
        multiplier = bracketed_root(look, 0.0, most, 0.0)
        a, b, _ = self._parts(multiplier)
        theta = np.ones(b)
        # The deviations from the mean are exact where entries are equal, however large the multiplier is.
        mid, total = self.z[a:b], self.sums[b] - self.sums[a]
        if b > a:
            theta[a:] = ((self.k - a) * mid + multiplier * (b - a) * (mid - total / (b - a))) / total
        w = np.zeros_like(self.z)
        w[:b] = self.z[:b] * (theta / (theta + multiplier))
        return np.clip(w, 0.0, radius)

    def _norm(self, multiplier: float) -> tuple[float, float]:
        """The norm of the answer for a multiplier, and its derivative."""
        a, b, t = self._parts(multiplier)
        head = self.squares[a] / (1.0 + multiplier) ** 2
        rest = (self.k - a) / t**2
        norm = math.sqrt(head + rest)
        if b == a:
            return norm, -head / (1.0 + multiplier) / norm
        rise = (b - a) / (self.sums[b] - self.sums[a])
        return norm, -(head / (1.0 + multiplier) + rest / t * rise) / norm

    def _parts(self, multiplier: float) -> tuple[int, int, float]:
        """How many entries have a theta of 1, how many one above zero, and t."""
        z, count = self.negative, range(len(self.negative))
        a = bisect_left(count, True, key=lambda i: self._total(-(1.0 + multiplier) / z[i], multiplier) > self.k)
        b = bisect_left(count, True, key=lambda i: self._total(-multiplier / z[i], multiplier) >= self.k)
        if a >= self.k or b <= a:  # k equal entries above all others, or as good as that
            return self.k, self.k, (1.0 + multiplier) / -z[self.k - 1]
        return a, b, (self.k - a + multiplier * (b - a)) / (self.sums[b] - self.sums[a])

    def _total(self, t: float, multiplier: float) -> float:
        """The sum of all theta."""
        if t == 0.0:
            return 0.0
        a = bisect_right(self.negative, -(1.0 + multiplier) / t)
        b = bisect_left(self.negative, -multiplier / t)
        return a + t * (self.sums[b] - self.sums[a]) - multiplier * (b - a)
