"""Step lengths of projected gradient methods."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, inner, size, square
from projfree.checks import Array, positive
from projfree.deadline import expired
from projfree.objectives.base import SmoothFunction
from projfree.steps.backtracking import TRIALS, check_factors

#: Stands in for the smoothness of a constant function.
SMALLEST = float(np.finfo(float).tiny)
#: No step without a curvature is longer.
LONGEST = 1e300
#: Changes of a value by fewer roundings than this say nothing.
NOISE = 64.0
Project = Callable[[Array], Array]


class GradientStep(ABC):
    """Chooses the length of a gradient step and takes it."""

    @abstractmethod
    def __call__(
        self, f: SmoothFunction, x: Point, m: Minorant, project: Project, t: int, memory: float
    ) -> tuple[Point, float, float]:
        """The projected point, the length, and the new memory (NaN in the beginning)."""


@dataclass(frozen=True)
class InverseSmoothness(GradientStep):
    """The constant step 1/L.

    Parameters
    ----------
    L : float, optional
        The smoothness constant; without it the objective's own upper bound, computed once.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from projfree import QuadraticForm, InverseSmoothness
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> x = f.point([0.0])
    >>> InverseSmoothness(L=2.0)(f, x, f.minorant(x), lambda w: w, 1, math.nan)[0].w
    array([1.])
    """

    L: float | None = None

    def __post_init__(self) -> None:
        if self.L is not None:
            positive("InverseSmoothness(L=...)", self.L)

    def __call__(
        self, f: SmoothFunction, x: Point, m: Minorant, project: Project, t: int, memory: float
    ) -> tuple[Point, float, float]:
        L = self.L if self.L is not None else memory if memory > 0.0 else _curvature(f, m)
        return f.point(project(x.w - m.gradient / L), x.intercept), 1.0 / L, L


@dataclass(frozen=True)
class InverseSqrt(GradientStep):
    r"""The step :math:`\eta_t = c / \sqrt{t}`, which also converges under noise.

    Parameters
    ----------
    scale : float, optional
        The constant c; without it 1/L of the objective.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from projfree import QuadraticForm, InverseSqrt
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> x = f.point([0.0])
    >>> InverseSqrt(scale=0.5)(f, x, f.minorant(x), lambda w: w, 4, math.nan)[0].w
    array([0.5])
    """

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            positive("InverseSqrt(scale=...)", self.scale)

    def __call__(
        self, f: SmoothFunction, x: Point, m: Minorant, project: Project, t: int, memory: float
    ) -> tuple[Point, float, float]:
        scale = self.scale or (memory if memory > 0.0 else 1.0 / _curvature(f, m))
        eta = scale / math.sqrt(t)
        return f.point(project(x.w - eta * m.gradient), x.intercept), eta, scale


@dataclass(frozen=True)
class BacktrackingGradient(GradientStep):
    r"""The step 1/M, with M raised until :math:`f(x^+) \le f(x) + \langle g, x^+ - x\rangle + \tfrac M2\|x^+ - x\|^2`.

    Parameters
    ----------
    raise_by, relax_by : float
        Factors by which M grows within, and shrinks between, iterations.

    Notes
    -----
    Needs all rows, and one more read an iteration for the value at the new point.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from projfree import QuadraticForm, BacktrackingGradient
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> x = f.point([0.0])
    >>> BacktrackingGradient()(f, x, f.minorant(x), lambda w: w, 1, math.nan)[0].w
    array([1.])
    """

    raise_by: float = 2.0
    relax_by: float = 0.9

    def __post_init__(self) -> None:
        check_factors("BacktrackingGradient", self.raise_by, self.relax_by)

    def __call__(
        self, f: SmoothFunction, x: Point, m: Minorant, project: Project, t: int, memory: float
    ) -> tuple[Point, float, float]:
        value = f.value(x)
        M = memory * self.relax_by if memory > 0.0 else max(size(m.gradient) / max(1.0, size(x.w)), 1e-300)
        new = x
        for _ in range(TRIALS):
            new = f.point(project(x.w - m.gradient / M), x.intercept)
            if _below_model(f, x, m, new, M, value) or expired():
                break
            M *= self.raise_by
        return new, 1.0 / M, M


def _curvature(f: SmoothFunction, m: Minorant) -> float:
    """The smoothness, and for a function that is constant up to rounding one at which a step is still a number."""
    return max(f.smoothness(), SMALLEST, size(m.gradient) / LONGEST)


def _below_model(f: SmoothFunction, x: Point, m: Minorant, new: Point, M: float, value: float) -> bool:
    """Whether f at the new point lies below the quadratic with curvature M around x.

    Differences of values that are all rounding would raise M without end. There the change of the gradient tells the
    curvature along the step, at one more read.
    """
    step = new.w - x.w
    slope, curvature = inner(m.gradient, step), M * square(step)
    model = value + slope + 0.5 * curvature
    if f.value(new) <= model + 4.0 * UNIT * abs(value):
        return True
    if max(abs(slope), curvature) > NOISE * UNIT * abs(value):
        return False
    return inner(f.minorant(new).gradient - m.gradient, step) <= curvature
