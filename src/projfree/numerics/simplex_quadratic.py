r"""Minimisation of a quadratic over a simplex of few dimensions, by an active-set method.

The method minimises over the convex hull of the active vertices, adds vertices with a smaller partial derivative, and
removes those whose weight is zero. The value decreases in every step, so that no face is visited twice (Wolfe, 1976,
Finding the nearest point in a polytope).
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.linear_systems import IDLE, newton_step

_EPS = float(np.finfo(np.float64).eps)


def minimise_on_simplex(H: Array, slope: Array, start: Array) -> Array:
    r"""Minimise :math:`g^T\delta + \tfrac12\delta^T H\delta` over weights :math:`s + \delta` of the simplex.

    Parameters
    ----------
    H : array of shape (m, m)
        Symmetric positive semidefinite matrix.
    slope : array of shape (m,)
        Gradient g at s.
    start : array of shape (m,)
        Initial weights s, nonnegative with sum one.

    Returns
    -------
    ndarray of shape (m,)
        Optimal weights; those of inactive vertices are exactly zero.
    """
    # A constant added to the slope and a factor of the function do not change the minimiser.
    slope = slope - slope.mean()
    scale = max(float(np.abs(slope).max(initial=0.0)), float(np.abs(H).max(initial=0.0)))
    if not 0.0 < scale < math.inf:
        return start.copy()
    H, slope = H / scale, slope / scale
    sizes, steepest = np.abs(H), float(np.abs(slope).max())
    best, least, idle = start, math.inf, 0
    weights, on = start, np.flatnonzero(start > 0.0)
    for _ in range(4 * len(start) + 50):
        # Rounding error of the gradient; changes of small weights contribute little.
        noise = 4 * _EPS * (steepest + float((sizes @ np.abs(weights - start)).max()))
        weights, on = _descend(H, slope, start, weights, on, noise)
        g = slope + H @ (weights - start)
        mean = float(g @ weights)
        gap = mean - float(g.min())
        best, idle = (weights, 0) if gap < least else (best, idle + 1)
        least = min(gap, least)
        excess = mean - g
        excess[on] = -math.inf
        worst = float(excess.max())
        if least <= noise or idle >= IDLE or worst <= noise or expired():
            break
        # Add the vertices with the smallest partial derivatives.
        found = np.flatnonzero(excess >= 0.5 * worst)
        found = found[np.argsort(-excess[found], kind="stable")][: 1 + len(on) // 2]
        on = np.sort(np.concatenate((on, found)))
    return best.copy()


def _descend(H: Array, slope: Array, start: Array, weights: Array, on: Array, noise: float) -> tuple[Array, Array]:
    """Return the weights of the minimiser over the convex hull of the vertices ``on``, and its active vertices."""
    for _ in range(len(on) + 1):
        w = weights[on]
        g = (slope + H @ (weights - start))[on]
        step, whole = newton_step(H[np.ix_(on, on)], g, noise, level=True)
        falling = step < 0.0
        length = 1.0 if whole else math.inf
        if falling.any():
            length = min(length, float(np.min(-w[falling] / step[falling])))
        if not math.isfinite(length):
            break
        hit = falling & (-w >= step * length * (1.0 + 4 * _EPS))
        w = np.where(hit, 0.0, np.maximum(w + length * step, 0.0))
        weights = np.zeros_like(weights)
        weights[on] = w / w.sum()
        on = on[~hit]
        if not hit.any() or expired():
            break
    return weights, on
