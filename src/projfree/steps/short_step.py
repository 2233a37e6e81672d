"""The short step: the minimiser of a quadratic upper bound on the segment."""

from __future__ import annotations

from dataclasses import dataclass

from projfree.checks import positive
from projfree.objectives.hull import Hull
from projfree.steps.base import StepRule


@dataclass(frozen=True)
class ShortStep(StepRule):
    r""":math:`\gamma = \min(1, \langle g, w - v\rangle / (L\|v - w\|^2))` (option B of the paper's Algorithm 1).

    Parameters
    ----------
    L : float, optional
        The smoothness constant of f. Without it the curvature along the segment is bounded from the images,
        :math:`L_\ell\,\mathrm{mean}((A(v - w))^2)`, which needs no constant, is never larger than
        :math:`L\|v - w\|^2`, and costs the image of v.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from projfree import QuadraticForm, ShortStep
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> ShortStep()(1, f.hull((f.point([0.0]), f.point([4.0]))), math.nan)[0]
    0.25
    """

    L: float | None = None

    def __post_init__(self) -> None:
        if self.L is not None:
            positive("ShortStep(L=...)", self.L)

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        gap = hull.gap
        if gap <= 0.0:
            return 0.0, memory
        bend = hull.curvature if self.L is None else self.L * hull.squared_length
        return (min(1.0, gap / bend) if bend > 0.0 else 1.0), memory
