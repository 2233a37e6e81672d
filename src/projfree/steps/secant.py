"""Line search by the secant method on the slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import count
from projfree.objectives.hull import Hull
from projfree.steps.base import StepRule


@dataclass(frozen=True)
class Secant(StepRule):
    """A few secant steps on the slope along the segment; needs gradients but no curvature and no constant.

    Parameters
    ----------
    most : int
        Looks at the function in one iteration, at most.
    tol : float
        The slope counts as zero at this fraction of its first size.

    Notes
    -----
    The lowest place looked at is returned, so that values never increase.
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
        best = min(seen, key=lambda s: (seen[s], s))
        return best, best if best > 0.0 else memory
