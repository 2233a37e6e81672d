"""Losses whose scale or smoothing is found by fits: Huber's, the bi-weight and the quantile loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array
from projfree.estimators.inputs import linear_predictions
from projfree.estimators.problem import Problem, radius_of
from projfree.losses import BiWeight, Huber
from projfree.run import Status, minimize
from projfree.run.result import raise_if_interrupted

if TYPE_CHECKING:
    from projfree.estimators.base import PreparedFit
    from projfree.estimators.inputs import TrainingSet

#: Multiples of the standard deviation at which the losses lose 5 % of efficiency on Gaussian residuals.
HUBER, BIWEIGHT = 1.345, 3.787
#: A median absolute deviation times this estimates the standard deviation of Gaussian residuals.
GAUSSIAN = 1.4826
#: The fit that finds the scale of residuals ends at this relative gap; the scale needs two digits.
SCALE_TOL, SCALE_ITERATIONS = 1e-3, 500
#: No scale is smaller than this part of that of the targets: exact fits have residuals of rounding size.
SCALE_SHARE = 1e-3
#: The first loss is smoothed by this part of the value at zero, the next ones by so many times less.
FIRST, SHARPER = 0.1, 10.0
#: Fits before the last; each ends where its smoothing hides what is left.
MOST = 12
#: The value counts as at least this part of that at zero, as it does in relative gaps.
LEAST = 1e-6
#: A gap of this part of the tolerance is met again by the fit that begins where it was met, and proves it anew.
CLEARLY = 0.5
#: A smoothing of this part of mu r leaves the multiplier, and with it the radius, about as it is.
SMOOTHING_SHARE = 1e-3
#: And a tolerance as at least this, so that the parabola keeps a width.
LEAST_TOL = 1e-12


def weighted_median(values: Array, weight: Array | None = None) -> float:
    """The smallest value with at least half of the weight at or below it, averaged with its mirror image from above."""
    order = np.argsort(values, kind="stable")
    v, s = values[order], np.ones(len(values)) if weight is None else weight[order]
    below, half = np.cumsum(s), 0.5 * float(s.sum())
    # Weights that add up to half only up to rounding count as half.
    slack = 1e-12 * half
    low = v[min(int(np.searchsorted(below, half - slack)), len(v) - 1)]
    high = v[min(int(np.searchsorted(below, half + slack, side="right")), len(v) - 1)]
    return 0.5 * (float(low) + float(high))


def residual_scale(r: Array, weight: Array | None = None) -> float:
    """The median absolute deviation times 1.4826; the mean one where more than half of the residuals agree; else 1.

    Outputs are pooled, each centred by its own median.
    """
    columns = r.reshape(len(r), -1).astype(np.float64)
    keep = np.ones(len(r), dtype=bool) if weight is None else weight > 0
    s = None if weight is None else weight[keep]
    centred = np.stack([np.abs(c - weighted_median(c, s)) for c in columns[keep].T], axis=1)
    repeated = None if s is None else np.repeat(s, centred.shape[1])
    scale = GAUSSIAN * weighted_median(centred.ravel(), repeated)
    if scale <= 0.0:
        scale = 1.2533 * float(
            np.average(centred, weights=None if s is None else np.broadcast_to(s[:, None], centred.shape))
        )
    return scale if scale > 0.0 else 1.0


# ---------------------------------------------------------------------- robust losses


def prepare_robust(model: Any, rows: TrainingSet, start: Array | None, left: Callable[[], float | None]) -> PreparedFit:
    """The fit of a Huber or a bi-weight loss, with the scale of the residuals of a first Huber fit if none is given.

    The bi-weight, which is not convex, begins at the fit of the Huber loss with the matching scale, and has the ball of
    that fit where a penalty decides it.
    """
    loss = model._loss(rows)
    if loss is not model.loss:
        first = model._on_ball(rows, model._problem(rows, _matching_huber(loss)), start, left)
        start, scale = _scale_after(model, rows, first, left)
        loss = Huber(HUBER * scale) if isinstance(loss, Huber) else BiWeight(BIWEIGHT * scale)
    problem = model._problem(rows, loss)
    if isinstance(loss, Huber) or not model._is_penalised:
        prepared: PreparedFit = model._on_ball(rows, problem, start, left)
        return prepared
    found: PreparedFit = model._on_ball(rows, model._problem(rows, _matching_huber(loss)), start, left)
    return replace(found, problem=problem, start_is_solution=radius_of(found.ball) == 0.0)


def _matching_huber(loss: Huber | BiWeight) -> Huber:
    return loss if isinstance(loss, Huber) else Huber(HUBER / BIWEIGHT * loss.scale)


def _scale_after(
    model: Any, rows: TrainingSet, first: PreparedFit, left: Callable[[], float | None]
) -> tuple[Array | None, float]:
    """The coefficients of a rough fit, and the scale of its residuals."""
    f, w = first.problem.objective, first.start
    if first.start_is_solution:
        intercept = f.evaluate(f.point(w)).intercept
    else:
        limits: dict[str, Any] = {"max_iter": SCALE_ITERATIONS, "time_limit": left(), "record": 0}
        rough = raise_if_interrupted(minimize(f, first.ball, start=w, tol=max(SCALE_TOL, model.tol), **limits))
        w, intercept = rough.w, rough.intercept
    coef, intercept = model._shaped(*first.problem.raw(w, intercept))  # type: ignore[arg-type]
    fitted = linear_predictions(rows.X, coef, intercept, rows.task)
    scale = residual_scale(rows.y - fitted, rows.weight)
    return w, max(scale, SCALE_SHARE * residual_scale(rows.y, rows.weight))


# ---------------------------------------------------------------------- quantiles


def prepare_quantile(
    model: Any, rows: TrainingSet, start: Array | None, left: Callable[[], float | None]
) -> PreparedFit:
    """The fit of a quantile loss, smoothed less and less until what that hides is half of the tolerance.

    A penalty decides the radius first, with as much smoothing as leaves its multiplier as it is.
    """
    loss = model._loss(rows)
    f, tol = model._problem(rows, loss).objective, 0.5 * max(model.tol, LEAST_TOL)
    width = loss.delta / f.structure.smoothing_error  # of the parabola for each unit of what it hides
    centre = float(f.reported(f.point(np.zeros(f.shape))))

    def smoothed(excess: float) -> Problem:
        problem: Problem = model._problem(rows, replace(loss, delta=width * excess) if excess > 0.0 else loss)
        return problem

    excess = FIRST * centre
    prepared: PreparedFit = model._on_ball(rows, smoothed(excess), start, left)
    if model._is_penalised:
        from projfree.estimators.penalty import norm_power

        weight = model._penalty_weight(rows.total_weight)
        for _ in range(MOST):
            radius = radius_of(prepared.ball) or 0.0
            due = max(SMOOTHING_SHARE * weight * radius ** norm_power(prepared.ball), LEAST * tol * centre)
            if excess <= due or prepared.unsolved:
                break
            excess = max(excess / SHARPER, due)
            prepared = model._on_ball(rows, smoothed(excess), prepared.start, left)
        if radius_of(prepared.ball) == 0.0:
            return replace(prepared, problem=smoothed(tol * centre))
    return _sharpened(model, smoothed, prepared, tol, centre, left)


def _sharpened(
    model: Any,
    smoothed: Callable[[float], Problem],
    prepared: PreparedFit,
    tol: float,
    centre: float,
    left: Callable[[], float | None],
) -> PreparedFit:
    """Fits over one ball until the smoothing accounts for half of the tolerance, and the last problem for another fit.

    Where the time limit ends before, or the gap of the loss itself meets the tolerance, the problem that was reached.
    """
    excess, due = FIRST * centre, tol * LEAST * centre
    prepared = replace(prepared, start_is_solution=False)
    for _ in range(MOST):
        if not excess > due:
            break
        problem = smoothed(excess)
        settings = {"tol": model.tol, "max_iter": model.max_iter, "time_limit": left(), "record": 0}
        found = raise_if_interrupted(minimize(problem.objective, prepared.ball, start=prepared.start, **settings))
        prepared = replace(prepared, problem=problem, start=found.w)
        # The minimum is at least the bound, so that this is at most half of the tolerance.
        due = max(due, tol * (found.bound or 0.0))
        clear = found.status is Status.CONVERGED and found.relative_gap <= CLEARLY * model.tol
        if clear or found.status is Status.TIME_LIMIT:
            return prepared  # a sharper one would have nothing to add, or no time to prove as much
        excess = max(excess / SHARPER, due)
        if found.status is Status.MAX_ITER:
            due = max(due, tol * found.value)
            break
    return replace(prepared, problem=smoothed(due)) if due > 0.0 else prepared
