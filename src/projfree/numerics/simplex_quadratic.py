r"""A quadratic over the simplex of a few weights, by an active-set method that ends on the right face exactly.

The method holds the minimiser over the hull of some corners, takes in those that the gradient asks for, and drops those
whose weight falls to zero; the value decreases with every step, so that no face comes twice (Wolfe, 1976, Finding the
nearest point in a polytope).
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
        Symmetric, without negative eigenvalues.
    slope : array of shape (m,)
        The gradient g at the start.
    start : array of shape (m,)
        Weights s without negative entries that add up to one.

    Returns
    -------
    ndarray of shape (m,)
        The weights; those that are not in use are zero exactly.
    """
    # Neither a common number in the slopes nor a common scale of the function changes the answer.
    slope = slope - slope.mean()
    scale = max(float(np.abs(slope).max(initial=0.0)), float(np.abs(H).max(initial=0.0)))
    if not 0.0 < scale < math.inf:
        return start.copy()
    H, slope = H / scale, slope / scale
    sizes, steepest = np.abs(H), float(np.abs(slope).max())
    best, least, idle = start, math.inf, 0
    weights, on = start, np.flatnonzero(start > 0.0)
    for _ in range(4 * len(start) + 50):
        # Of the terms of the gradient; a steep corner that hardly weighs has a small one.
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
        # Take in the corners that would lower the value most.
        found = np.flatnonzero(excess >= 0.5 * worst)
        found = found[np.argsort(-excess[found], kind="stable")][: 1 + len(on) // 2]
        on = np.sort(np.concatenate((on, found)))
    return best.copy()


def _descend(H: Array, slope: Array, start: Array, weights: Array, on: Array, noise: float) -> tuple[Array, Array]:
    """The minimiser over the hull of the corners ``on``, and those of them that it uses."""
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
