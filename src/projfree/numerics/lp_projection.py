"""Euclidean projection onto l_p balls for every p in [1, inf], plain or weighted, on all rows of a matrix at once."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_newton import sphere_rows
from projfree.numerics.lp_norm import row_norms
from projfree.numerics.threshold import simplex_rows


def project_rows(w: Array, p: float, radius: float | Array, weights: Array | None = None) -> Array:
    r"""The projection of every row of ``w`` onto :math:`\{x : \|d x\|_p \le r\}` (:math:`d = 1` by default).

    A threshold found by sorting for ``p = 1``, a rescaling for ``p = 2``, a clip for ``p = inf``, Newton's method on
    logarithms otherwise. Rows inside stay as they are, a radius of 0 gives 0; every result has
    :math:`\|d x\|_p \le r` up to rounding, since the last step is a division by the norm.
    """
    a, radii = np.abs(w), np.broadcast_to(np.asarray(radius, dtype=np.float64), w.shape[:1])
    d = None if weights is None else np.broadcast_to(weights, w.shape)
    outside = (_norms(a, p, d) > radii) & (radii > 0.0)
    out = np.where(radii[:, None] > 0.0, w, 0.0)
    if outside.any():
        part = None if d is None else d[outside]
        x = _onto_sphere(a[outside], p, radii[outside], part)
        out[outside] = np.copysign(x, w[outside])
    return out


def project(w: Array, p: float, radius: float, weights: Array | None = None) -> Array:
    r"""The projection of all entries of ``w`` together; see `project_rows`."""
    d = None if weights is None else np.broadcast_to(weights, w.shape).reshape(1, -1)
    return project_rows(w.reshape(1, -1), p, radius, d).reshape(w.shape)


def _onto_sphere(a: Array, p: float, radius: Array, d: Array | None) -> Array:
    if math.isinf(p):
        return np.minimum(a, radius[:, None] if d is None else radius[:, None] / d)
    if p == 2.0 and d is None:
        return a * (radius / row_norms(a, 2.0))[:, None] if _plain(a, radius) else _unit(a, p) * radius[:, None]
    x = simplex_rows(a, radius, d) if p == 1.0 else sphere_rows(a, p, radius, d)
    norm = _norms(x, p, d)
    return np.asarray(x * np.where(norm > radius, radius / np.where(norm > 0.0, norm, 1.0), 1.0)[:, None])


def _plain(a: Array, radius: Array) -> bool:
    """Whether ``radius / norm`` neither underflows nor loses digits."""
    return bool(np.all(radius / row_norms(a, 2.0) > 1e-290))


def _unit(a: Array, p: float) -> Array:
    a = a / a.max(axis=-1, keepdims=True)
    return a / row_norms(a, p)[:, None]


def _norms(a: Array, p: float, d: Array | None) -> Array:
    return row_norms(a if d is None else a * d, p)
