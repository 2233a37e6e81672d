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
    from projfree.estimators.base import FitSetup
    from projfree.estimators.inputs import TrainingSet

#: Multiples of the standard deviation at which the losses lose 5 % of efficiency on Gaussian residuals.
HUBER, BIWEIGHT = 1.345, 3.787
#: A median absolute deviation times this estimates the standard deviation of Gaussian residuals.
MAD_TO_STD = 1.4826
#: The fit that finds the scale of residuals ends at this relative gap; the scale needs two digits.
SCALE_TOL, SCALE_MAX_ITER = 1e-3, 500
#: No scale is smaller than this part of that of the targets: exact fits have residuals of rounding size.
MIN_SCALE_SHARE = 1e-3
#: The first loss is smoothed by this part of the value at zero, the next ones by so many times less.
INITIAL_SMOOTHING, SMOOTHING_FACTOR = 0.1, 10.0
#: Fits before the last; each ends where its smoothing hides what is left.
MAX_FITS = 12
#: The value counts as at least this part of that at zero, as it does in relative gaps.
MIN_VALUE_SHARE = 1e-6
#: A gap of this part of the tolerance is met again by the fit that begins where it was met, and proves it anew.
EARLY_GAP_SHARE = 0.5
#: A smoothing of this part of mu r leaves the multiplier, and with it the radius, about as it is.
SMOOTHING_SHARE = 1e-3
#: And a tolerance as at least this, so that the parabola keeps a width.
MIN_TOL = 1e-12


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


def robust_scale(r: Array, weight: Array | None = None) -> float:
    """The median absolute deviation times 1.4826; the mean one where more than half of the residuals agree; else 1.

    Outputs are pooled, each centred by its own median.
    """
    columns = r.reshape(len(r), -1).astype(np.float64)
    keep = np.ones(len(r), dtype=bool) if weight is None else weight > 0
    s = None if weight is None else weight[keep]
    centred = np.stack([np.abs(c - weighted_median(c, s)) for c in columns[keep].T], axis=1)
    repeated = None if s is None else np.repeat(s, centred.shape[1])
    scale = MAD_TO_STD * weighted_median(centred.ravel(), repeated)
    if scale <= 0.0:
        scale = 1.2533 * float(
            np.average(centred, weights=None if s is None else np.broadcast_to(s[:, None], centred.shape))
        )
    return scale if scale > 0.0 else 1.0


# ---------------------------------------------------------------------- robust losses


def setup_robust(model: Any, rows: TrainingSet, start: Array | None, time_left: Callable[[], float | None]) -> FitSetup:
    """The fit of a Huber or a bi-weight loss, with the scale of the residuals of a first Huber fit if none is given.

    The bi-weight, which is not convex, begins at the fit of the Huber loss with the matching scale, and has the ball of
    that fit where a penalty decides it.
    """
    loss = model._loss(rows)
    if loss is not model.loss:
        first = model._setup_on_ball(rows, model._problem(rows, _matching_huber(loss)), start, time_left)
        start, scale = _fit_and_scale(model, rows, first, time_left)
        loss = Huber(HUBER * scale) if isinstance(loss, Huber) else BiWeight(BIWEIGHT * scale)
    problem = model._problem(rows, loss)
    if isinstance(loss, Huber) or not model._uses_penalty:
        setup: FitSetup = model._setup_on_ball(rows, problem, start, time_left)
        return setup
    huber_fit: FitSetup = model._setup_on_ball(rows, model._problem(rows, _matching_huber(loss)), start, time_left)
    return replace(huber_fit, problem=problem, start_is_optimal=radius_of(huber_fit.ball) == 0.0)


def _matching_huber(loss: Huber | BiWeight) -> Huber:
    return loss if isinstance(loss, Huber) else Huber(HUBER / BIWEIGHT * loss.scale)


def _fit_and_scale(
    model: Any, rows: TrainingSet, first: FitSetup, time_left: Callable[[], float | None]
) -> tuple[Array | None, float]:
    """The coefficients of a rough fit, and the scale of its residuals."""
    f, w = first.problem.objective, first.start
    if first.start_is_optimal:
        intercept = f.evaluate(f.point(w)).intercept
    else:
        limits: dict[str, Any] = {"max_iter": SCALE_MAX_ITER, "time_limit": time_left(), "record": 0}
        rough = raise_if_interrupted(minimize(f, first.ball, start=w, tol=max(SCALE_TOL, model.tol), **limits))
        w, intercept = rough.w, rough.intercept
    coef, intercept = model._to_coef(*first.problem.raw(w, intercept))  # type: ignore[arg-type]
    fitted = linear_predictions(rows.X, coef, intercept, rows.task)
    scale = robust_scale(rows.y - fitted, rows.weight)
    return w, max(scale, MIN_SCALE_SHARE * robust_scale(rows.y, rows.weight))


# ---------------------------------------------------------------------- quantiles


def setup_quantile(
    model: Any, rows: TrainingSet, start: Array | None, time_left: Callable[[], float | None]
) -> FitSetup:
    """The fit of a quantile loss, smoothed less and less until what that hides is half of the tolerance.

    A penalty decides the radius first, with as much smoothing as leaves its multiplier as it is.
    """
    loss = model._loss(rows)
    f, tol = model._problem(rows, loss).objective, 0.5 * max(model.tol, MIN_TOL)
    width = loss.delta / f.structure.smoothing_error  # of the parabola for each unit of what it hides
    centre = float(f.reported(f.point(np.zeros(f.shape))))

    def smoothed_problem(smoothing: float) -> Problem:
        problem: Problem = model._problem(rows, replace(loss, delta=width * smoothing) if smoothing > 0.0 else loss)
        return problem

    smoothing = INITIAL_SMOOTHING * centre
    setup: FitSetup = model._setup_on_ball(rows, smoothed_problem(smoothing), start, time_left)
    if model._uses_penalty:
        from projfree.estimators.penalty import norm_power

        weight = model._penalty_weight(rows.total_weight)
        for _ in range(MAX_FITS):
            radius = radius_of(setup.ball) or 0.0
            target = max(SMOOTHING_SHARE * weight * radius ** norm_power(setup.ball), MIN_VALUE_SHARE * tol * centre)
            if smoothing <= target or setup.failure:
                break
            smoothing = max(smoothing / SMOOTHING_FACTOR, target)
            setup = model._setup_on_ball(rows, smoothed_problem(smoothing), setup.start, time_left)
        if radius_of(setup.ball) == 0.0:
            return replace(setup, problem=smoothed_problem(tol * centre))
    return _reduce_smoothing(model, smoothed_problem, setup, tol, centre, time_left)


def _reduce_smoothing(
    model: Any,
    smoothed_problem: Callable[[float], Problem],
    setup: FitSetup,
    tol: float,
    centre: float,
    time_left: Callable[[], float | None],
) -> FitSetup:
    """Fits over one ball until the smoothing accounts for half of the tolerance, and the last problem for another fit.

    Where the time limit ends before, or the gap of the loss itself meets the tolerance, the problem that was reached.
    """
    smoothing, target = INITIAL_SMOOTHING * centre, tol * MIN_VALUE_SHARE * centre
    setup = replace(setup, start_is_optimal=False)
    for _ in range(MAX_FITS):
        if not smoothing > target:
            break
        problem = smoothed_problem(smoothing)
        settings = {"tol": model.tol, "max_iter": model.max_iter, "time_limit": time_left(), "record": 0}
        result = raise_if_interrupted(minimize(problem.objective, setup.ball, start=setup.start, **settings))
        setup = replace(setup, problem=problem, start=result.w)
        # The minimum is at least the bound, so that this is at most half of the tolerance.
        target = max(target, tol * (result.bound or 0.0))
        converged_early = result.status is Status.CONVERGED and result.relative_gap <= EARLY_GAP_SHARE * model.tol
        if converged_early or result.status is Status.TIME_LIMIT:
            return setup  # a sharper one would have nothing to add, or no time to prove as much
        smoothing = max(smoothing / SMOOTHING_FACTOR, target)
        if result.status is Status.MAX_ITER:
            target = max(target, tol * result.value)
            break
    return replace(setup, problem=smoothed_problem(target)) if target > 0.0 else setup
