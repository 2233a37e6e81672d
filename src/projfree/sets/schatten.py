"""The ball of a Schatten norm, the l_p norm of the singular values of a matrix."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.algebra import LowRank, Structured, is_structured
from projfree.checks import Array, at_least, positive
from projfree.numerics import spectra
from projfree.numerics.lp_norm import SAFE_SQUARES, conjugate, lp_norm, norming
from projfree.numerics.projections import project
from projfree.numerics.spectra import Spectrum, singular_values, spectrum, svd
from projfree.sets.base import ConstraintSet, NormBall, OracleResult, Shape, Structure
from projfree.sets.inputs import check_matrix, finite, largest, like, point
from projfree.sets.lp import LpBall, spread

#: Relative weight below which a component of a vertex of a large structured matrix is dropped.
FAINT = 1e-6


@dataclass(frozen=True)
class SchattenBall(NormBall):
    r"""The matrices whose Schatten norm, the l_p norm of the singular values, is at most the radius.

    .. math:: \|W\|_{S_p} = \Bigl(\sum_i \sigma_i(W)^p\Bigr)^{1/p} \le r

    ``p = 1`` is the nuclear norm, ``p = 2`` the Frobenius norm, ``p = inf`` the spectral norm. With
    :math:`G = U \operatorname{diag}(\sigma) V^T` and :math:`1/p + 1/q = 1`,

    .. math:: \operatorname{lmo}(G) = -r\, U \operatorname{diag}\bigl((\sigma_i/\|\sigma\|_q)^{q-1}\bigr) V^T,

    the first singular pair for ``p = 1``, and :math:`-r U V^T` over the numerical range of ``G`` for ``p = inf``.
    For ``p = 2`` it is :math:`-r G/\|G\|_F`, and the projection is a rescaling. The cost for other p is one dense SVD,
    O(m n min(m, n)), from which `oracle` computes both the vertex and the support.

    For structured matrices (`LowRank`, `OnPattern` and their sums) the results are low-rank matrices. They are computed
    from the smaller Gram matrix if it has at most 1,024 rows, else from leading singular triples by block subspace
    iteration, started from ``warm``. Such a vertex is feasible and nearly optimal, and `support` is an upper bound.

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
        if self.p == 2.0 or min(shape) == 1:  # a single row or column has one singular value, its Euclidean norm
            return LpBall(2.0, self.radius).structure(shape)
        return Structure(projection="fast")

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
        weights = norming(Spectrum(u, s, vt.T).reliable[None, :], self.p)[0]
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
        r"""Return the error of the norm plus :math:`k^{|1/2 - 1/p|}` times the backward error of the SVD (Mirsky)."""
        own = super().support_error(g, support)
        if self.p == 2.0:
            return own
        rows, columns = g.shape
        return own + spectra.svd_error((rows, columns)) * math.pow(min(g.shape), abs(0.5 - 1.0 / self.p)) * abs(support)

    def reach(self, shape: Shape) -> float:
        r"""Return :math:`r \max(1, k^{1/2-1/p})` with :math:`k = \min(m, n)`, which is attained."""
        self.check_shape(shape)
        return self.radius * spread(self.p, min(shape))

    def strong_convexity(self, shape: Shape) -> float:
        r"""Return :math:`(p-1)\, k^{1/2-1/p}/r` with :math:`k = \min(m, n)` for :math:`1 < p \le 2`, else 0.

        This lower bound follows from the modulus in the Schatten norm (Ball, Carlen, Lieb 1994; Garber, Hazan 2015).
        """
        self.check_shape(shape)
        return LpBall(self.p, self.radius).strong_convexity((min(shape),))


def structured_oracle(g: Structured, p: float, radius: float, warm: Array | None = None) -> OracleResult:
    """Return a vertex, feasible even if the spectrum is truncated, and an upper bound on the support.

    ``warm`` is the initial subspace: the leading right singular vectors of a similar matrix.
    """
    _check_finite("lmo(g)", g)
    if not g.any():
        return OracleResult(LowRank(g.shape, ()), 0.0, warm)
    q, (unit, scale) = conjugate(p), _in_range(g)
    if p == 2.0:
        size = spectra.frobenius_bound(unit, 2.0)
        return OracleResult(unit * (-radius / size), radius * (scale * size))
    found = spectrum(unit, lambda s: norming(s[None, :], p)[0], warm)
    weights = norming(found.reliable[None, :], p)[0]
    if p < 2.0 and math.prod(g.shape) > spectra.DENSE_ENTRIES:  # negligible components
        weights = np.where(weights > FAINT * weights.max(), weights, 0.0)
    vertex = _factors(found, -radius * weights)
    if p > 2.0:  # small singular values have large weights, but inaccurate vectors
        vertex = vertex * min(1.0, radius / max(structured_norm(vertex, p), sys.float_info.min))
    if not found.whole:
        return OracleResult(vertex, radius * (scale * spectra.frobenius_bound(unit, q)), found.right)
    upper = lp_norm(np.sqrt(found.values**2 + found.error), q) + spectra.entry_error(unit, q)
    return OracleResult(vertex, radius * (scale * upper))


def structured_support(g: Structured, p: float, radius: float, sharp: bool = True) -> float:
    """Return an upper bound on the support; see `norm_bound` for ``sharp``."""
    if not (g.any() and g.finite()):
        return g.scale
    q, (unit, scale) = conjugate(p), _in_range(g)
    if isinstance(unit, LowRank):
        return radius * (scale * (lp_norm(unit.singular_values(), q) + spectra.entry_error(unit, q)))
    return radius * (scale * spectra.norm_bound(unit, q, sharp))


def _in_range(g: Structured) -> tuple[Any, float]:
    """Return the matrix divided by a scale, and the scale: 1, without a copy, if squares do not over- or underflow."""
    scale = g.scale
    if scale == 0.0 or SAFE_SQUARES[0] < scale * scale < SAFE_SQUARES[1]:
        return g, 1.0
    return g / scale, scale


def structured_projection(w: Structured, p: float, radius: float) -> Any:
    """Return the Euclidean projection; of a large matrix, that of the leading singular triples that fit in memory."""
    _check_finite("project(w)", w)
    if p == 2.0:
        return w * min(1.0, radius / max(w.size(), radius))
    if isinstance(w, LowRank):
        found = Spectrum(*w.decomposed())
        if lp_norm(found.values, p) <= radius:
            return w
    else:
        most = LowRank(w.shape, ()).capacity // 2  # two iterates are in memory
        # After a gradient step, the factors of the iterate are a good initial subspace.
        near = None if w.low is None or min(w.shape) <= spectra.EVERY_SIDE else w.low.decomposed()[2]
        found = spectrum(w, lambda s: project(s, p, radius), near, most)
    return _factors(found, project(found.reliable, p, radius))


def structured_norm(w: Structured, p: float) -> float:
    """Return the Schatten norm, exact for `LowRank` matrices, an upper bound for others."""
    if isinstance(w, LowRank):
        return lp_norm(w.singular_values(), p) if w.terms else 0.0
    return structured_support(w, conjugate(p), 1.0)


def _factors(found: Spectrum, values: Array) -> LowRank:
    kept = values != 0.0
    return LowRank.of(found.left[:, kept] * values[kept], found.right[:, kept])


def _check_finite(call: str, g: Structured) -> None:
    if not g.finite():
        raise ValueError(
            f"`{call}` needs finite entries, got NaN or infinity; the function or the step that made it has overflowed."
        )


def compressed(ball: ConstraintSet, w: Any) -> Any:
    """Return ``w``, or a nearby point of the set of smaller rank if the factors of ``w`` exceed their memory limit."""
    if not isinstance(w, LowRank) or w.fits:
        return w
    return w.compressed(columns=w.capacity // 2) if isinstance(ball, SchattenBall) else w
