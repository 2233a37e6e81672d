"""Optima to near machine precision, by Newton's method: what true errors and radii are measured against.

Least squares over an l_p ball is solved through its optimality condition H w - b + lam s = 0 with
s = sgn(w) |w|^(p-1). In s the map w = sgn(s) |s|^(1/(p-1)) is smooth, so Newton steps are taken in s where the
penalty dominates and in w elsewhere. Other losses are minimised by such steps on their quadratic models. Nothing here
needs to be trusted: every optimum comes with its Frank-Wolfe gap, which bounds its error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree import LpBall, Objective


@dataclass(frozen=True, eq=False)
class Optimum:
    """A point of a ball and an upper bound on how far its value is from the minimum."""

    w: np.ndarray
    value: float
    gap: float


def penalised(H: np.ndarray, b: np.ndarray, p: float, lam: float, s: np.ndarray) -> np.ndarray:
    """The s of the minimiser of w'Hw/2 - b'w + lam sum |w|^p / p, from a start."""
    e, diagonal = 1.0 / (p - 1.0), np.diag(H)

    def residual(s: np.ndarray) -> np.ndarray:
        return H @ (np.sign(s) * np.abs(s) ** e) - b + lam * s

    F, small = residual(s), 1e-14 * float(np.linalg.norm(b))
    for _ in range(60):
        if np.linalg.norm(F) <= small:
            break
        E = e * np.abs(s) ** (e - 1.0)  # dw / ds
        in_w = diagonal * E > lam
        scale = np.where(in_w, 1.0, E)
        step = np.linalg.solve(H * scale + np.diag(np.where(in_w, lam / np.maximum(E, 1e-300), lam)), -F)
        w = np.sign(s) * np.abs(s) ** e
        for power in range(30):
            t = 0.5**power
            moved = w + t * step
            new = np.where(in_w, np.sign(moved) * np.abs(moved) ** (p - 1.0), s + t * step)
            F_new = residual(new)
            if np.linalg.norm(F_new) < np.linalg.norm(F):
                break
        else:
            return s
        s, F = new, F_new
    return s


def quadratic_over_ball(H: np.ndarray, b: np.ndarray, ball: LpBall) -> np.ndarray:
    """The minimiser of w'Hw/2 - b'w over an l_p ball with 1 < p <= 2 that it lies on the boundary of."""
    p, e = ball.p, 1.0 / (ball.p - 1.0)

    def norm(s: np.ndarray) -> float:
        return ball.norm(np.sign(s) * np.abs(s) ** e)

    # With this multiplier the penalty alone keeps the solution inside; go down by factors until it is outside.
    high = ball.dual_norm(b) / ball.radius ** (p - 1.0)
    s_high = penalised(H, b, p, high, b / high)
    low, s_low = high, s_high
    floor = 1e-12 * np.diag(H).max() * ball.radius ** (2.0 - p)
    while norm(s_low) < ball.radius and low > floor:
        high, s_high = low, s_low
        low = low / 4.0
        s_low = penalised(H, b, p, low, s_low)
    for _ in range(60):  # a secant step on 1/norm against the multiplier, kept well inside the bracket
        a, c = 1.0 / norm(s_low) - 1.0 / ball.radius, 1.0 / norm(s_high) - 1.0 / ball.radius
        if a >= 0.0 or -a <= 1e-11 / ball.radius or high - low <= 1e-15 * high:
            break
        lam = low - a * (high - low) / (c - a)
        lam = min(max(lam, low + 0.01 * (high - low)), high - 0.01 * (high - low))
        s = penalised(H, b, p, lam, s_low)
        if norm(s) >= ball.radius:
            low, s_low = lam, s
        else:
            high, s_high = lam, s
    w = np.sign(s_low) * np.abs(s_low) ** e
    return w * min(1.0, ball.radius / ball.norm(w))


def optimum(f: Objective, ball: LpBall, w: np.ndarray | None = None, tol: float = 1e-10) -> Optimum:
    """The minimiser of a convex objective over an l_p ball, by Newton steps that are halved until f decreases."""
    w = np.zeros(f.shape) if w is None else w * min(1.0, ball.radius / max(ball.norm(w), 1e-300))
    best = None
    for _ in range(30):
        value, g, H = quadratic_model(f, w)
        gap = float(g @ w) + ball.support(g)
        if best is None or gap < best.gap:
            best = Optimum(w, value, gap)
        if gap <= tol * value:
            break
        v = quadratic_over_ball(H, H @ w - g, ball)
        for power in range(20):
            moved = w + 0.5**power * (v - w)
            if f(f.point(moved)) < value:
                break
        else:
            break
        w = moved
    return best


def quadratic_model(f: Objective, w: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, gradient and Hessian at w, the intercept minimised out."""
    found = f.evaluate(f.point(w))
    g, value, b = found.slope.gradient, found.value, found.intercept
    u = f.data.X @ w + (0.0 if b is None else b)
    h = f.loss.second(u, f.data.y) * f.data.weights(slice(None))
    weighted = f.data.X * h[:, None]
    H = f.data.X.T @ weighted
    if b is not None:
        row = weighted.sum(axis=0)
        H -= np.outer(row, row) / h.sum()
    return value, g, H
