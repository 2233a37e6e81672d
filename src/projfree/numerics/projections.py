r"""Euclidean projections onto (weighted) l_p balls, mixed-norm balls and the simplex, for every p in [1, inf].

For :math:`1 < p < \infty` the projection :math:`x = r y / d` of :math:`a \ge 0` onto :math:`\{x : \|d x\|_p \le r\}`
solves, for every entry and with the multiplier :math:`\lambda` for which :math:`\|y\|_p = 1`,

.. math:: (\kappa/d)\, y + \lambda d\, y^{p-1} = b, \qquad b = a/m,\ \kappa = r/m,\ m = \max_j a_j.

Powers such as :math:`y^{0.001}` are nearly singular at 0, so that `solve_two_powers` solves for the logarithm of ``y``.
The division by ``m`` scales the relevant logarithms to order one, for any scale of ``a`` and ``r``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.lp_norm import conjugate, lp_norm, row_norms
from projfree.numerics.root_finding import find_roots

_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


def project(w: Array, p: float, radius: float, weights: Array | None = None) -> Array:
    r"""Project the entries of ``w`` as one vector; see `project_rows`."""
    d = None if weights is None else np.broadcast_to(weights, w.shape).reshape(1, -1)
    return project_rows(w.reshape(1, -1), p, radius, d).reshape(w.shape)


def project_rows(w: Array, p: float, radius: float | Array, weights: Array | None = None) -> Array:
    r"""Project every row of ``w`` onto :math:`\{x : \|d x\|_p \le r\}` (:math:`d = 1` by default).

    The method is soft thresholding for ``p = 1``, rescaling for ``p = 2``, clipping for ``p = inf``, and Newton's
    method on logarithms otherwise. Rows in the ball are not changed; a radius of 0 gives 0. The result satisfies
    :math:`\|d x\|_p \le r` up to rounding, because the last step is a division by the norm.
    """
    radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), w.shape[:1])
    d = None if weights is None else np.broadcast_to(weights, w.shape)
    norms = row_norms(w if d is None else w * d, p)
    outside = (norms > radii) & (radii > 0.0)
    out = np.where(radii[:, None] > 0.0, w, 0.0)
    if outside.any():
        part = None if d is None else d[outside]
        out[outside] = _onto_sphere(w[outside], norms[outside], p, radii[outside], part)
    return out


def _onto_sphere(w: Array, norms: Array, p: float, radius: Array, d: Array | None) -> Array:
    """Project rows that are outside the ball."""
    if p == 2.0 and d is None:
        return np.asarray(w / norms[:, None] * radius[:, None])  # divide first: radius / norm might underflow
    a = np.abs(w)
    if math.isinf(p):
        x = np.minimum(a, radius[:, None] if d is None else radius[:, None] / d)
    else:
        x = simplex_rows(a, radius, d) if p == 1.0 else _sphere_rows(a, p, radius, d)
        norm = row_norms(x if d is None else x * d, p)
        x *= np.where(norm > radius, radius / np.where(norm > 0.0, norm, 1.0), 1.0)[:, None]
    return np.copysign(x, w, out=x)


def simplex_rows(z: Array, radius: float | Array, weights: Array | None = None) -> Array:
    r"""Project the rows of ``z`` onto :math:`\{x \ge 0 : \sum_j d_j x_j = r\}` (:math:`d = 1` by default).

    .. math:: x_j = (z_j - \mu d_j)_+, \qquad \mu = \Bigl(\sum_{j \in A} d_j z_j - r\Bigr) \Big/ \sum_{j \in A} d_j^2,

    where :math:`A` is the set of positive entries of x. If the radius is small relative to ``z``, this difference
    suffers from cancellation, and the equivalent formula :math:`x_j = d_j (\eta - \delta_j)_+` is used, with
    :math:`\delta_j = \max_i (z_i/d_i) - z_j/d_j`, :math:`\eta = (r + \sum_A d_j^2 \delta_j)/\sum_A d_j^2`.
    Each iteration removes the entries with :math:`\delta_j > \eta` from A. This is Newton's method for a piecewise
    linear function; about ten iterations are usual.

    References
    ----------
    Michelot (1986), A finite algorithm for finding the projection of a point onto the canonical simplex of R^n; Condat
    (2016), Fast projection onto the simplex and the l1 ball.
    """
    r = np.broadcast_to(np.asarray(radius, dtype=np.float64).reshape(-1, 1), (len(z), 1))
    # Division by a power of two is exact and avoids overflow and underflow of sums and products.
    size = np.maximum(np.abs(z).max(axis=-1, keepdims=True, initial=0.0), r)
    unit = np.where((size > 0.0) & (size < math.inf), np.ldexp(0.5, np.frexp(size)[1]), 1.0)
    z, r = z / unit, r / unit
    d = np.broadcast_to(np.float64(1.0) if weights is None else weights, z.shape)
    ratio = z if weights is None else z / d
    delta = ratio.max(axis=-1, keepdims=True) - ratio
    square = d * d
    positive = delta <= r / np.where(delta == 0.0, square, 0.0).max(
        axis=-1, keepdims=True
    )  # the largest entry is at most r
    while True:
        mass = np.where(positive, square, 0.0).sum(axis=-1, keepdims=True)
        eta = (r + np.where(positive, square * delta, 0.0).sum(axis=-1, keepdims=True)) / mass
        still = positive & (delta <= eta)
        if not (positive & ~still).any():
            break
        positive = still
    mu = (np.where(positive, d * z, 0.0).sum(axis=-1, keepdims=True) - r) / mass
    out = np.where(eta < np.abs(mu), eta - delta, ratio - mu)  # for each row the formula with less cancellation
    np.maximum(out, 0.0, out=out)
    return np.asarray(out * unit if weights is None else out * d * unit)


def solve_two_powers(
    t: Array, log_b: Array, sigma: Array, tau: Array | float, alpha: float, beta: float
) -> tuple[Array, Array]:
    r"""Solve :math:`\log(e^{\alpha t + \sigma} + e^{\beta t + \tau}) = \log b` for t, elementwise.

    With :math:`\log y = \alpha t` and :math:`(\alpha, \beta)` of `exponents` this is :math:`e^\sigma y + e^\tau y^{p-1}
    = b`. The left side is increasing and convex in t, so that Newton's method, started above the root, decreases
    monotonically to it. Returns t, and the share :math:`1/(1 + e^{\alpha t + \sigma - \beta t - \tau})` of the second
    power before the last step. Cost: an exponential and a logarithm per entry and iteration; 3 to 10 are usual.
    """
    stop, before = math.sqrt(_EPS) / max(alpha, beta), math.inf  # Newton's method squares the error
    for k in count():
        left, right = alpha * t + sigma, beta * t + tau
        # The logarithm of a sum is the larger term's plus log1p of a power that cannot overflow.
        e = np.exp(-np.abs(right - left))
        share = np.where(right > left, 1.0, e) / (1.0 + e)
        step = (np.maximum(left, right) + np.log1p(e) - log_b) / (alpha + (beta - alpha) * share)
        t = t - step
        largest = float(np.abs(step).max(initial=0.0))
        if largest <= stop or (k > 1 and not largest < before):  # or only rounding errors remain
            break
        before = largest
    return t, share


def exponents(p: float) -> tuple[float, float]:
    r"""Return :math:`\alpha, \beta \ge 1` such that :math:`y = e^{\alpha t}` and :math:`y^{p-1} = e^{\beta t}`."""
    return (1.0 / (p - 1.0), 1.0) if p < 2.0 else (1.0, p - 1.0)


def _sphere_rows(a: Array, p: float, radius: Array, weights: Array | None) -> Array:
    r"""Project rows ``a >= 0`` outside the ball onto :math:`\{x : \|d x\|_p = r\}`; ``radius`` has one entry per row.

    The multiplier :math:`\lambda` is the root of :math:`\|y(\lambda)\|_p^{1-p} - 1`, which is nearly linear at both
    ends of its range; for each :math:`\lambda`, `solve_two_powers` computes y.
    """
    alpha, beta = exponents(p)
    d, r = np.ones((1, 1)) if weights is None else weights, radius.reshape(-1, 1)
    m = a.max(axis=-1, keepdims=True)
    b, kappa = a / m, r / m
    log_b, log_d = np.log(np.maximum(b, _TINY)), np.log(d)  # zeros are replaced by _TINY, whose power underflows
    # The difference of logarithms is less accurate, but if kappa underflows its accuracy is irrelevant.
    sigma = (np.log(r) - np.log(m) if np.min(kappa) < _TINY else np.log(kappa)) - log_d
    log_y, log_norm = np.zeros_like(a), np.zeros_like(m)
    warm: tuple[Array, Array, Array] | None = None

    def looks(places: Sequence[float]) -> list[tuple[float, float, float]]:
        nonlocal log_y, log_norm, warm
        c = np.log(places)[:, None]
        tau = c + log_d
        t = np.minimum((log_b - tau) / beta, (log_b - sigma) / alpha)
        if warm is not None:  # extrapolate linearly from the last multiplier; Newton's method converges from both sides
            t = np.minimum(t, warm[1] - warm[2] * (c - warm[0]))
        t, share = solve_two_powers(t, log_b, sigma, tau, alpha, beta)
        speed = share / (alpha + (beta - alpha) * share)
        warm, log_y = (c, t, speed), alpha * t
        top = log_y.max(axis=-1, keepdims=True)
        powers = np.exp(p * (log_y - top))
        total = powers.sum(axis=-1, keepdims=True)
        log_norm = top + np.log(total) / p
        with np.errstate(over="ignore"):
            value = np.expm1((1.0 - p) * log_norm)
        slope = (p - 1.0) * alpha * (powers * speed).sum(axis=-1, keepdims=True) / total * (1.0 + value)
        noise = np.full(len(c), 8 * _EPS * (p - 1.0))
        return list(zip(value[:, 0].tolist(), (slope[:, 0] / places).tolist(), noise.tolist(), strict=True))

    slack = math.sqrt(_EPS)
    # lambda is the dual norm of b - kappa y / d, hence at most that of b; y <= 1 implies a lower bound.
    high = row_norms(b / d, conjugate(p)) * (1.0 + slack)
    low = np.clip(np.max((b - kappa / d) / d, axis=-1) * (1.0 - slack), _TINY, high)
    find_roots(looks, high.tolist(), low.tolist(), high.tolist())
    return np.where(a > 0.0, r * np.exp(log_y - log_norm) / d, 0.0)


def project_groups(w: Array, p: float, q: float, radius: float) -> Array:
    r"""Project a matrix onto the ball of :math:`(\sum_i \|x_i\|_p^q)^{1/q}`, whose groups are the rows.

    With :math:`N_i = \|x_i\|_p` and :math:`\nu_i = \|a_i - x_i\|_{p'}` (:math:`1/p + 1/p' = 1`), row i is the
    projection of ``a_i`` onto the l_p ball of radius ``N_i``, and one multiplier couples the rows:
    :math:`\nu_i = \lambda (N_i / r)^{q-1}`, :math:`\sum_i N_i^q = r^q`. The projection reduces to that of a vector for
    ``p = q``, of each row for ``q = inf``, and of the row norms for ``p = 2``. For ``q = 1`` it takes one search for
    the multiplier; otherwise two nested searches, with about a hundred l_p projections.
    """
    if p == q:
        return project(w, p, radius)
    if math.isinf(q):
        return project_rows(w, p, radius)
    norms = row_norms(w, p)
    if lp_norm(norms, q) <= radius:
        return w.copy()
    if p == 2.0:
        # The directions of the rows do not change. Divide first, because a quotient of norms might underflow.
        return np.asarray(w / np.where(norms > 0.0, norms, 1.0)[:, None] * project(norms, q, radius)[:, None])
    sizes = _soft_sizes(w, p, radius) if q == 1.0 else _sizes(w, p, q, radius)
    return project_rows(w, p, sizes * (radius / lp_norm(sizes, q)))


def _soft_sizes(w: Array, p: float, radius: float) -> Array:
    r"""Row norms of the projection for ``q = 1``: all :math:`\nu_i = \lambda`, and Moreau's identity gives ``x_i``."""
    dual = conjugate(p)

    def sizes(multiplier: float) -> Array:
        return row_norms(w - project_rows(w, dual, multiplier), p)

    high = np.atleast_1d(row_norms(w, dual).max())
    root = float(decreasing_roots(lambda c: np.atleast_1d(sizes(c[0]).sum() - radius), np.zeros(1), high)[0])
    # For a tiny radius the rounding of the multiplier matters: interpolate the norms between adjacent multipliers.
    large, small = sizes(root * (1.0 - 4 * _EPS)), sizes(root * (1.0 + 4 * _EPS))
    gap = float(large.sum() - small.sum())
    share = (radius - float(small.sum())) / gap if gap > 0.0 else 0.0
    return small + min(max(share, 0.0), 1.0) * (large - small)


def _sizes(w: Array, p: float, q: float, radius: float) -> Array:
    r"""Row norms for ``1 < q < inf``: search for :math:`\lambda`; an inner search solves one equation per row."""
    dual = conjugate(p)
    # The unknown of a row is s with N = r s^power, so that both sides of the equation are smooth in s.
    power = max(1.0, 1.0 / (q - 1.0))
    # At the solution no row norm exceeds the radius; this upper bound avoids overflow of powers.
    longest = (np.minimum(row_norms(w, p) / radius, 1.0)) ** (1.0 / power)

    def sizes(multiplier: float) -> Array:
        def excess(s: Array) -> Array:
            distance = row_norms(w - project_rows(w, p, radius * s**power), dual)
            return np.asarray(distance - multiplier * s ** (power * (q - 1.0)))

        return np.asarray(radius * decreasing_roots(excess, np.zeros_like(longest), longest) ** power)

    high = np.atleast_1d(lp_norm(row_norms(w, dual), conjugate(q)))
    return sizes(decreasing_roots(lambda c: np.atleast_1d(lp_norm(sizes(c[0]), q) - radius), np.zeros(1), high)[0])


def decreasing_roots(fun: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the root in ``[low, high]`` of each of several decreasing functions, without derivatives.

    ``fun`` maps the vector of arguments to the vector of values. At the deadline the last arguments are returned.
    """

    def looks(places: Sequence[float]) -> list[tuple[float, float, float]]:
        noise = math.inf if expired() else 0.0
        return [(value, 0.0, noise) for value in (-fun(np.array(places))).tolist()]

    return np.array(find_roots(looks, (0.5 * (low + high)).tolist(), low.tolist(), high.tolist()))
