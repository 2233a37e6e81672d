"""Line search by the secant method on the slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import count
from projfree.objectives.hull import Hull
from projfree.steps.base import StepRule

SHRINKS = 30


@dataclass(frozen=True)
class Secant(StepRule):
    """A few secant steps on the slope along the segment; needs gradients but no curvature and no constant.

    Parameters
    ----------
    most : int
        Secant steps in one iteration, at most; more looks only if none of them leads down.
    tol : float
        The slope counts as zero at this fraction of its first size.

    Notes
    -----
    The lowest place looked at is returned, so that values never increase.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from projfree import QuadraticForm, Secant
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> Secant()(1, f.hull((f.point([0.0]), f.point([4.0]))), math.nan)[0]
    0.25
    """

    most: int = 12
    tol: float = 1e-8

    def __post_init__(self) -> None:
        count("Secant(most=...)", self.most)

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        start = hull.at(np.zeros(1))
        first = float(start.gradient[0])
        if first >= 0.0:
            return 0.0, memory
        seen = {0.0: start.value}
        old, old_slope, place = 0.0, first, memory if 0.0 < memory <= 1.0 else 1.0
        for _ in range(self.most):
            here = hull.at(np.array([place]))
            slope, seen[place] = float(here.gradient[0]), here.value
            if abs(slope) <= self.tol * abs(first) or slope == old_slope or (place == 1.0 and slope <= 0.0):
                break
            new = place - slope * (place - old) / (slope - old_slope)
            old, old_slope, place = place, slope, min(max(new, 0.0), 1.0)
            if place == old:
                break
        best = _lowest(seen)
        for _ in range(SHRINKS):  # all places too far: without convexity slopes may mislead
            if best > 0.0:
                break
            place = min(s for s in seen if s > 0.0) / 4.0
            seen[place] = hull.at(np.array([place])).value
            best = _lowest(seen)
        return best, best if best > 0.0 else memory


def _lowest(seen: dict[float, float]) -> float:
    return min(seen, key=lambda s: (seen[s], s))
