"""Short steps with an estimated curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import positive, shown
from projfree.objectives.hull import Hull
from projfree.steps.base import StepRule

TRIALS = 60


def check_factors(name: str, raise_by: float, relax_by: float) -> None:
    """Say that an estimate must be raised by more than one, and relaxed by a positive factor, unless it is."""
    if not positive(f"{name}(raise_by=...)", raise_by) > 1.0:
        raise ValueError(f"`{name}(raise_by=...)` must be more than 1, got {shown(raise_by)}; 2 is usual.")
    positive(f"{name}(relax_by=...)", relax_by)


@dataclass(frozen=True)
class Backtracking(StepRule):
    r"""A short step with an estimate M of the smoothness: raised until f lies below the quadratic of its model.

    .. math:: f(w + \gamma(v - w)) \le f(w) - \gamma\,\mathrm{gap} + \tfrac12\gamma^2 M\|v - w\|^2

    Parameters
    ----------
    raise_by, relax_by : float
        Factors by which M grows within, and shrinks between, iterations.

    References
    ----------
    Pedregosa, Negiar, Askari, Jaggi (2020), Linearly convergent Frank-Wolfe with backtracking line-search.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from projfree import Backtracking, QuadraticForm
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w, with its minimum at 1
    >>> step, _ = Backtracking()(1, f.hull((f.point([0.0]), f.point([4.0]))), math.nan)
    >>> 0.0 < step <= 0.5  # it lowers the value
    True
    """

    raise_by: float = 2.0
    relax_by: float = 0.9

    def __post_init__(self) -> None:
        check_factors("Backtracking", self.raise_by, self.relax_by)

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        gap, length = hull.gap, hull.squared_length
        if gap <= 0.0 or length <= 0.0:
            return 0.0, memory
        value = hull.at(np.zeros(1)).value
        # In the beginning: the curvature that makes the first trial a tenth of the way.
        M = memory * self.relax_by if memory > 0.0 else 10.0 * gap / length
        for _ in range(TRIALS):
            gamma = min(1.0, gap / (M * length))
            model = value - gamma * gap + 0.5 * gamma**2 * M * length
            new = hull.at(np.array([gamma])).value
            if new <= model + 4.0 * UNIT * abs(value) and new <= value:
                return gamma, M
            M *= self.raise_by
        return 0.0, M
