"""The ball of a Schatten norm: an l_p ball for the singular values of a matrix."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.algebra import LowRank, Structured, is_structured
from projfree.checks import Array, at_least, positive
from projfree.numerics.lp_norm import conjugate, lp_norm, norming
from projfree.numerics.projections import project
from projfree.numerics.spectra import (
    DENSE_ENTRIES,
    EPS,
    EVERY_SIDE,
    Spectrum,
    entry_error,
    frobenius_bound,
    is_sharp,
    norm_bound,
    singular_values,
    spectrum,
    svd,
    svd_error,
)
from projfree.sets.base import ConstraintSet, NormBall, OracleResult, Shape, Structure, is_round
from projfree.sets.inputs import check_matrix, finite, largest, like, point
from projfree.sets.lp import LpBall, spread

#: Components of a vertex of a large matrix that weigh less than this part of the first are left out, and singular
#: values from a Gram matrix below this part of the largest are noise, since it squares the condition.
FAINT, GRAM_NOISE = 1e-6, 1e-7


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

    Matrices that are never formed (`LowRank`, `OnPattern`, sums of them) get answers in factors: from the Gram matrix
    of the smaller side up to 1,024 rows or columns, beyond from leading singular triples by block subspace
    iterations, which begin where ``warm`` says. Such a vertex is feasible and nearly
    optimal, and `support` stays an upper bound.

    Parameters
    ----------
    p, radius : float
        The exponent, from 1 to ``math.inf``, and the radius, positive and finite.

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
            return structured_oracle(g, self.p, self.radius, warm)
        c = finite("lmo(g)", g)
        self.check_shape(c.shape)
        if self.p == 2.0:
            vertex = -self.radius * norming(c.reshape(1, -1), 2.0).reshape(c.shape)
            return OracleResult(like(g, vertex), self.support(c))
        top = largest(c)
        u, s, vt = svd(c / top)
        weights = norming(_without_noise(s, c.shape)[None, :], self.p)[0]
        support = self.radius * (top * lp_norm(s, conjugate(self.p)))
        return OracleResult(like(g, -self.radius * (u * weights) @ vt), support)

    def norm(self, w: Array) -> float:
        return structured_norm(w, self.p) if is_structured(w) else self._dense_norm(w, self.p)

    def dual_norm(self, g: Array) -> float:
        return structured_support(g, self.p, 1.0) if is_structured(g) else self._dense_norm(g, conjugate(self.p))

    def _dense_norm(self, w: Array, exponent: float) -> float:
        c = point(w)
        self.check_shape(c.shape)
        top = largest(c)
        if exponent == 2.0 or not math.isfinite(top):
            return lp_norm(c, exponent)
        return top * lp_norm(singular_values(c / top), exponent)

    def project(self, w: Array) -> Array:
        if is_structured(w):
            nearest: Array = structured_projection(w, self.p, self.radius)
            return nearest
        c = finite("project(w)", w)
        self.check_shape(c.shape)
        if self.p == 2.0:
            return like(w, project(c, 2.0, self.radius))
        top = largest(c)
        u, s, vt = svd(c / top)
        s = s * top
        return like(w, c if lp_norm(s, self.p) <= self.radius else (u * project(s, self.p, self.radius)) @ vt)

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


def structured_oracle(g: Structured, p: float, radius: float, warm: Array | None = None) -> OracleResult:
    """The vertex, feasible whatever the spectrum leaves out, and an upper bound on the support at no further cost.

    ``warm`` is a subspace to begin from: the leading right singular vectors of a similar matrix.
    """
    _check_finite("lmo(g)", g)
    scale, q = g.scale, conjugate(p)
    if scale == 0.0:
        return OracleResult(LowRank(g.shape, ()), 0.0, warm)
    if p == 2.0:
        size = g.size() + entry_error(g, 2.0)
        return OracleResult(g * (-radius / size), radius * size)
    unit = g / scale
    found = spectrum(unit, lambda s: norming(s[None, :], p)[0], warm)
    weights = norming(_without_noise(found.values, g.shape, found.whole)[None, :], p)[0]
    if p < 2.0 and np.prod(g.shape) > DENSE_ENTRIES:  # components that no step would notice
        weights = np.where(weights > FAINT * weights.max(), weights, 0.0)
    vertex = _factors(found, -radius * weights)
    if p > 2.0:  # small singular values count as much as large ones, and their vectors are the least accurate
        vertex = vertex * min(1.0, radius / max(structured_norm(vertex, p), sys.float_info.min))
    upper = (found.upper(q) if found.whole else frobenius_bound(unit, q)) + entry_error(unit, q)
    return OracleResult(vertex, radius * (scale * upper), None if found.whole else found.right)


def structured_support(g: Structured, p: float, radius: float, sharp: bool = True) -> float:
    """A proven upper bound on the support; see `norm_bound` for ``sharp``."""
    q, scale = conjugate(p), g.scale
    if not np.isfinite(scale) or scale == 0.0:
        return scale
    if 1e-100 < scale < 1e100 and not isinstance(g, LowRank) and not is_sharp(g.shape, sharp):  # no copy to scale
        return radius * (frobenius_bound(g, q) + entry_error(g, q))
    unit = g / scale
    upper = lp_norm(unit.singular_values(), q) if isinstance(unit, LowRank) else norm_bound(unit, q, sharp)
    return radius * (scale * (upper + entry_error(unit, q)))


def structured_projection(w: Structured, p: float, radius: float) -> Any:
    """The Euclidean projection; where no side is small, of the leading part of ``w`` that fits in memory."""
    _check_finite("project(w)", w)
    if p == 2.0:
        return w * min(1.0, radius / max(w.size(), radius))
    if isinstance(w, LowRank):
        u, s, v = w.decomposed()
        found = Spectrum(u, s, v, True)
    else:
        most = LowRank(w.shape, ()).capacity // 2  # an iterate and the last one are in memory
        # After a gradient step the iterate's factors are most of the answer.
        near = None if w.low is None or min(w.shape) <= EVERY_SIDE else w.low.decomposed()[2]
        found = spectrum(w, lambda s: project(s, p, radius), near, most)
    if isinstance(w, LowRank) and lp_norm(found.values, p) <= radius:
        return w
    return _factors(found, project(_without_noise(found.values, w.shape, found.whole), p, radius))


def structured_norm(w: Structured, p: float) -> float:
    """The Schatten norm, exact for factors; for others never too small."""
    if isinstance(w, LowRank):
        return lp_norm(w.singular_values(), p) if w.terms else 0.0
    return structured_support(w, conjugate(p), 1.0)


def _without_noise(values: Array, shape: Shape, gram: bool = False) -> Array:
    """Singular values, zero where their vectors are nothing but rounding."""
    level = GRAM_NOISE if gram and math.prod(shape) > DENSE_ENTRIES else max(shape) * EPS
    return np.where(values > level * values.max(initial=0.0), values, 0.0)


def _factors(found: Spectrum, values: Array) -> LowRank:
    kept = values != 0.0
    return LowRank.of(found.left[:, kept] * values[kept], found.right[:, kept])


def _check_finite(call: str, g: Structured) -> None:
    if not g.finite():
        raise ValueError(
            f"`{call}` needs finite entries, got NaN or infinity; the function or the step that made it has overflowed."
        )


def compressed(ball: ConstraintSet, w: Any) -> Any:
    """``w`` itself, or where it is a matrix whose factors have grown too large, a smaller one nearby in the set."""
    if not isinstance(w, LowRank) or w.fits:
        return w
    return w.compressed(columns=w.capacity // 2) if isinstance(ball, SchattenBall) else w
