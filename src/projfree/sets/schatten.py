"""The ball of a Schatten norm: an l_p ball for the singular values of a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.algebra import is_structured
from projfree.checks import Array, at_least, positive
from projfree.numerics.lp_norm import conjugate, lp_norm, norming
from projfree.numerics.projections import project
from projfree.numerics.spectra import singular_values, svd, svd_error
from projfree.sets import spectral
from projfree.sets.base import NormBall, OracleResult, Shape, Structure, is_round
from projfree.sets.inputs import check_matrix, finite, largest, like, point
from projfree.sets.lp import LpBall, spread


@dataclass(frozen=True)
class SchattenBall(NormBall):
    r"""All matrices whose Schatten norm, the l_p norm of their singular values, is at most the radius.

    .. math:: \|W\|_{S_p} = \Bigl(\sum_i \sigma_i(W)^p\Bigr)^{1/p} \le r

    ``p = 1`` is the nuclear norm, ``p = 2`` the Frobenius norm, ``p = inf`` the spectral norm. With
    :math:`G = U \operatorname{diag}(\sigma) V^T` and :math:`1/p + 1/q = 1`,

    .. math:: \operatorname{lmo}(G) = -r\, U \operatorname{diag}\bigl((\sigma_i/\|\sigma\|_q)^{q-1}\bigr) V^T,

    the first singular pair for ``p = 1``, :math:`-r U V^T` over the numerical range of ``G`` for ``p = inf``.
    ``p = 2`` needs no singular values: :math:`-r G/\|G\|_F`, and the projection is a rescaling. Cost otherwise: one
    dense singular value decomposition, O(m n min(m, n)); `oracle` gives vertex and support from a single one.

    Matrices that are never formed (`LowRank`, `OnPattern`, sums of them) get answers in factors. Up to 1,024 rows or
    columns the whole spectrum comes from the Gram matrix of the smaller side; beyond, leading singular triples from
    block subspace iterations that begin where the last call on the same pattern ended. Such a vertex is feasible and
    nearly optimal, and `support` stays an upper bound: from all eigenvalues of the Gram matrix up to 5,000 on the
    smaller side, else by the Frobenius and Schatten-4 mass that the triples leave out.

    Parameters
    ----------
    p : float
        The exponent, from 1 to ``math.inf``.
    radius : float
        The radius, positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import SchattenBall
    >>> ball = SchattenBall(1, radius=2.0)
    >>> ball.lmo(np.diag([3.0, 1.0]))
    array([[-2.,  0.],
           [ 0.,  0.]])
    >>> ball.project(np.diag([3.0, 1.0]))
    array([[2., 0.],
           [0., 0.]])
    """

    p: float
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", at_least("SchattenBall(p=...)", self.p, 1.0))
        object.__setattr__(self, "radius", positive("SchattenBall(radius=...)", self.radius))

    def structure(self, shape: Shape) -> Structure:
        if self.p == 2.0 or min(shape) == 1:  # a single row or column has one singular value, its length
            return LpBall(2.0, self.radius).structure(shape)
        return Structure(round=is_round(self.p), spectral=True, projection="fast")

    def check_shape(self, shape: Shape) -> None:
        check_matrix("SchattenBall", shape, "rows x columns")

    def lmo(self, g: Array) -> Array:
        vertex: Array = self.oracle(g).vertex
        return vertex

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        if is_structured(g):
            return spectral.oracle(g, self.p, self.radius, warm)
        c = finite("lmo(g)", g)
        self.check_shape(c.shape)
        if self.p == 2.0:
            vertex = -self.radius * norming(c.reshape(1, -1), 2.0).reshape(c.shape)
            return OracleResult(like(g, vertex), self.support(c))
        top = largest(c)
        u, s, vt = svd(c / top)
        kept = s > s.max(initial=0.0) * max(c.shape) * float(np.finfo(np.float64).eps)
        weights = norming(np.where(kept, s, 0.0)[None, :], self.p)[0]
        vertex = -self.radius * (u * weights) @ vt
        return OracleResult(like(g, vertex), self.radius * (top * lp_norm(s, conjugate(self.p))))

    def norm(self, w: Array) -> float:
        if is_structured(w):
            return spectral.norm(w, self.p)
        return self._spectral_norm(point(w), self.p)

    def dual_norm(self, g: Array) -> float:
        if is_structured(g):
            return spectral.support(g, self.p, 1.0)
        return self._spectral_norm(point(g), conjugate(self.p))

    def project(self, w: Array) -> Array:
        if is_structured(w):
            nearest: Array = spectral.projection(w, self.p, self.radius)
            return nearest
        c = finite("project(w)", w)
        self.check_shape(c.shape)
        if self.p == 2.0:
            return like(w, project(c, 2.0, self.radius))
        top = largest(c)
        u, s, vt = svd(c / top)
        s = s * top
        if lp_norm(s, self.p) <= self.radius:
            return like(w, c)
        return like(w, (u * project(s, self.p, self.radius)) @ vt)

    def support_error(self, g: Array, support: float) -> float:
        r"""The norm's own, plus :math:`k^{|1/2 - 1/p|}` times the backward error of the decomposition (Mirsky)."""
        own = super().support_error(g, support)
        if self.p == 2.0:
            return own
        rows, columns = g.shape
        return own + svd_error((rows, columns)) * math.pow(min(g.shape), abs(0.5 - 1.0 / self.p)) * abs(support)

    def reach(self, shape: Shape) -> float:
        r""":math:`r \max(1, k^{1/2-1/p})` with :math:`k = \min(m, n)`, attained."""
        self.check_shape(shape)
        return self.radius * spread(self.p, min(shape))

    def strong_convexity(self, shape: Shape) -> float:
        r""":math:`(p-1)\, k^{1/2-1/p}/r` with :math:`k = \min(m, n)` for :math:`1 < p \le 2`, else 0; safe.

        From the modulus in the own norm (Ball, Carlen and Lieb 1994; Garber and Hazan 2015).
        """
        self.check_shape(shape)
        return LpBall(self.p, self.radius).strong_convexity((min(shape),))

    def _spectral_norm(self, c: Array, exponent: float) -> float:
        self.check_shape(c.shape)
        top = largest(c)
        if exponent == 2.0 or not math.isfinite(top):
            return lp_norm(c, exponent)
        return top * lp_norm(singular_values(c / top), exponent)
