"""The best of a handful of radii around one that suits the Euclidean ball."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from projfree.checks import Array
from projfree.estimators.balls import inside, multiplier
from projfree.estimators.climbing import climb, rise
from projfree.estimators.freedom import freedom, freedom_of_products
from projfree.estimators.left_out import left_out_loss
from projfree.numerics.flat_quadratic import minimise_flat
from projfree.numerics.symmetric import Formed
from projfree.objectives import Objective
from projfree.objectives.base import SmoothFunction
from projfree.run import Result, minimize
from projfree.run.result import one_of_many
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver
from projfree.solvers.direct import minimise_form
from projfree.solvers.model import minimise_model
from projfree.solvers.projected_gradient import AcceleratedProjectedGradient
from projfree.steps import BacktrackingGradient

if TYPE_CHECKING:
    from projfree.estimators.auto import Choice, Ridge

#: Radii are powers of this number times the one to begin with, so many of them below and above it.
RATIO, DOWN, UP = 1.6, 8, 3
#: With fewer rows for each parameter than this, radii are tried from the smallest up, until so many are no better.
FEW_ROWS, PATIENCE = 1.5, 4
#: Models are solved to this part of the gap at the start.
SHARE = 1e-6
#: Runs end at this relative gap.
TOL, ITERATIONS = 3e-3, 200


def around(f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, radius: float, n: float) -> Choice:
    """The radius with the smallest loss of rows left out, and its answer."""
    from projfree.estimators.auto import PLENTY, Choice

    if n >= PLENTY * math.prod(f.shape):
        return Choice(radius, ridge.w)
    fits: dict[int, Array] = {}

    def score(k: int) -> float:
        here = ball.resized(radius * RATIO ** (k - DOWN))
        near = min(fits, key=lambda j: abs(j - k)) if fits else None
        start = inside(here, ridge.w if near is None else fits[near], f.shape)
        fits[k], value = _fitted(f, here, ridge, np.zeros(f.shape) if start is None else start, n)
        return value

    if n < FEW_ROWS * math.prod(f.shape):  # what fits the rows closely says little, so that one comes from below
        best = rise(score, DOWN + UP + 1, PATIENCE)
    else:
        best = climb(score, DOWN, DOWN + UP + 1, (1,))
    return Choice(radius * RATIO ** (best - DOWN), fits[best])


def _fitted(f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, start: Array, n: float) -> tuple[Array, float]:
    """The answer over a ball, on the model where there is one, and the loss of rows left out."""
    H, b, form = ridge.H, ridge.b, ridge.form
    if H is None or b is None or not (ball.projects_quickly or form is not None):
        return _from_rows(f, ball, start, n)
    w = _minimised(f, ball, H, b, start) if ball.projects_quickly else _run(form or f, ball, start).w
    slope = (H @ w.reshape(len(H), -1)).reshape(w.shape) - b
    used = freedom(ball, w, multiplier(ball, slope) or 0.0, H)
    if form is None:
        assert isinstance(f, Objective)
        return w, left_out_loss(f, f.point(w), used, n)
    left = 1.0 - (used + ridge.intercepts) / (n * math.prod(f.shape[1:]))
    return w, max(form.value(form.point(w)), 0.0) / left**2 if left > 0.01 else np.inf


def _from_rows(f: SmoothFunction, ball: ConstraintSet, start: Array, n: float) -> tuple[Array, float]:
    """The same where no matrix was formed."""
    assert isinstance(f, Objective)
    # Two digits are enough, and steps whose cost is known beforehand: second-order models are slow on singular faces.
    quick: Solver | Literal["auto"] = (
        AcceleratedProjectedGradient(BacktrackingGradient()) if ball.projects_quickly else "auto"
    )
    result = _run(f, ball, start, quick)
    x = f.point(result.w, result.intercept)
    used = freedom_of_products(ball, x.w, multiplier(ball, f.minorant(x).gradient) or 0.0, f.hessian_at(x), n)
    return x.w, left_out_loss(f, x, used, n)


def _run(f: SmoothFunction, ball: ConstraintSet, start: Array, solver: Solver | Literal["auto"] = "auto") -> Result:
    return one_of_many(minimize(f, ball, solver, start=start, tol=TOL, max_iter=ITERATIONS, record=0))


def _minimised(f: SmoothFunction, ball: ConstraintSet, H: Array, b: Array, start: Array) -> Array:
    """The minimiser of the model over a ball."""
    shared = len(H) == f.shape[0]
    flat = ball.as_flat(f.shape)
    if flat is None or flat.groups is not None:
        return minimise_form(ball, H, b, start) if f.quadratic else minimise_model(H, b, ball, start)
    if not shared:
        flat = ball.as_flat((b.size,)) if len(f.shape) > 1 else flat
        if flat is None:
            return minimise_model(H, b, ball, start)
        b, start = b.ravel(), start.ravel()
    level = flat.level(H @ start - b)
    return minimise_flat(Formed(H), b, flat, start, level, SHARE).w.reshape(f.shape)
