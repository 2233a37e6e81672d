"""Exact minimisers of one quadratic over l_p balls of many radii, from one decomposition."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_norm import conjugate, lp_norm
from projfree.numerics.lp_quadratic import minimise_quadratic
from projfree.numerics.secular import FEW, secular_root

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class QuadraticPath:
    """Minimisers for increasing radii.

    Attributes
    ----------
    w : ndarray of shape (m, d) or (m, d, k)
        The points, each of norm at most its radius.
    multipliers : ndarray of shape (m,)
        The dual norms of the gradients there.
    gaps : ndarray of shape (m,)
        The Frank-Wolfe gaps: no point of a ball is lower than its minimiser by more.
    """

    w: Array
    multipliers: Array
    gaps: Array


def minimise_path(H: Array, b: Array, p: float, radii: Array, least: float = -math.inf) -> QuadraticPath:
    r"""Minimise :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over :math:`\|w\|_p \le r` for many r.

    Parameters
    ----------
    H : array of shape (d, d)
        Symmetric and positive semidefinite up to rounding.
    b : array of shape (d,) or (d, k)
        H acts on columns, the norm is that of all entries.
    p : float
        In ``[1, inf]``.
    radii : array of shape (m,)
        Positive, in increasing order.
    least : float
        What the quadratic is nowhere below, if that is known: no gap is larger than the distance to it.

    Notes
    -----
    ``p = 2`` takes one spectral decomposition, whatever the number of radii; other exponents begin each radius at the
    answer of the last. Points whose gap is more than rounding are solved for again on their own. Where least squares
    meet all targets, a gradient that is nothing but rounding times a large radius proves little, and ``least`` proves
    that they are minimal.
    """
    columns = b.reshape(len(b), -1)
    found = np.zeros((len(radii), *columns.shape))
    if p == 2.0:
        found = _round(*np.linalg.eigh(H), columns, radii)
    multipliers, gaps, floors = _checked(H, columns, p, radii, found, least)
    last = None
    for k in np.flatnonzero(~(gaps <= FEW * floors)):
        near = found[k] if found[k].any() else last
        again = minimise_quadratic(H, columns, p, float(radii[k]), near)
        found[k] = last = again.w
        multipliers[k], gaps[k] = again.multiplier, again.gap
    return QuadraticPath(found.reshape(len(radii), *b.shape), multipliers, np.maximum(gaps, 0.0))


def times(H: Array, w: Array) -> Array:
    """``H`` times each of many points of shape (m, d) or (m, d, k), in one product of matrices."""
    return np.moveaxis(np.tensordot(H, w, axes=(1, 1)), 0, 1)


def _round(h: Array, V: Array, b: Array, radii: Array) -> Array:
    """The minimisers over Euclidean balls, from the spectrum."""
    beta, dust = V.T @ b, 4.0 * len(h) * _EPS * float(np.abs(h).max(initial=0.0))
    sizes = np.sqrt(np.square(beta).sum(axis=1))
    # Directions without curvature: rounding of b there is none of its slope, and a real one is left to the check.
    null = h <= dust
    h, sizes, beta = np.where(null, np.inf, h), np.where(null, 0.0, sizes), np.where(null[:, None], 0.0, beta)
    penalties = np.array([secular_root(h, sizes / r) for r in radii])
    inner = beta[:, None, :] / (h[:, None] + penalties)[:, :, None]
    return np.moveaxis(np.tensordot(V, inner, axes=(1, 0)), 1, 0)


def _checked(H: Array, b: Array, p: float, radii: Array, found: Array, least: float) -> tuple[Array, Array, Array]:
    """Pull the points into their balls; multipliers, gaps, and the rounding of these."""
    q = conjugate(p)
    norms = np.array([lp_norm(w, p) for w in found])
    found *= np.minimum(1.0, radii / np.maximum(norms, radii))[:, None, None]
    slopes = times(H, found) - b
    multipliers = np.array([lp_norm(g, q) for g in slopes])
    along = np.einsum("mdk,mdk->m", slopes, found)
    gaps = along + radii * multipliers
    sums = times(np.abs(H), np.abs(found)) + np.abs(b)
    floors = _EPS * radii * np.array([lp_norm(s, q) for s in sums])
    if least > -math.inf:
        above = 0.5 * (along - np.einsum("dk,mdk->m", b, found)) - least
        rounding = _EPS * (np.einsum("mdk,mdk->m", sums, np.abs(found)) + abs(least))
        gaps, floors = np.minimum(gaps, above + rounding), np.maximum(floors, rounding)
    return multipliers, gaps, floors
