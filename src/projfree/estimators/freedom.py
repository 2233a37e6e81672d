r"""Degrees of freedom of a fit, :math:`\mathrm{tr}\,(H + P)^{-1} H`: curvatures H of the loss and P of the norm.

The answer over a ball of a norm also minimises the loss plus a power of the norm, :math:`\kappa \sum_j |w_j|^p / p` for
an l_p norm; P is its second derivative. Coordinates where it is infinite, zeros for p below two, do not count.
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.estimators.ridge_models import SHORT, quadrature
from projfree.objectives.hessian_products import HessianProducts
from projfree.sets import ConstraintSet, GroupBall, NormBall, Positive, SchattenBall, WithFree

#: Curvatures of the norm beyond this multiple of the largest of the loss hold their coordinate still.
STIFF = 1e6
#: Entries of a rough answer below this part of the largest count as zero.
NEGLIGIBLE = 1e-3
#: Singular values below this part of the largest are zero.
ZERO = 1e-8
#: Added to the diagonal, relative to the largest curvature of the loss, where neither loss nor norm bends.
SOFT = 1e-9


def freedom(ball: ConstraintSet, w: Array, slope: Array, H: Array) -> float:
    """The degrees of freedom of the answer ``w`` over a ball, given the Hessian of the loss, ``(D, D)`` or shared.

    Parameters
    ----------
    slope : ndarray
        The gradient of the loss at ``w``.
    H : array of shape (D, D) or (d, d)
        The second has one block for all columns of ``w``.
    """
    largest = float(np.diag(H).max(initial=0.0))
    if not largest > 0.0:
        return 0.0
    P = norm_curvature(ball, w, ball.multiplier(slope) or 0.0, 0.99 * STIFF * largest, slope)
    if P.ndim == 1 and len(H) < len(P):
        columns = P.reshape(w.shape[0], -1).T
        if (columns == columns[0]).all():
            return len(columns) * _trace(H, columns[0], largest)
        return float(sum(_trace(H, column, largest) for column in columns))
    if len(H) < w.size:
        H = np.kron(H, np.eye(w.size // len(H)))
    return _trace(H, P, largest)


def _trace(H: Array, P: Array, largest: float) -> float:
    from scipy.linalg import cho_factor, cho_solve

    own = P if P.ndim == 1 else np.diag(P)
    keep = own < STIFF * largest
    A = H[np.ix_(keep, keep)]
    if not len(A):
        return 0.0
    B = A + (np.diag(P[keep]) if P.ndim == 1 else P[np.ix_(keep, keep)])
    B[np.diag_indices(len(B))] += SOFT * largest
    return float(np.trace(cho_solve(cho_factor(B, check_finite=False), A, check_finite=False)))


def norm_curvature(ball: ConstraintSet, w: Array, mu: float, most: float = np.inf, slope: Array | None = None) -> Array:
    """P, as a vector where it is diagonal; curvatures of directions that are no coordinates are at most ``most``.

    ``mu`` is the multiplier, the dual norm of the gradient; ``slope`` the gradient itself, which tells how singular
    vectors of nuclear norms turn.
    """
    if isinstance(ball, WithFree):
        inner, held = ball.ball, np.zeros(w.shape, dtype=bool)
        held[np.setdiff1d(np.arange(len(w)), ball.free)] = True
        part = norm_curvature(inner, ball.split(w)[0], mu, most, None if slope is None else ball.split(slope)[0])
        own = part if part.ndim == 1 else np.diag(part)
        out = np.zeros(w.size)
        out[held.ravel()] = own
        return out
    if isinstance(ball, Positive):
        return norm_curvature(ball.ball, w, mu, most, slope)
    lp = ball.as_lp(w.shape)
    if lp is not None:
        return _power(np.abs(w).ravel(), lp.p, mu)
    if isinstance(ball, GroupBall):
        return _groups(ball, w, mu)
    if isinstance(ball, SchattenBall):
        return _spectral(w, ball.p, mu, most, slope)
    assert isinstance(ball, NormBall)
    return np.full(w.size, mu / max(float(np.linalg.norm(w)), 1e-300))


def _power(size: Array, p: float, mu: float) -> Array:
    """Of l_p: the second derivative of ``kappa |w|^p / p``; for p infinite what lies at the top is held still."""
    top = float(size.max(initial=0.0))
    if not top > 0.0:
        return np.full(len(size), np.inf)
    if np.isinf(p):
        return np.where(size >= top * (1.0 - 1e-9), np.inf, 0.0)
    part = size / top
    norm = float((part**p).sum() ** (1.0 / p))
    with np.errstate(divide="ignore"):
        bend = (p - 1.0) * part ** (p - 2.0) if p > 1.0 else np.where(part > 1e-10, 0.0, np.inf)
    bends = np.isfinite(bend)  # a kink holds its coordinate whatever the mu is, zero included
    return np.where(bends, mu * norm ** (1.0 - p) / top * np.where(bends, bend, 0.0), np.inf)


def _groups(ball: GroupBall, w: Array, mu: float) -> Array:
    """Of group norms: blocks of the second derivative of ``kappa sum_g |w_g|_p^q / q``."""
    p, q = ball.p, ball.q
    labels = np.arange(len(w)) if ball.groups is None else np.asarray(ball.groups)
    owner = np.repeat(labels, w.size // len(w))
    flat, out = w.ravel(), np.zeros((w.size, w.size))
    norm = ball.norm(w)
    kappa = mu * norm ** (1.0 - q) if np.isfinite(q) else mu
    for g in np.unique(owner):
        places = np.flatnonzero(owner == g)
        v = flat[places]
        size = float(np.linalg.norm(v, p))
        if not size > 1e-10 * norm:
            out[places, places] = np.inf
            continue
        s = np.sign(v) * (np.abs(v) / size) ** (p - 1.0) if np.isfinite(p) else 1.0 * (np.abs(v) >= size * (1 - 1e-9))
        own = _power(np.abs(v), p, size ** (q - 1.0) if np.isfinite(q) else 1.0)
        block = np.diag(own) + (0.0 if np.isinf(p) or np.isinf(q) else (q - p) * size ** (q - 2.0)) * np.outer(s, s)
        out[np.ix_(places, places)] = kappa * block
    return out


def _spectral(w: Array, p: float, mu: float, most: float, slope: Array | None) -> Array:
    r"""Of Schatten norms: the second derivative of ``kappa sum sigma^p / p``, by divided differences.

    Zero singular values of the nuclear norm stay zero, but not the pairs of their singular vectors: these turn
    together with others against the slope that the subgradient has there, a number between 0 and 1 for each (the
    curvature of the matrices of one rank).
    """
    d, k = w.shape
    U, sigma, Vt = np.linalg.svd(w, full_matrices=True)
    top = max(float(sigma[0]), 1e-300)
    s = np.zeros(max(d, k))
    s[: len(sigma)] = np.maximum(sigma / top, 1e-10)
    power = min(p, 64.0)  # the largest singular value alone, as good as
    norm = float((s[: len(sigma)] ** power).sum() ** (1.0 / power))
    first, second = s ** (power - 1.0), (power - 1.0) * np.where(s > 0.0, s, 1.0) ** (power - 2.0)
    if power < 2.0:  # zero singular values stay so
        none = s <= ZERO
        first, second = np.where(none, 0.0, first), np.where(none, np.inf, second)
        if power == 1.0 and slope is not None and mu > 0.0:
            r = int(np.count_nonzero(sigma > ZERO * top))
            left, turned, right = np.linalg.svd(-U[:, r:].T @ slope @ Vt[r:].T, full_matrices=True)
            U[:, r:], Vt[r:] = U[:, r:] @ left, right @ Vt[r:]
            first[r : r + len(turned)] = np.minimum(turned / mu, 1.0)
    a, b = s[:, None], s[None, :]
    fa, fb = first[:, None], first[None, :]
    near = np.abs(a - b) <= 1e-6 * (a + b)
    even = np.where(near, second[:, None], (fa - fb) / np.where(near, 1.0, a - b))
    odd = np.where(near & np.isinf(even), np.inf, (fa + fb) / np.where(a + b > 0.0, a + b, 1.0))
    scale = mu * norm ** (1.0 - power) / top
    out = np.zeros((d, k, d, k))
    for i in range(d):
        for j in range(k):
            if i < k and j < d and i != j:  # pairs of directions that both have a singular value
                out[i, j, i, j] += 0.5 * (even[i, j] + odd[i, j])
                out[i, j, j, i] += 0.5 * (even[i, j] - odd[i, j]) if np.isfinite(even[i, j]) else 0.0
            elif i == j:
                out[i, j, i, j] = second[i]
            else:
                at = j if i >= k else i
                out[i, j, i, j] = first[at] / s[at] if first[at] > 0.0 else np.inf
    turn = np.kron(U, Vt.T)
    P = np.clip(scale * out.reshape(d * k, d * k), -most, most)
    return np.asarray(turn @ P @ turn.T)


def freedom_of_products(ball: ConstraintSet, w: Array, mu: float, products: HessianProducts, n: float) -> float:
    """The same from products with the Hessian, by quadrature with one vector of signs; at most the number of rows."""
    P = _diagonal(ball, w, mu)
    if (P == 0.0).any():  # the norm does not bend there; what a rough answer has left of others does not count
        used = np.count_nonzero(np.abs(w) > NEGLIGIBLE * np.abs(w).max())
        return min(float(used), n * max(1, w.size // len(w)))
    keep = np.isfinite(P)
    if not keep.any():
        return 0.0
    root = np.zeros(w.size)
    root[keep] = P[keep] ** -0.5

    def product(v: Array) -> Array:
        return np.asarray(root * products.product((root * v).reshape(w.shape)).ravel())

    nodes, weights = quadrature(product, (w.size,), SHORT)
    return float(weights @ (nodes / (nodes + 1.0)))


def _diagonal(ball: ConstraintSet, w: Array, mu: float) -> Array:
    """P without what lies off its diagonal; of a group norm without what lies along the group."""
    if isinstance(ball, GroupBall) and ball.as_lp(w.shape) is None:
        labels = np.arange(len(w)) if ball.groups is None else np.asarray(ball.groups)
        owner = np.unique(np.repeat(labels, w.size // len(w)), return_inverse=True)[1]
        sizes = np.sqrt(np.bincount(owner, weights=w.ravel() ** 2))[owner]
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(sizes > 1e-10 * sizes.max(), mu / np.maximum(sizes, 1e-300), np.inf))
    if isinstance(ball, SchattenBall) and ball.as_lp(w.shape) is None:
        return np.full(w.size, mu / max(float(np.linalg.norm(w)), 1e-300))
    return norm_curvature(ball, w, mu)
