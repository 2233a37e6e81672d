"""Schatten balls on matrices that are never formed: vertices and projections in factors, supports on the safe side."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.algebra import LowRank, Structured
from projfree.checks import Array
from projfree.numerics.lp_norm import conjugate, lp_norm, norming
from projfree.numerics.projections import project
from projfree.numerics.spectra import (
    DENSE_ENTRIES,
    EVERY_SIDE,
    STEPS,
    Spectrum,
    entry_error,
    frobenius_bound,
    is_sharp,
    norm_bound,
    spectrum,
)
from projfree.sets.base import OracleResult

#: Components of a vertex of a large matrix that weigh less than this part of the first are left out: of one whose
#: spectrum is known, and of one whose leading part is.
FAINT, FAINT_LEADING = 1e-6, 1e-4


def oracle(g: Structured, p: float, radius: float, warm: Array | None = None) -> OracleResult:
    """The vertex, an upper bound on the support, and the leading right singular vectors where no more were computed.

    The vertex is feasible whatever the spectrum leaves out. The bound is the best that costs no more than the vertex
    did: sharp where the whole spectrum was taken. ``warm`` is a subspace to begin from, the third part of the result
    for a similar matrix.
    """
    _check_finite("lmo(g)", g)
    scale = g.scale
    if scale == 0.0:
        return OracleResult(LowRank(g.shape, ()), 0.0, warm)
    if p == 2.0:
        size = _size_above(g)
        return OracleResult(g * (-radius / size), radius * size)
    unit = g / scale
    found = spectrum(unit, lambda s: norming(s[None, :], p)[0], warm)
    weights = norming(_counted(found, unit)[None, :], p)[0]
    if p < 2.0 and np.prod(g.shape) > DENSE_ENTRIES:  # columns that no step would notice
        faint = FAINT if found.whole else FAINT_LEADING
        weights = np.where(weights > faint * weights.max(), weights, 0.0)
    vertex = _factors(found, -radius * weights)
    if p > 2.0:  # small singular values count as much as large ones, and their vectors are the least accurate
        vertex = vertex * min(1.0, radius / max(norm(vertex, p), float(np.finfo(np.float64).tiny)))
    q = conjugate(p)
    upper = (found.upper(q) if found.whole else frobenius_bound(unit, q)) + entry_error(unit, q)
    return OracleResult(vertex, radius * (scale * upper), None if found.whole else found.right)


def support(g: Structured, p: float, radius: float, sharp: bool = True) -> float:
    """A proven upper bound on the support: sharp where a side has up to 5,000 rows, else by the tail bound.

    Without ``sharp`` it is that of the Frobenius norm, beyond 1,024 rows.
    """
    q, scale = conjugate(p), g.scale
    if not np.isfinite(scale) or scale == 0.0:
        return scale
    if p == 2.0:
        return radius * _size_above(g)
    unit = g / scale
    return radius * (scale * (_norm_above(unit, p, q, sharp) + entry_error(unit, q)))


def _norm_above(unit: Structured, p: float, q: float, sharp: bool) -> float:
    """An upper bound on the Schatten norm of the matrix that the numbers stored would give without rounding."""
    if isinstance(unit, LowRank):
        return lp_norm(unit.singular_values(), q)
    if not is_sharp(unit.shape, sharp):
        return frobenius_bound(unit, q)
    # From a start of its own: whoever checks a bound must find the same one, whatever was computed before.
    found = spectrum(unit, lambda s: norming(s[None, :], p)[0])
    return found.upper(q) if found.whole else norm_bound(unit, q, found)


def projection(w: Structured, p: float, radius: float) -> Any:
    """The Euclidean projection; where no side is small, of the leading part of ``w``, which is feasible too.

    That part has as many components as the projection, as far as these fit in the memory of an iterate.
    """
    _check_finite("project(w)", w)
    size = w.size()
    if p == 2.0:
        return w if size <= radius else w * (radius / size)
    if isinstance(w, LowRank):
        u, s, v = w.decomposed()
        found = Spectrum(u, s, v, True)
    else:
        most = LowRank(w.shape, ()).capacity // 2  # an iterate and the last one are in memory
        found = spectrum(w, lambda s: project(s, p, radius), _near(w), steps=STEPS, most=most)
    if found.whole and lp_norm(found.values, p) <= radius:
        return w if isinstance(w, LowRank) else _factors(found, _counted(found, w))
    return _factors(found, project(_counted(found, w), p, radius))


def _near(w: Structured) -> Array | None:
    """Where a search for leading triples begins: after a gradient step the iterate's factors are most of the answer.

    Nowhere where a side is small, for then the whole spectrum is taken.
    """
    if w.low is None or min(w.shape) <= EVERY_SIDE:
        return None
    return w.low.decomposed()[2]


def norm(w: Structured, p: float) -> float:
    """The Schatten norm, exact for factors; for others never too small."""
    if isinstance(w, LowRank):
        return lp_norm(w.singular_values(), p) if w.terms else 0.0
    size = w.size()
    return size if p == 2.0 or size == 0.0 else support(w, conjugate(p), 1.0)


def _counted(found: Spectrum, g: Structured) -> Array:
    """The values with those at the level of rounding taken as zero: their vectors mean nothing."""
    values = found.values
    level = max(g.shape) * float(np.finfo(np.float64).eps)
    if found.whole and np.prod(g.shape) > DENSE_ENTRIES:
        level = 1e-7  # from a Gram matrix, which squares the condition
    return np.where(values > level * values.max(initial=0.0), values, 0.0)


def _factors(found: Spectrum, values: Array) -> LowRank:
    kept = values != 0.0
    return LowRank.of(found.left[:, kept] * values[kept], found.right[:, kept])


def _size_above(g: Structured) -> float:
    """An upper bound on the Euclidean norm, never zero unless all components are."""
    return g.size() + entry_error(g, 2.0)


def _check_finite(call: str, g: Structured) -> None:
    if not g.finite():
        raise ValueError(
            f"`{call}` needs finite entries, got NaN or infinity; the function or the step that made it has overflowed."
        )
