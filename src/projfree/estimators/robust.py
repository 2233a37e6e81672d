"""Losses whose scale or smoothing is found by fits: Huber's, the bi-weight and the quantile loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array
from projfree.estimators.penalty import norm_power, penalised_fit
from projfree.estimators.problem import Problem, ball_through, radius_of
from projfree.losses import Quantile
from projfree.objectives import Objective
from projfree.run import Result, Status, minimize
from projfree.run.result import raise_if_interrupted
from projfree.sets import ConstraintSet

if TYPE_CHECKING:
    from projfree.estimators.base import PreparedFit

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


def rough_fit(f: Objective, ball: ConstraintSet, start: Array | None, tol: float, seconds: float | None) -> Result:
    """A fit whose residuals tell their scale."""
    limits: dict[str, Any] = {"max_iter": SCALE_ITERATIONS, "time_limit": seconds, "record": 0}
    return minimize(f, ball, start=start, tol=max(SCALE_TOL, tol), **limits)


def scale_of_fit(y: Array, fitted: Array, weight: Array | None) -> float:
    """The scale of the residuals of a fit, not smaller than that which an exact fit is given."""
    return max(residual_scale(y - fitted, weight), SCALE_SHARE * residual_scale(y, weight))


# ---------------------------------------------------------------------- quantiles


def sharpened_penalty(
    make: Callable[[Quantile], Problem], prepared: PreparedFit, weight: float, tol: float
) -> PreparedFit:
    """The minimiser of a penalised quantile loss and its ball: smoothing counts as a gap, and is made as small.

    Where all coefficients are zero, that is the solution, with a problem that is smoothed by half of the tolerance.
    """
    f, power = prepared.problem.objective, norm_power(prepared.ball)
    loss: Any = f.loss
    width = loss.delta / f.structure.smoothing_error
    centre = float(f.reported(f.point(np.zeros(f.shape))))
    if not centre > 0.0:  # no coefficients have a smaller loss
        w = np.zeros(f.shape)
        return replace(prepared, ball=ball_through(prepared.ball, w), start=w, start_is_solution=True)
    found, excess, last = prepared, FIRST * centre, 0.5 * max(tol, LEAST_TOL) * centre
    for _ in range(MOST):
        found = penalised_fit(replace(found, problem=make(replace(loss, delta=width * excess))), weight)
        radius = radius_of(found.ball) or 0.0
        due = max(SMOOTHING_SHARE * weight * radius**power, LEAST * last)
        if excess <= due or found.unsolved:
            break
        excess = max(excess / SHARPER, due)
    if radius_of(found.ball) == 0.0:
        return replace(found, problem=make(replace(loss, delta=width * last)))
    return replace(found, problem=prepared.problem, start_is_solution=False)


def sharpened(
    make: Callable[[Quantile], Problem], prepared: PreparedFit, tol: float, max_iter: int
) -> tuple[Problem, Array | None]:
    """The problem whose smoothing accounts for half of the tolerance, and a point to begin at.

    Where the time limit ends before, or the gap of the loss itself meets the tolerance, the problem that was reached.
    """
    problem, start = prepared.problem, prepared.start
    f = problem.objective
    loss: Any = f.loss
    width = loss.delta / f.structure.smoothing_error  # of the parabola for each unit of the excess
    centre = float(f.reported(f.point(np.zeros(f.shape))))
    excess, due = FIRST * centre, 0.5 * max(tol, LEAST_TOL) * LEAST * centre
    for _ in range(MOST):
        if not excess > due:
            break
        problem = make(replace(loss, delta=width * excess))
        f = problem.objective
        settings: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "time_limit": prepared.left(), "record": 0}
        found = raise_if_interrupted(minimize(f, prepared.ball, start=start, **settings))
        # The minimum is at least the bound, so that this is at most half of the tolerance.
        start, due = found.w, max(due, 0.5 * max(tol, LEAST_TOL) * (found.bound or 0.0))
        clear = found.status is Status.CONVERGED and found.relative_gap <= CLEARLY * tol
        if clear or found.status is Status.TIME_LIMIT:
            return problem, start  # a sharper one would have nothing to add, or no time to prove as much
        excess = max(excess / SHARPER, due)
        if found.status is Status.MAX_ITER:
            due = max(due, 0.5 * max(tol, LEAST_TOL) * found.value)
            break
    return make(replace(loss, delta=width * due)) if due > 0.0 else problem, start
