"""Setup of fits with data-dependent losses: the scale of Huber and bi-weight, the smoothing of quantile losses."""

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

#: Scales of the losses, in standard deviations, that give an efficiency of 95 % for Gaussian residuals.
HUBER, BIWEIGHT = 1.345, 3.787
#: Ratio of the standard deviation to the median absolute deviation of Gaussian residuals.
MAD_TO_STD = 1.4826
#: Tolerance and iteration limit of the fit that estimates the scale, of which two digits are enough.
SCALE_TOL, SCALE_MAX_ITER = 1e-3, 500
#: Smallest scale relative to that of the targets: residuals of exact fits are rounding errors.
MIN_SCALE_SHARE = 1e-3
#: Smoothing error of the first fit relative to the value at zero, and the factor by which it is then reduced.
INITIAL_SMOOTHING, SMOOTHING_FACTOR = 0.1, 10.0
#: Maximum number of fits with decreasing smoothing before the last one.
MAX_FITS = 12
#: Lower bound on the value relative to that at zero, as in relative gaps.
MIN_VALUE_SHARE = 1e-6
#: Stop early if the gap is below this fraction of the tolerance, so that the final fit certifies it again.
EARLY_GAP_SHARE = 0.5
#: Smoothing error relative to mu r below which the multiplier, and so the radius, hardly changes.
SMOOTHING_SHARE = 1e-3
#: Smallest tolerance, which keeps the width of the smoothing positive.
MIN_TOL = 1e-12


def weighted_median(values: Array, weight: Array | None = None) -> float:
    """Return the weighted median: the mean of the lower and the upper one."""
    order = np.argsort(values, kind="stable")
    v, s = values[order], np.ones(len(values)) if weight is None else weight[order]
    below, half = np.cumsum(s), 0.5 * float(s.sum())
    # Sums of weights within rounding of half count as half.
    slack = 1e-12 * half
    low = v[min(int(np.searchsorted(below, half - slack)), len(v) - 1)]
    high = v[min(int(np.searchsorted(below, half + slack, side="right")), len(v) - 1)]
    return 0.5 * (float(low) + float(high))


def robust_scale(r: Array, weight: Array | None = None) -> float:
    """Return 1.4826 times the median absolute deviation, as a robust standard deviation.

    If it is zero, the mean absolute deviation replaces the median; if that is zero too, the scale is 1. Outputs are
    pooled after subtracting the median of each.
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
    """Set up the fit of a Huber or bi-weight loss; unless given, its scale comes from the residuals of a Huber fit.

    The bi-weight loss is not convex. Its fit starts from the Huber fit with the matching scale, and without a radius it
    uses the ball of that fit.
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
    """Fit to a low accuracy, and return the parameter and the robust scale of the residuals."""
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
    """Set up the fit of a quantile loss, and reduce its smoothing until the error is half of the tolerance.

    With a penalty, the radius is determined first, with a smoothing that hardly changes the multiplier.
    """
    loss = model._loss(rows)
    f, tol = model._problem(rows, loss).objective, 0.5 * max(model.tol, MIN_TOL)
    width = loss.delta / f.structure.smoothing_error  # of the quadratic part, per unit of smoothing error
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
    """Fit over one ball with decreasing smoothing until its error is half of the tolerance.

    Returns the setup of the last fit; an earlier one if the time limit is reached, or if the gap of the unsmoothed loss
    is already small enough.
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
        # The minimum is at least the bound, so this is at most half of the tolerance.
        target = max(target, tol * (result.bound or 0.0))
        converged_early = result.status is Status.CONVERGED and result.relative_gap <= EARLY_GAP_SHARE * model.tol
        if converged_early or result.status is Status.TIME_LIMIT:
            return setup  # less smoothing would gain nothing, or exceed the time limit
        smoothing = max(smoothing / SMOOTHING_FACTOR, target)
        if result.status is Status.MAX_ITER:
            target = max(target, tol * result.value)
            break
    return replace(setup, problem=smoothed_problem(target)) if target > 0.0 else setup
