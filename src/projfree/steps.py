"""Step rules: the step sizes of solvers.

A `StepRule` chooses the step from the first point of a hull to the second, for Frank-Wolfe methods. A `GradientStep`
chooses the length of a projected gradient step. Rules are frozen dataclasses; the one number that they need from the
previous iteration, ``memory``, is stored in the state of the solver.
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

#: Maximum number of trials of a search: the curvature grows by at most 2^60, more than the precision of a float.
TRIALS = 60
#: Factors by which the curvature estimate grows within an iteration and shrinks between them (Pedregosa et al. 2020).
RAISE, RELAX = 2.0, 0.9
#: Smallest curvature for which the step is finite.
TINY = float(np.finfo(float).tiny)
Project = Callable[[Array], Array]
#: Result of a step: the new point, the step size and the new memory of the rule.
StepResult = tuple[Point, float, float]


class StepRule(ABC):
    """Base class of rules for the step from the first point of a hull to the second."""

    @abstractmethod
    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        """Return the step in [0, 1] and the new memory; ``memory`` is NaN in the first iteration."""


class Schedule(StepRule):
    """Base class of rules that depend only on the iteration, so that they can also define averages of gradients."""

    @abstractmethod
    def weight(self, t: int) -> float:
        """Return the step of iteration t = 1, 2, ...; the first is 1."""

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        return self.weight(t), memory


@dataclass(frozen=True)
class OpenLoop(Schedule):
    r"""The step :math:`\gamma_t = \ell / (t + \ell - 1)`; :math:`\ell = 2` is the classical :math:`2 / (t + 1)`.

    Parameters
    ----------
    ell : float
        Larger values discount old vertices faster and, for suitable f, converge at the rate :math:`t^{-\ell}`.

    Examples
    --------
    >>> [OpenLoop(2).weight(t) for t in (1, 3)]
    [1.0, 0.5]
    """

    ell: float = 2.0

    def __post_init__(self) -> None:
        positive("OpenLoop(ell=...)", self.ell, "Use `LastGradient()` for a weight of one.")

    def weight(self, t: int) -> float:
        return self.ell / (t - 1.0 + self.ell)  # this order of operations gives exactly 1 for t = 1


@dataclass(frozen=True)
class LogAdaptive(Schedule):
    r"""The step :math:`\gamma_t = \ell_t / (t + \ell_t - 1)` with :math:`\ell_t = 2 + \log(t + 1)`.

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
    """The constant weight one, with which an average is the last gradient (option B of the paper).

    Examples
    --------
    >>> LastGradient().weight(7)
    1.0
    """

    def weight(self, t: int) -> float:
        return 1.0


@dataclass(frozen=True)
class ExactLineSearch(StepRule):
    """The minimiser of f on the segment, in closed form for quadratics, else by a bracketed search on the predictions.

    For a non-convex function, the best of geometrically spaced steps is refined; its value is at most that at the start
    of the segment.

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
    r"""The step :math:`\min(1, \langle g, w - v\rangle / (L\|v - w\|^2))` (option B of Algorithm 1 of the paper).

    Parameters
    ----------
    L : float, optional
        The smoothness constant of f. By default the curvature along the segment is bounded by
        :math:`L_\ell\,\mathrm{mean}((A(v - w))^2)`, which is at most :math:`L\|v - w\|^2` and costs the predictions
        of v.

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
    r"""A short step with an estimate M of the smoothness, increased until f is below its quadratic upper bound.

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
        # In the first iteration, choose M so that the trial step is 0.1.
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
    """Base class of rules for projected gradient steps."""

    @abstractmethod
    def __call__(self, f: SmoothFunction, here: Evaluation, project: Project, t: int, memory: float) -> StepResult:
        """Return the projected point, the step length and the new memory; ``memory`` is NaN in the first iteration."""


@dataclass(frozen=True)
class InverseSmoothness(GradientStep):
    """The constant step 1/L.

    Parameters
    ----------
    L : float, optional
        The smoothness constant. By default an upper bound from the objective, computed once.

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
    r"""The step :math:`\eta_t = c / \sqrt{t}`, which also converges for stochastic gradients.

    Parameters
    ----------
    scale : float, optional
        The constant c. By default 1/L of the objective.

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
    r"""The step 1/M; M grows until :math:`f(x^+) \le f(x) + \langle g, x^+ - x\rangle + \tfrac M2\|x^+ - x\|^2`.

    Notes
    -----
    The rule does not support sampling, and needs one more read per iteration for the value at the new point.

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
    """Return the smoothness constant; for a numerically constant f, a tiny number for which the step is finite."""
    return max(f.smoothness(), TINY * max(1.0, size(here.slope.gradient)))


def _below_model(f: SmoothFunction, here: Evaluation, new: Point, M: float) -> bool:
    """Return whether f at the new point is below the quadratic model with curvature M at an evaluated point.

    If the difference of the values is of rounding size, the curvature along the step is computed from the difference of
    the gradients, at the cost of one more read; otherwise M would grow without bound.
    """
    g, step, value = here.slope.gradient, new.w - here.point.w, here.value
    slope, curvature = inner(g, step), M * square(step)
    if f(new) <= value + slope + 0.5 * curvature + ROUNDING * abs(value):
        return True
    if not is_rounding(max(abs(slope), curvature), value):
        return False
    return inner(f.evaluate(new).slope.gradient - g, step) <= curvature
