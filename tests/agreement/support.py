"""Supports and losses written down a second time, in plain NumPy, for what the package says where f is not convex."""

from __future__ import annotations

import numpy as np
from agreement.data import Table
from agreement.exact import Array

from projfree import BiWeight, Box, ConstraintSet, GroupBall, Loss, LpBall, SchattenBall, Simplex, Weighted


def conjugate(p: float) -> float:
    return np.inf if p == 1.0 else 1.0 if np.isinf(p) else p / (p - 1.0)


def support(ball: ConstraintSet, g: Array) -> float:
    """The maximum of <g, w> over the set."""
    if isinstance(ball, Simplex):
        return ball.radius * float(g.max())
    if isinstance(ball, Box):
        return float(np.sum(np.maximum(ball.lower * g, ball.upper * g)))
    if isinstance(ball, Weighted):
        return support(ball.ball, g / ball.weights)
    if isinstance(ball, LpBall):
        return ball.radius * float(np.linalg.norm(g.ravel(), conjugate(ball.p)))
    if isinstance(ball, GroupBall):
        rows = np.linalg.norm(g, conjugate(ball.p), axis=1)
        return ball.radius * float(np.linalg.norm(rows, conjugate(ball.q)))
    assert isinstance(ball, SchattenBall)
    return ball.radius * float(np.linalg.norm(np.linalg.svd(g, compute_uv=False), conjugate(ball.p)))


def value_and_gradient(loss: Loss, t: Table, w: Array, b: Array | float) -> tuple[float, Array, Array]:
    """The weighted mean of a loss that is not convex, its gradient, and its derivative in the intercept."""
    u = (w[t.places] if t.places is not None else t.X.astype(np.float64) @ w) + b
    if isinstance(loss, BiWeight):
        r, c = u - t.y, loss.scale
        values, slopes = r**2 / (c**2 + r**2), 2 * r * c**2 / (c**2 + r**2) ** 2
    else:
        sigma = 1.0 / (1.0 + np.exp(-np.clip(u, -700, 700)))
        r = sigma - (1 + t.y) / 2
        values, slopes = r**2, 2 * r * sigma * (1 - sigma)
    s = np.ones(len(t.y)) if t.weight is None else t.weight
    pull = (slopes.T * (s / s.sum())).T
    return float(np.sum(values.T * s) / s.sum()), _adjoint(t, pull, w.shape), pull.sum(axis=0)


def _adjoint(t: Table, pull: Array, shape: tuple[int, ...]) -> Array:
    if t.places is None:
        return np.asarray(t.X.astype(np.float64).T @ pull)
    out = np.zeros(shape)
    np.add.at(out, t.places, pull)
    return out
