"""A robust scale of residuals, the fit that leaves them, and the constants that turn it into the scale of a loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.objectives import Objective
from projfree.run import Result, minimize
from projfree.sets import ConstraintSet

#: Multiples of the standard deviation at which the losses lose 5 % of efficiency on Gaussian residuals.
HUBER, BIWEIGHT = 1.345, 3.787
#: A median absolute deviation times this estimates the standard deviation of Gaussian residuals.
GAUSSIAN = 1.4826
#: The fit that finds the scale of residuals ends at this relative gap; the scale needs two digits.
SCALE_TOL, SCALE_ITERATIONS = 1e-3, 500
#: No scale is smaller than this part of that of the targets: exact fits have residuals of rounding size.
SCALE_SHARE = 1e-3


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
