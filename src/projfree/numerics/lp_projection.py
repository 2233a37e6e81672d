"""Euclidean projection onto l_p balls for every p in [1, inf], plain or weighted, on all rows of a matrix at once."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_newton import sphere_rows
from projfree.numerics.lp_norm import lp_norms, row_norms
from projfree.numerics.threshold import simplex_rows


def project_rows(w: Array, p: float, radius: float | Array, weights: Array | None = None) -> Array:
    r"""The projection of every row of ``w`` onto :math:`\{x : \|d x\|_p \le r\}` (:math:`d = 1` by default).

    A threshold for ``p = 1``, a rescaling for ``p = 2``, a clip for ``p = inf``, Newton's method on logarithms
    otherwise. Rows inside stay as they are, a radius of 0 gives 0; every result has :math:`\|d x\|_p \le r` up to
    rounding, since the last step is a division by the norm.
    """
    radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), w.shape[:1])
    if math.isinf(p) and weights is None:
        return np.asarray(np.clip(w, -radii[:, None], radii[:, None]))
    d = None if weights is None else np.broadcast_to(weights, w.shape)
    norms = _norms(np.abs(w), p, d) if p == 1.0 else lp_norms(w if d is None else w * d, p)
    outside = (norms > radii) & (radii > 0.0)
    if outside.all():
        return _onto_sphere(w, norms, p, radii, d)
    out = np.where(radii[:, None] > 0.0, w, 0.0)
    if outside.any():
        part = None if d is None else d[outside]
        out[outside] = _onto_sphere(w[outside], norms[outside], p, radii[outside], part)
    return out


def project(w: Array, p: float, radius: float, weights: Array | None = None) -> Array:
    r"""The projection of all entries of ``w`` together; see `project_rows`."""
    d = None if weights is None else np.broadcast_to(weights, w.shape).reshape(1, -1)
    return project_rows(w.reshape(1, -1), p, radius, d).reshape(w.shape)


def _onto_sphere(w: Array, norms: Array, p: float, radius: Array, d: Array | None) -> Array:
    if p == 2.0 and d is None:
        # Unless the quotient underflows or loses digits.
        scale = radius / norms
        return np.asarray(w * scale[:, None] if np.all(scale > 1e-290) else _unit(w) * radius[:, None])
    x = _nonnegative(np.abs(w), p, radius, d)
    return np.copysign(x, w, out=x)


def _nonnegative(a: Array, p: float, radius: Array, d: Array | None) -> Array:
    if math.isinf(p):
        return np.minimum(a, radius[:, None] if d is None else radius[:, None] / d)
    x = simplex_rows(a, radius, d) if p == 1.0 else sphere_rows(a, p, radius, d)
    norm = _norms(x, p, d)
    if np.any(norm > radius):
        x *= np.where(norm > radius, radius / np.where(norm > 0.0, norm, 1.0), 1.0)[:, None]
    return x


def _norms(a: Array, p: float, d: Array | None) -> Array:
    """The norms of rows without negative entries."""
    a = a if d is None else a * d
    if p != 1.0:
        return row_norms(a, p)
    with np.errstate(over="ignore"):
        return np.asarray(np.add.reduce(a, axis=-1))


def _unit(w: Array) -> Array:
    w = w / np.abs(w).max(axis=-1, keepdims=True)
    return np.asarray(w / row_norms(w, 2.0)[:, None])
