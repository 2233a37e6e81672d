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
from projfree.numerics.flat_step import flat_step, regular_solve

_EPS = float(np.finfo(np.float64).eps)
#: Rounds without progress after which only rounding is left.
_IDLE = 8


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
    face = _Face(H / scale, slope / scale, start)
    best, least, idle = face.weights, math.inf, 0
    for _ in range(4 * len(start) + 50):
        face.descend()
        gap = face.gap()
        best, idle = (face.weights, 0) if gap < least else (best, idle + 1)
        least = min(gap, least)
        if least <= face.noise or idle >= _IDLE or not face.admit() or expired():
            break
    return best


class _Face:
    """The weights, the gradient at them, and the corners that are in use."""

    def __init__(self, H: Array, slope: Array, start: Array) -> None:
        self.H, self.slope, self.start = H, slope, start
        self.weights, self.on = start.copy(), np.flatnonzero(start > 0.0)
        self._sizes, self._steepest = np.abs(H), float(np.abs(slope).max())

    @property
    def noise(self) -> float:
        """The rounding of the terms of the gradient; a steep corner that hardly weighs has a small one."""
        return 4.0 * _EPS * (self._steepest + float((self._sizes @ np.abs(self.weights - self.start)).max()))

    def gradient(self) -> Array:
        return np.asarray(self.slope + self.H @ (self.weights - self.start))

    def gap(self) -> float:
        """The Frank-Wolfe gap: how far the value can be from the least."""
        g = self.gradient()
        return float(g @ self.weights - g.min())

    def descend(self) -> None:
        """Minimise over the hull of the corners in use, dropping those in the way."""
        for _ in range(len(self.on) + 1):
            on, w = self.on, self.weights[self.on]
            ways, whole = face_step(self.H[np.ix_(on, on)], self.gradient()[on], True, self.noise)
            falling = ways < 0.0
            length = 1.0 if whole else math.inf
            if falling.any():
                length = min(length, float(np.min(-w[falling] / ways[falling])))
            if not math.isfinite(length):
                return
            hit = falling & (-w >= ways * length * (1.0 + 4.0 * _EPS))
            w = np.where(hit, 0.0, np.maximum(w + length * ways, 0.0))
            self.weights = np.zeros_like(self.weights)
            self.weights[on] = w / w.sum()
            self.on = on[~hit]
            if not hit.any() or expired():
                return

    def admit(self) -> bool:
        """Take in the corners that would lower the value; False where there is none."""
        g = self.gradient()
        excess = float(g @ self.weights) - g
        excess[self.on] = -math.inf
        worst = float(excess.max())
        if worst <= self.noise:
            return False
        found = np.flatnonzero(excess >= 0.5 * worst)
        found = found[np.argsort(-excess[found], kind="stable")][: 1 + len(self.on) // 2]
        self.on = np.sort(np.concatenate((self.on, found)))
        return True


def face_step(H: Array, slope: Array, level: bool, noise: float) -> tuple[Array, bool]:
    r"""`flat_step`, with :math:`\sum\delta = 0` if ``level``."""
    if not level:
        return flat_step(H, slope, noise)
    slope = slope - slope.mean()  # changes nothing but the rounding
    sides = np.ones((len(slope), 2))
    sides[:, 0] = -slope
    solved = regular_solve(H, sides)
    if solved is not None:
        free, along = solved.T
        return free - np.add.reduce(free) / np.add.reduce(along) * along, True
    centre = np.eye(len(H)) - 1.0 / len(H)
    way, whole = flat_step(centre @ H @ centre, centre @ slope, noise)
    return centre @ way, whole
