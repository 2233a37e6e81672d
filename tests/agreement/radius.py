"""Sets whose size is chosen against the norm of an unconstrained minimiser."""

from __future__ import annotations

import math

import numpy as np
from agreement.exact import Array
from scipy.optimize import minimize as scipy_minimize

from projfree import Box, ConstraintSet, GroupBall, LpBall, SchattenBall, Simplex, Weighted
from projfree.objectives import SmoothFunction
from projfree.sets import NormBall

LP = (1.0, 1.05, 1.2, 1.5, 2.0, 3.0, math.inf)
GROUP = ((2.0, 1.0), (1.0, 2.0), (math.inf, 1.0), (1.5, 1.2), (1.2, 1.5), (2.0, 2.0), (2.0, math.inf), (3.0, 1.5))
SCHATTEN = (1.0, 1.5, 2.0, 3.0, math.inf)
FRACTIONS = (0.03, 0.3, 0.8, 0.97, 1.0, 1.0, 1.03, 1.5, 5.0)


def draw_set(kind: str, f: SmoothFunction, rng: np.random.Generator) -> ConstraintSet:
    """A set of the given kind, with a size below, at or above that of an unconstrained minimiser of f."""
    w = unconstrained(f)
    size = float(rng.choice(FRACTIONS))
    if kind == "simplex":
        return Simplex(_positive(size * float(np.maximum(w, 0.0).sum())))
    if kind == "box":
        return _box(w, size, rng)
    ball = _ball(kind, f.shape, rng)
    return _resized(ball, _positive(size * ball.norm(w)))


def unconstrained(f: SmoothFunction) -> Array:
    """A minimiser without constraint, or a far point where there is none."""

    def fun(w: Array) -> tuple[float, Array]:
        x = f.point(w.reshape(f.shape))
        m = f.evaluate(x).slope
        return f(x), np.ravel(m.gradient)

    found = scipy_minimize(fun, np.zeros(math.prod(f.shape)), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return np.asarray(found.x.reshape(f.shape))


def _positive(radius: float) -> float:
    return float(np.clip(radius, 1e-6, 1e6)) if radius > 0.0 else 1.0


def _ball(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> NormBall:
    if kind == "lp":
        return LpBall(float(rng.choice(LP)), 1.0)
    if kind == "group":
        return GroupBall(*(float(e) for e in GROUP[rng.integers(len(GROUP))]), 1.0)
    if kind == "schatten":
        return SchattenBall(float(rng.choice(SCHATTEN)), 1.0)
    inside = "group" if len(shape) == 2 and rng.uniform() < 0.3 else "lp"
    return Weighted(_ball(inside, shape, rng), 10.0 ** rng.uniform(-1, 1, size=shape))


def _resized(ball: NormBall, radius: float) -> NormBall:
    if isinstance(ball, Weighted):
        return Weighted(_resized(ball.ball, radius), ball.weights)
    if isinstance(ball, GroupBall):
        return GroupBall(ball.p, ball.q, radius)
    assert isinstance(ball, LpBall | SchattenBall)
    return type(ball)(ball.p, radius)


def _box(w: Array, size: float, rng: np.random.Generator) -> Box:
    half = _positive(size * float(np.abs(w).max()))
    if rng.uniform() < 0.5:
        return Box(-half, half)
    middle = rng.uniform(-1, 1, size=w.shape) * half
    return Box(middle - half * rng.uniform(0, 1, size=w.shape), middle + half * rng.uniform(0, 1, size=w.shape))
