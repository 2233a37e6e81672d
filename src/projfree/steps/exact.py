"""Exact line search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.objectives.hull import Hull
from projfree.steps.base import StepRule


@dataclass(frozen=True)
class ExactLineSearch(StepRule):
    """The minimiser of f on the segment: closed form for quadratics, else a bracketed search on the images.

    For a function that is not convex it is the lowest of geometrically spaced steps, polished, and never higher
    than where the segment starts.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from projfree import QuadraticForm, ExactLineSearch
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> ExactLineSearch()(1, f.hull((f.point([0.0]), f.point([4.0]))), math.nan)[0]
    0.25
    """

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        return float(hull.minimise(np.zeros(1))[0]), memory
