"""The ball of an l_p norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, at_least, positive
from projfree.numerics.flat_ball import GroupL1Ball
from projfree.numerics.lp_norm import conjugate, lp_norm, norming
from projfree.numerics.projections import project
from projfree.sets.base import NormBall, Shape, Structure
from projfree.sets.inputs import checked_point, point, scaled_gradient


@dataclass(frozen=True)
class LpBall(NormBall):
    r"""The arrays of any shape whose entrywise l_p norm is at most the radius.

    .. math:: \|w\|_p = \Bigl(\sum_j |w_j|^p\Bigr)^{1/p} \le r

    With :math:`1/p + 1/q = 1`, the oracle is

    .. math:: \operatorname{lmo}(g)_j = -r \operatorname{sgn}(g_j)\, |g_j|^{q-1} / \|g\|_q^{q-1},

    evaluated after division by :math:`\max_j |g_j|`, because the powers overflow for ``p`` near 1. For ``p = 1`` it is
    minus ``r`` times the signed unit vector of the first largest entry, for ``p = inf`` it is
    :math:`-r \operatorname{sgn}(g)`. Cost: one power per entry.

    The projection is soft thresholding for ``p = 1`` (Duchi et al. 2008), a rescaling for ``p = 2``, clipping for
    ``p = inf``, and Newton's method on logarithms, to machine precision, otherwise.

    Parameters
    ----------
    p, radius : float
        The exponent, from 1 to ``math.inf``, and the radius, positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import LpBall
    >>> ball = LpBall(2, radius=5.0)
    >>> ball.lmo(np.array([3.0, -4.0]))
    array([-3.,  4.])
    >>> LpBall(1, radius=1.0).project(np.array([2.0, -1.5, 0.1]))
    array([ 0.75, -0.25,  0.  ])
    """

    p: float
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", at_least("LpBall(p=...)", self.p, 1.0))
        object.__setattr__(self, "radius", positive("LpBall(radius=...)", self.radius))

    def structure(self, shape: Shape) -> Structure:
        return Structure(
            lp=self,
            group_l1=GroupL1Ball(self.radius, np.broadcast_to(1.0, shape)) if self.p == 1.0 else None,
            polytope=self.p in (1.0, math.inf),
            absolute=True,
            projection="fast",
        )

    @scaled_gradient
    def lmo(self, g: Array) -> Array:
        return -self.radius * norming(g.reshape(1, -1), self.p).reshape(g.shape)

    def norm(self, w: Array) -> float:
        return lp_norm(point(w), self.p)

    def dual_norm(self, g: Array) -> float:
        return lp_norm(point(g), conjugate(self.p))

    @checked_point
    def project(self, w: Array) -> Array:
        return project(w, self.p, self.radius)

    def reach(self, shape: Shape) -> float:
        r"""Return :math:`r \max(1, d^{1/2 - 1/p})`, the largest Euclidean norm in the set."""
        return self.radius * spread(self.p, math.prod(shape))

    def strong_convexity(self, shape: Shape) -> float:
        r"""Return :math:`(p-1)\, d^{1/2-1/p}/r` for :math:`1 < p \le 2`, else 0: a lower bound, not tight.

        The modulus in the l_p norm is :math:`(p-1)/r` (Garber and Hazan 2015), and
        :math:`\|z\|_2 \le \|z\|_p \le d^{1/p-1/2} \|z\|_2`.
        """
        if self.p > 2.0:
            return 0.0
        return (self.p - 1.0) / (self.radius * spread(conjugate(self.p), math.prod(shape)))


def spread(p: float, d: int) -> float:
    r"""Return :math:`\max \|w\|_2` over the unit l_p ball of dimension ``d``, :math:`\max(1, d^{1/2-1/p})`."""
    return 1.0 if p <= 2.0 else math.pow(max(d, 1), 1.0 / hoelder(p))


def hoelder(p: float) -> float:
    r"""Return :math:`t` such that :math:`\|s w\|_2 \le \|s\|_t \|w\|_p`: :math:`1/t = \max(0, 1/2 - 1/p)`."""
    return math.inf if p <= 2.0 else 1.0 / (0.5 - 1.0 / p)
