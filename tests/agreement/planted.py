"""Least squares whose minimum over a set is a known rational number, by planting its optimality conditions.

Given a maximiser W of <G, W> over C and a residual R with A^T S R = G, the targets Y = A W + R make W optimal: the
gradient there is a negative multiple of G. With A = [B; I] such a residual exists whatever B is, and small whole
numbers (times powers of two) are exact in floating point. An intercept needs S R to sum to zero: one more row of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from agreement.corners import Corner
from agreement.exact import Array

from projfree import (
    Box,
    ConstraintSet,
    GroupBall,
    Huber,
    LpBall,
    Objective,
    QuadraticForm,
    SchattenBall,
    Simplex,
    Squared,
    Weighted,
    as_data,
)
from projfree.objectives import SmoothFunction
from projfree.sets import NormBall

#: Powers of two change no digit: a design of 2^-300 with coefficients of 2^300 is the same problem.
DESIGNS = {"small": 2.0**-300, "minute": 2.0**-560, "large": 2.0**300}
#: Targets, coefficients and radius together; squares of the last are below the smallest normal number.
UNITS = {"faint": 2.0**-400, "loud": 2.0**400, "vanishing": 2.0**-530}
KINDS = ("squares", "weighted", "intercept", "huber", "form", "inside", "zero", *DESIGNS, *UNITS)


@dataclass(frozen=True, eq=False)
class Plant:
    """A problem with its exact minimum and a minimiser."""

    f: SmoothFunction
    ball: ConstraintSet
    least: Fraction
    w: Array


def plant(corner: Corner, kind: str, seed: int) -> Plant:
    """A problem of the given kind whose minimiser over ``corner.ball`` is ``corner.W``."""
    rng = np.random.default_rng(seed)
    d, outputs = len(corner.G), corner.G.shape[1:]
    B = rng.integers(-3, 4, size=(int(rng.integers(2, 6)), d))
    A = np.vstack([B, np.eye(d, dtype=int)]).astype(np.float64)
    G = 0.0 * corner.G if kind in ("inside", "zero") else corner.G.astype(np.float64)
    s = 2.0 ** rng.integers(-3, 4, size=len(A)) if kind == "weighted" else np.ones(len(A))
    R = np.zeros((len(A), *outputs)) if kind == "zero" else rng.integers(-4, 5, size=(len(A), *outputs)) + 0.0
    # Beyond delta only delta counts; it is large enough for all rows but the outliers.
    delta = float(2 ** int(np.ceil(np.log2(49 + np.abs(G).max()))))
    if kind == "huber":  # two outliers that pull with equal force
        B[:2] = A[:2] = B[0]
        R[0], R[1] = 3 * delta + 1, -3 * delta - 2
    seen = np.clip(R, -delta, delta)[: len(B)]
    R[len(B) :] = _times(1.0 / s[len(B) :], G - B.T @ _times(s[: len(B)], seen))
    return _problem(kind, A, corner.W.astype(np.float64), R, s, delta, corner.ball)


def _problem(kind: str, A: Array, W: Array, R: Array, s: Array, delta: float, ball: ConstraintSet) -> Plant:
    if kind == "intercept":
        A, R = np.vstack([A, np.zeros(A.shape[1])]), np.concatenate([R, -R.sum(axis=0, keepdims=True)])
        return Plant(_mean(A, A @ W + R + 2.0**20, None, True), ball, mean_square(R), W)
    if kind in DESIGNS:
        A, W, ball = A * DESIGNS[kind], W / DESIGNS[kind], resized(ball, 1.0 / DESIGNS[kind])
    if kind in UNITS:
        R, W, ball = R * UNITS[kind], W * UNITS[kind], resized(ball, UNITS[kind])
    Y = A @ W + R
    if kind == "form":
        return Plant(QuadraticForm(A.T @ A, A.T @ Y, float(np.sum(Y * Y)) / 2), ball, mean_square(R) * len(R) / 2, W)
    if kind == "huber":
        return Plant(Objective(Huber(delta), as_data(A, Y)), ball, _mean_huber(R, delta), W)
    return Plant(_mean(A, Y, s if kind == "weighted" else None, False), ball, mean_square(R, s), W)


def resized(ball: ConstraintSet, scale: float) -> ConstraintSet:
    """The set times a power of two."""
    if isinstance(ball, Box):
        return Box(np.multiply(ball.lower, scale), np.multiply(ball.upper, scale))
    if isinstance(ball, Weighted):
        inner = resized(ball.ball, scale)
        assert isinstance(inner, NormBall)
        return Weighted(inner, ball.weights)
    assert isinstance(ball, Simplex | LpBall | GroupBall | SchattenBall)
    return replace(ball, radius=ball.radius * scale)


def _mean(A: Array, Y: Array, s: Array | None, intercept: bool) -> Objective:
    return Objective(Squared(), as_data(A, Y, s), fit_intercept=intercept)


def _times(s: Array, R: Array) -> Array:
    """Each row times its weight."""
    return np.asarray((R.T * s).T)


def mean_square(R: Array, s: Array | None = None) -> Fraction:
    """The weighted mean of the squared norms of the rows."""
    weights = [Fraction(x) for x in (np.ones(len(R)) if s is None else s).tolist()]
    squares = [sum(Fraction(r) ** 2 for r in row) for row in R.reshape(len(R), -1).tolist()]
    return sum((w * q for w, q in zip(weights, squares, strict=True)), Fraction(0)) / sum(weights)


def _mean_huber(R: Array, delta: float) -> Fraction:
    sizes = [abs(Fraction(r)) for r in np.ravel(R).tolist()]
    caps = [min(r, Fraction(delta)) for r in sizes]
    return sum((c * (2 * r - c) for r, c in zip(sizes, caps, strict=True)), Fraction(0)) / len(R)
