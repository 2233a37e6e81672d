"""Step rules: how far a solver goes.

A `StepRule` chooses the step from the first point of a hull to the second, for methods of Frank and Wolfe; a
`GradientStep` the length of a projected gradient step. Rules are frozen dataclasses; what they remember from one
iteration to the next is one number, which the solver keeps in its state.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from projfree.algebra import Point, inner, size, square
from projfree.checks import Array, positive
from projfree.deadline import expired
from projfree.objectives.base import Evaluation, SmoothFunction
from projfree.objectives.hull import Hull
from projfree.objectives.rounding import ROUNDING, is_rounding

#: Trials of a search at most: a curvature grows, or a step falls, by 2^60, more than the digits of a float.
TRIALS = 60
#: Factors by which an estimate of the curvature grows within, and shrinks between, iterations (Pedregosa et al. 2020).
RAISE, RELAX = 2.0, 0.9
#: The least curvature: a step with it is still a finite number.
TINY = float(np.finfo(float).tiny)
Project = Callable[[Array], Array]
#: What a step leads to: a point, the step size, and what the rule remembers.
StepResult = tuple[Point, float, float]


class StepRule(ABC):
    """Chooses how far to go from the first point of a hull to the second."""

    @abstractmethod
    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        """The step in [0, 1] and the new memory (NaN in the beginning)."""


class Schedule(StepRule):
    """A rule that looks at nothing but the iteration, and so can also weight an average of gradients."""

    @abstractmethod
    def weight(self, t: int) -> float:
        """The step of iteration t = 1, 2, ...; the first is 1."""

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        return self.weight(t), memory


@dataclass(frozen=True)
class OpenLoop(Schedule):
    r""":math:`\gamma_t = \ell / (t + \ell - 1)`; :math:`\ell = 2` is the classical :math:`2 / (t + 1)`.

    Parameters
    ----------
    ell : float
        Larger values forget the past sooner and, where f allows it, converge like :math:`t^{-\ell}`.

    Examples
    --------
    >>> [OpenLoop(2).weight(t) for t in (1, 3)]
    [1.0, 0.5]
    """

    ell: float = 2.0

    def __post_init__(self) -> None:
        positive("OpenLoop(ell=...)", self.ell, "Use `LastGradient()` for a weight of one.")

    def weight(self, t: int) -> float:
        return self.ell / (t - 1.0 + self.ell)  # in this order the first is exactly 1


@dataclass(frozen=True)
class LogAdaptive(Schedule):
    r""":math:`\gamma_t = \ell_t / (t + \ell_t - 1)` with :math:`\ell_t = 2 + \log(t + 1)`.

    Examples
    --------
    >>> round(LogAdaptive().weight(10), 3)
    0.328
    """

    def weight(self, t: int) -> float:
        ell = 2.0 + math.log(t + 1.0)
        return ell / (t - 1.0 + ell)


@dataclass(frozen=True)
class LastGradient(Schedule):
    """The weight one: an average with this weight is the last gradient alone (the paper's option B).

    Examples
    --------
    >>> LastGradient().weight(7)
    1.0
    """

    def weight(self, t: int) -> float:
        return 1.0


@dataclass(frozen=True)
class ExactLineSearch(StepRule):
    """The minimiser of f on the segment: closed form for quadratics, else a bracketed search on the images.

    For a function that is not convex it is the lowest of geometrically spaced steps, polished, and never higher
    than where the segment starts.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import QuadraticForm, ExactLineSearch
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> ExactLineSearch()(1, f.hull((f.point([0.0]), f.point([4.0]))), np.nan)[0]
    0.25
    """

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        return float(hull.minimise(np.zeros(1))[0]), memory


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
    >>> import numpy as np
    >>> from projfree import QuadraticForm, ShortStep
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> ShortStep()(1, f.hull((f.point([0.0]), f.point([4.0]))), np.nan)[0]
    0.25
    """

    L: float | None = None

    def __post_init__(self) -> None:
        positive("ShortStep(L=...)", 1.0 if self.L is None else self.L)

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        gap = hull.gap
        if gap <= 0.0:
            return 0.0, memory
        curvature = hull.curvature if self.L is None else self.L * hull.squared_length
        return (min(1.0, gap / curvature) if curvature > 0.0 else 1.0), memory


@dataclass(frozen=True)
class Backtracking(StepRule):
    r"""A short step with an estimate M of the smoothness: raised until f lies below the quadratic of its model.

    .. math:: f(w + \gamma(v - w)) \le f(w) - \gamma\,\mathrm{gap} + \tfrac12\gamma^2 M\|v - w\|^2

    References
    ----------
    Pedregosa, Negiar, Askari, Jaggi (2020), Linearly convergent Frank-Wolfe with backtracking line-search.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Backtracking, QuadraticForm
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w, with its minimum at 1
    >>> step, _ = Backtracking()(1, f.hull((f.point([0.0]), f.point([4.0]))), np.nan)
    >>> 0.0 < step <= 0.5  # it lowers the value
    True
    """

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        gap, length = hull.gap, hull.squared_length
        if gap <= 0.0 or length <= 0.0:
            return 0.0, memory
        value = hull.value(np.zeros(1))
        # In the beginning: the curvature that makes the first trial a tenth of the way.
        M = memory * RELAX if memory > 0.0 else 10.0 * gap / length
        for _ in range(TRIALS):
            gamma = min(1.0, gap / (M * length))
            model = value - gamma * gap + 0.5 * gamma**2 * M * length
            new = hull.value(np.array([gamma]))
            if new <= model + ROUNDING * abs(value) and new <= value:
                return gamma, M
            M *= RAISE
        return 0.0, M


class GradientStep(ABC):
    """Chooses the length of a gradient step and takes it."""

    @abstractmethod
    def __call__(self, f: SmoothFunction, here: Evaluation, project: Project, t: int, memory: float) -> StepResult:
        """The projected point of a step from an evaluated one, the length, and the new memory (NaN at first)."""


@dataclass(frozen=True)
class InverseSmoothness(GradientStep):
    """The constant step 1/L.

    Parameters
    ----------
    L : float, optional
        The smoothness constant; without it the objective's own upper bound, computed once.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import QuadraticForm, InverseSmoothness
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> here = f.evaluate(f.point([0.0]))
    >>> InverseSmoothness(L=2.0)(f, here, lambda w: w, 1, np.nan)[0].w
    array([1.])
    """

    L: float | None = None

    def __post_init__(self) -> None:
        positive("InverseSmoothness(L=...)", 1.0 if self.L is None else self.L)

    def __call__(self, f: SmoothFunction, here: Evaluation, project: Project, t: int, memory: float) -> StepResult:
        L = self.L or (memory if memory > 0.0 else _curvature(f, here))
        return _projected(f, here, project, here.slope.gradient / L), 1.0 / L, L


@dataclass(frozen=True)
class InverseSqrt(GradientStep):
    r"""The step :math:`\eta_t = c / \sqrt{t}`, which also converges under noise.

    Parameters
    ----------
    scale : float, optional
        The constant c; without it 1/L of the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import QuadraticForm, InverseSqrt
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> here = f.evaluate(f.point([0.0]))
    >>> InverseSqrt(scale=0.5)(f, here, lambda w: w, 4, np.nan)[0].w
    array([0.5])
    """

    scale: float | None = None

    def __post_init__(self) -> None:
        positive("InverseSqrt(scale=...)", 1.0 if self.scale is None else self.scale)

    def __call__(self, f: SmoothFunction, here: Evaluation, project: Project, t: int, memory: float) -> StepResult:
        scale = self.scale or (memory if memory > 0.0 else 1.0 / _curvature(f, here))
        eta = scale / math.sqrt(t)
        return _projected(f, here, project, eta * here.slope.gradient), eta, scale


@dataclass(frozen=True)
class BacktrackingGradient(GradientStep):
    r"""The step 1/M, with M raised until :math:`f(x^+) \le f(x) + \langle g, x^+ - x\rangle + \tfrac M2\|x^+ - x\|^2`.

    Notes
    -----
    Needs all rows, and one more read an iteration for the value at the new point.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import QuadraticForm, BacktrackingGradient
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> here = f.evaluate(f.point([0.0]))
    >>> BacktrackingGradient()(f, here, lambda w: w, 1, np.nan)[0].w
    array([1.])
    """

    def __call__(self, f: SmoothFunction, here: Evaluation, project: Project, t: int, memory: float) -> StepResult:
        g, x = here.slope.gradient, here.point
        M = memory * RELAX if memory > 0.0 else max(size(g) / max(1.0, size(x.w)), TINY)
        new = x
        for _ in range(TRIALS):
            new = _projected(f, here, project, g / M)
            if _below_model(f, here, new, M) or expired():
                break
            M *= RAISE
        return new, 1.0 / M, M


def _projected(f: SmoothFunction, here: Evaluation, project: Project, move: Array) -> Point:
    return f.point(project(here.point.w - move), here.intercept)


def _curvature(f: SmoothFunction, here: Evaluation) -> float:
    """The smoothness, and for a function that is constant up to rounding one at which a step is still a number."""
    return max(f.smoothness(), TINY * max(1.0, size(here.slope.gradient)))


def _below_model(f: SmoothFunction, here: Evaluation, new: Point, M: float) -> bool:
    """Whether f at the new point lies below the quadratic with curvature M around an evaluated one.

    Differences of values that are all rounding would raise M without end. There the change of the gradient tells the
    curvature along the step, at one more read.
    """
    g, step, value = here.slope.gradient, new.w - here.point.w, here.value
    slope, curvature = inner(g, step), M * square(step)
    if f(new) <= value + slope + 0.5 * curvature + ROUNDING * abs(value):
        return True
    if not is_rounding(max(abs(slope), curvature), value):
        return False
    return inner(f.evaluate(new).slope.gradient - g, step) <= curvature
