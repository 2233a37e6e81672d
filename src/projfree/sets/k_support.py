"""The ball of the k-support norm: the hull of the sparse points of a Euclidean ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from projfree.checks import Array, count, positive
from projfree.numerics.sums import UNIT
from projfree.sets.base import ConstraintSet, NormBall, Shape
from projfree.sets.inputs import finite, largest, like, lowest, point
from projfree.sets.lp import LpBall

if TYPE_CHECKING:
    from projfree.numerics.flat_ball import FlatBall


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

    support_cost = "entries"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", count("KSupportBall(k=...)", self.k))
        object.__setattr__(self, "radius", positive("KSupportBall(radius=...)", self.radius))

    @classmethod
    def examples(cls) -> tuple[ConstraintSet, ...]:
        return (cls(1, 1.5), cls(2, 1.5), cls(3, 0.5), cls(50, 2.0))

    def lmo(self, g: Array) -> Array:
        c = finite("lmo(g)", g)
        flat = c.ravel() / largest(c)
        v, on = np.zeros(len(flat)), lowest(-np.abs(flat), self.k)
        length = float(np.linalg.norm(flat[on]))
        if length > 0.0:
            v[on] = -self.radius * (flat[on] / length)
        return like(g, v.reshape(c.shape))

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
        from projfree.numerics.k_support_projection import shrunk

        nearest = shrunk(np.abs(x).ravel(), self.k, self.radius).reshape(x.shape)
        return like(w, np.copysign(nearest * (self.radius / self.norm(nearest)), x))

    def as_lp(self, shape: Shape) -> LpBall | None:
        if self.k == 1:
            return LpBall(1.0, self.radius)
        return LpBall(2.0, self.radius) if self.k >= math.prod(shape) else None

    def as_flat(self, shape: Shape) -> FlatBall | None:
        lp = self.as_lp(shape)
        return None if lp is None else lp.as_flat(shape)

    def support_rtol(self, shape: Shape) -> float:
        # A sum of at most k squares in any order, a root, and a few products.
        return UNIT * (min(self.k, math.prod(shape)) + 16.0)

    def reach(self, shape: Shape) -> float:
        return self.radius
