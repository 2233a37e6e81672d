"""The ball of the k-support norm: the convex hull of the k-sparse points of a Euclidean ball."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, count, positive
from projfree.numerics.lp_norm import lp_norm, norming
from projfree.numerics.root_finding import Look, find_root
from projfree.numerics.sums import UNIT
from projfree.sets.base import NormBall, Shape, Structure
from projfree.sets.inputs import checked_point, largest, point, scaled_gradient, scaled_norm


@dataclass(frozen=True)
class KSupportBall(NormBall):
    r"""The convex hull of the arrays with at most k nonzero entries and Euclidean norm at most the radius.

    .. math:: \operatorname{conv}\{w : \|w\|_0 \le k,\ \|w\|_2 \le r\}

    With :math:`|w|_{(1)} \ge |w|_{(2)} \ge \dots` the norm and its dual are

    .. math:: \|w\|^2 = \max_{0 \le l < k}\ \sum_{i=1}^{k-l-1} |w|_{(i)}^2
              + \frac{1}{l+1}\Bigl(\sum_{i=k-l}^{d} |w|_{(i)}\Bigr)^2, \qquad
              \|g\|_*^2 = \sum_{i=1}^{k} |g|_{(i)}^2,

    where the maximum is over the l for which :math:`|w|_{(k-l-1)}` is at least
    :math:`\sum_{i=k-l}^{d} |w|_{(i)} / (l+1)`. The oracle returns minus the radius times the normalised vector of the k
    largest entries of ``g``; ties are broken by index. For ``k = 1`` the set is the l_1 ball, and for k at least the
    number of entries it is the Euclidean ball. Cost: a sort; the projection needs about a hundred sums in addition.

    Parameters
    ----------
    k : int
        The maximum number of nonzero entries.
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

    @scaled_gradient
    def lmo(self, g: Array) -> Array:
        v, on = np.zeros(g.size), np.argsort(-np.abs(g), axis=None, kind="stable")[: self.k]
        v[on] = -self.radius * norming(g.ravel()[None, on], 2.0)[0]
        return v.reshape(g.shape)

    @scaled_norm
    def norm(self, w: Array) -> float:
        z = np.sort(np.abs(w), axis=None)[::-1]
        k = min(self.k, len(z))
        l = np.arange(k)  # noqa: E741 - the letter of the formula
        tails = np.cumsum(z[::-1])[::-1][k - 1 - l]
        heads = np.concatenate([[0.0], np.cumsum(z**2)])[k - 1 - l]
        # Every admissible l gives a lower bound, and one of them the norm, so rounding cannot increase the result.
        before = np.concatenate([[math.inf], z])[k - 1 - l]
        fits = before * (l + 1.0) >= tails
        return math.sqrt(float(np.max((heads + tails**2 / (l + 1.0))[fits])))

    def dual_norm(self, g: Array) -> float:
        return lp_norm(np.sort(np.abs(point(g)), axis=None)[::-1][: self.k], 2.0)

    @checked_point
    def project(self, w: Array) -> Array:
        if self.norm(w) <= self.radius:
            return w
        top = largest(w)
        far = min(top / self.radius, 1.0 / UNIT)  # beyond this factor the projection is constant up to rounding
        nearest = _nearest(np.abs(w).ravel() / top, self.k, 1.0 / far).reshape(w.shape)
        return np.copysign(nearest * (self.radius / self.norm(nearest)), w)

    def reach(self, shape: Shape) -> float:
        return self.radius


def _nearest(x: Array, k: int, radius: float) -> Array:
    r"""Project a nonnegative vector with maximum 1, whose norm exceeds the radius, in the Euclidean norm.

    The square of the norm is the minimum of :math:`\sum_i w_i^2 / \theta_i` over :math:`0 \le \theta_i \le 1` with sum
    at most k, so that the projection with multiplier :math:`\lambda` is

    .. math:: w_i = \frac{\theta_i}{\theta_i + \lambda} x_i, \qquad
              \theta_i = \min(1, \max(0, t x_i - \lambda)), \qquad \sum_i \theta_i = k,

    with :math:`\|w\|^2 = \sum_i \theta_i (x_i / (\theta_i + \lambda))^2`, whose reciprocal square root is nearly linear
    in the multiplier. With the k-th largest entry m and :math:`t = (\lambda + s)/m`, :math:`0 \le s \le 1`, there is no
    cancellation for large multipliers.
    """
    x = np.where(x > UNIT, x, 0.0)
    if np.count_nonzero(x) <= k:
        return np.asarray(x * (radius / lp_norm(x, 2.0)))
    order = np.argsort(-x, kind="stable")
    x = x[order]
    unit = x / x[k - 1]
    above = (x - x[k - 1]) / x[k - 1]

    def theta(multiplier: float) -> Array:
        def total(s: float) -> Look:
            share = multiplier * above + s * unit
            inside = (share > 0.0) & (share < 1.0)
            return float(np.clip(share, 0.0, 1.0).sum()) - k, float(unit[inside].sum()), k * UNIT

        s = find_root(total, 1.0, 0.0, 1.0)
        return np.asarray(np.clip(multiplier * above + s * unit, 0.0, 1.0))

    def look(multiplier: float) -> Look:
        part = theta(multiplier)
        part = part[: np.count_nonzero(part)]
        norm = lp_norm(np.sqrt(part) * x[: len(part)] / (part + multiplier), 2.0)
        return 1.0 / norm - 1.0 / radius, 0.0, 4 * UNIT / radius

    multiplier = find_root(look, 0.0, 0.0, lp_norm(x, 2.0) / radius)
    part = theta(multiplier)
    w = np.zeros_like(x)
    w[order] = np.divide(part, part + multiplier, out=np.zeros_like(x), where=part > 0.0) * x
    return w
