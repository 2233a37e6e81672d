"""The ball of the k-support norm: the hull of the sparse points of a Euclidean ball."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, count, positive
from projfree.numerics.root_finding import Look, find_root
from projfree.numerics.sums import UNIT
from projfree.sets.base import OPERATIONS, NormBall, OracleResult, Shape, Structure
from projfree.sets.inputs import finite, largest, like, lowest, point

#: Entries this much smaller than the largest one are zero in a projection that has others to choose from.
NEGLIGIBLE = 1e-100
#: Points farther away than so many radii are brought to this distance, which moves their projection by rounding alone.
FARTHEST = 1e15


@dataclass(frozen=True)
class KSupportBall(NormBall):
    r"""The convex hull of all arrays with at most k entries other than zero whose Euclidean norm is at most the radius.

    .. math:: \operatorname{conv}\{w : \|w\|_0 \le k,\ \|w\|_2 \le r\}

    With :math:`|w|_{(1)} \ge |w|_{(2)} \ge \dots` the norm and its dual are

    .. math:: \|w\|^2 = \max_{0 \le l < k}\ \sum_{i=1}^{k-l-1} |w|_{(i)}^2
              + \frac{1}{l+1}\Bigl(\sum_{i=k-l}^{d} |w|_{(i)}\Bigr)^2, \qquad
              \|g\|_*^2 = \sum_{i=1}^{k} |g|_{(i)}^2,

    the maximum over those l for which :math:`|w|_{(k-l-1)}` is at least the mean
    :math:`\sum_{i=k-l}^{d} |w|_{(i)} / (l+1)`. The oracle is minus the radius times the direction of the k largest
    entries of ``g``, of equal ones the first. For ``k = 1`` the set is the l_1 ball, and for k at least the number of
    entries the Euclidean ball. Cost: a partition for the oracle and the dual norm, a sort for the norm, and a sort with
    some ten searches for the projection.

    Parameters
    ----------
    k : int
        How many entries may differ from zero.
    radius : float
        The radius, positive and finite.

    References
    ----------
    Argyriou, Foygel, Srebro (2012), Sparse prediction with the k-support norm; McDonald, Pontil, Stamos (2016), New
    perspectives on k-support and cluster norms.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import KSupportBall
    >>> KSupportBall(2, radius=5.0).lmo(np.array([3.0, -1.0, -4.0]))
    array([-3.,  0.,  4.])
    >>> KSupportBall(1, radius=1.0).norm(np.array([0.5, -0.5]))
    1.0
    """

    k: int
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", count("KSupportBall(k=...)", self.k))
        object.__setattr__(self, "radius", positive("KSupportBall(radius=...)", self.radius))

    def structure(self, shape: Shape) -> Structure:
        return Structure(absolute=True, projection="fast")

    def lmo(self, g: Array) -> Array:
        c = finite("lmo(g)", g)
        flat = c.ravel() / largest(c)
        v, on = np.zeros(len(flat)), lowest(-np.abs(flat), self.k)
        length = float(np.linalg.norm(flat[on]))
        if length > 0.0:
            v[on] = -self.radius * (flat[on] / length)
        return like(g, v.reshape(c.shape))

    def oracle(self, g: Array, warm: object = None) -> OracleResult:
        return OracleResult(self.lmo(g), self.support(g))

    def norm(self, w: Array) -> float:
        x = np.abs(point(w)).ravel()
        top = largest(x)
        if not math.isfinite(top):
            return top
        z = np.sort(x / top)[::-1]
        k = min(self.k, len(z))
        l = np.arange(k)  # noqa: E741 - the letter of the formula
        tails = np.cumsum(z[::-1])[::-1][k - 1 - l]
        heads = np.concatenate([[0.0], np.cumsum(z**2)])[k - 1 - l]
        # Each such l gives a lower bound, and one of them the norm: no rounding can make the answer too large.
        before = np.concatenate([[math.inf], z])[k - 1 - l]
        fits = before * (l + 1.0) >= tails
        return top * math.sqrt(float(np.max((heads + tails**2 / (l + 1.0))[fits])))

    def dual_norm(self, g: Array) -> float:
        c = np.abs(point(g)).ravel()
        top = largest(c)
        if not math.isfinite(top):
            return top
        return top * float(np.linalg.norm(c[lowest(-c, self.k)] / top))

    def project(self, w: Array) -> Array:
        x = finite("project(w)", w)
        if self.norm(x) <= self.radius:
            return like(w, x)
        nearest = _shrunk(np.abs(x).ravel(), self.k, self.radius).reshape(x.shape)
        return like(w, np.copysign(nearest * (self.radius / self.norm(nearest)), x))

    def support_error(self, g: Array, support: float) -> float:
        # A sum of at most k squares in any order, a root, and a few products.
        return UNIT * (min(self.k, g.size) + OPERATIONS) * abs(support)

    def reach(self, shape: Shape) -> float:
        return self.radius


def _shrunk(x: Array, k: int, radius: float) -> Array:
    r"""Euclidean projection of a vector without negative entries whose norm exceeds the radius; to rounding.

    The square of the norm is the least :math:`\sum_i w_i^2 / \theta_i` over all :math:`0 \le \theta_i \le 1` whose sum
    is at most k. With a multiplier :math:`\lambda` of the ball the projection of x is therefore

    .. math:: w_i = \frac{\theta_i}{\theta_i + \lambda} x_i, \qquad
              \theta_i = \min(1, \max(0, t x_i - \lambda)), \qquad \sum_i \theta_i = k .

    The a largest entries have :math:`\theta_i = 1`, the next ones up to the b-th lie between and the rest is zero, so
    that t has a formula once a and b are known, and so has the norm:

    .. math:: t = \frac{k - a + \lambda (b - a)}{\sum_{a < i \le b} x_{(i)}}, \qquad
              \|w\|^2 = \frac{\sum_{i \le a} x_{(i)}^2}{(1 + \lambda)^2} + \frac{k - a}{t^2} .

    Cost: a sort, and some ten searches among the sorted entries (McDonald, Pontil, Stamos 2016).
    """
    top = float(x.max())
    order = np.argsort(-x, kind="stable")
    z = x[order] / top
    z, top, w = z[z > NEGLIGIBLE], min(top, FARTHEST * radius), np.zeros_like(x)
    w[order[: len(z)]] = radius * z / np.linalg.norm(z) if len(z) <= k else top * _nearest(z, k, radius / top)
    return w


def _nearest(z: Array, k: int, radius: float) -> Array:
    """The projection of more than k positive entries in decreasing order, of which the largest one is 1."""
    # Searches compare a few entries each: plain numbers are faster there than arrays.
    negative: list[float] = (-z).tolist()
    sums, squares = ([0.0, *np.cumsum(each).tolist()] for each in (z, z**2))

    def total(t: float, multiplier: float) -> float:
        """The sum of all theta."""
        if t == 0.0:
            return 0.0
        a, b = bisect_right(negative, -(1.0 + multiplier) / t), bisect_left(negative, -multiplier / t)
        return float(a + t * (sums[b] - sums[a]) - multiplier * (b - a))

    def parts(multiplier: float) -> tuple[int, int, float]:
        """How many entries have a theta of 1, how many one above zero, and t."""
        count = range(len(z))
        a = bisect_left(count, True, key=lambda i: total(-(1.0 + multiplier) / negative[i], multiplier) > k)
        b = bisect_left(count, True, key=lambda i: total(-multiplier / negative[i], multiplier) >= k)
        if a >= k or b <= a:  # k equal entries above all others, or as good as that
            return k, k, (1.0 + multiplier) / -negative[k - 1]
        return a, b, (k - a + multiplier * (b - a)) / (sums[b] - sums[a])

    def look(multiplier: float) -> Look:
        # The reciprocal of the norm is nearly linear in the multiplier, and exactly so within l_1 and l_2 balls.
        a, b, t = parts(multiplier)
        head, rest = squares[a] / (1.0 + multiplier) ** 2, (k - a) / t**2
        rise = (b - a) / (sums[b] - sums[a]) if b > a else 0.0
        norm = math.sqrt(head + rest)
        slope = (head / (1.0 + multiplier) + rest / t * rise) / norm**3
        return 1.0 / norm - 1.0 / radius, slope, 4 * UNIT / radius

    multiplier = find_root(look, 0.0, 0.0, math.sqrt(squares[-1]) / radius)
    a, b, _ = parts(multiplier)
    theta, mid = np.ones(b), z[a:b]
    if b > a:  # the deviations from the mean are exact where entries are equal, however large the multiplier is
        theta[a:] = (k - a) * mid / mid.sum() + multiplier * (mid - mid.mean()) / mid.mean()
    w = np.zeros_like(z)
    w[:b] = z[:b] * (theta / (theta + multiplier))
    return np.clip(w, 0.0, radius)
