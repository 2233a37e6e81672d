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

from projfree.algebra import UNIT, Minorant, Point, inner, size, square
from projfree.checks import Array, count, positive, shown
from projfree.deadline import expired
from projfree.objectives.base import SmoothFunction
from projfree.objectives.hull import Hull

#: Relative rounding error of a value, which is a mean of many terms.
ROUNDING = 4.0 * UNIT
#: Trials of a search at most: a curvature grows by 2^60, or a step falls by 4^60, over all that floats can tell.
TRIALS = 60
Project = Callable[[Array], Array]


def is_rounding(change: float, value: float) -> bool:
    """Whether a change of a value is no larger than the rounding errors of the two values that it is between."""
    return change <= 2.0 * ROUNDING * abs(value)


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
        if self.L is not None:
            positive("ShortStep(L=...)", self.L)

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        gap = hull.gap
        if gap <= 0.0:
            return 0.0, memory
        bend = hull.curvature if self.L is None else self.L * hull.squared_length
        return (min(1.0, gap / bend) if bend > 0.0 else 1.0), memory


@dataclass(frozen=True)
class _CurvatureEstimate:
    """Settings of rules that estimate a curvature by trial."""

    raise_by: float = 2.0
    relax_by: float = 0.9

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not positive(f"{name}(raise_by=...)", self.raise_by) > 1.0:
            raise ValueError(f"`{name}(raise_by=...)` must be more than 1, got {shown(self.raise_by)}; 2 is usual.")
        positive(f"{name}(relax_by=...)", self.relax_by)


@dataclass(frozen=True)
class Backtracking(_CurvatureEstimate, StepRule):
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
        value = hull.at(np.zeros(1)).value
        # In the beginning: the curvature that makes the first trial a tenth of the way.
        M = memory * self.relax_by if memory > 0.0 else 10.0 * gap / length
        for _ in range(TRIALS):
            gamma = min(1.0, gap / (M * length))
            model = value - gamma * gap + 0.5 * gamma**2 * M * length
            new = hull.at(np.array([gamma])).value
            if new <= model + ROUNDING * abs(value) and new <= value:
                return gamma, M
            M *= self.raise_by
        return 0.0, M


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
    >>> import numpy as np
    >>> from projfree import QuadraticForm, Secant
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> Secant()(1, f.hull((f.point([0.0]), f.point([4.0]))), np.nan)[0]
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
        for _ in range(TRIALS):  # all places too far: without convexity slopes may mislead
            if best > 0.0:
                break
            place = min(s for s in seen if s > 0.0) / 4.0
            seen[place] = hull.at(np.array([place])).value
            best = _lowest(seen)
        return best, best if best > 0.0 else memory


def _lowest(seen: dict[float, float]) -> float:
    return min(seen, key=lambda s: (seen[s], s))


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
    >>> import numpy as np
    >>> from projfree import QuadraticForm, InverseSmoothness
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> x = f.point([0.0])
    >>> InverseSmoothness(L=2.0)(f, x, f.evaluate(x).slope, lambda w: w, 1, np.nan)[0].w
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
    >>> import numpy as np
    >>> from projfree import QuadraticForm, InverseSqrt
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> x = f.point([0.0])
    >>> InverseSqrt(scale=0.5)(f, x, f.evaluate(x).slope, lambda w: w, 4, np.nan)[0].w
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
class BacktrackingGradient(_CurvatureEstimate, GradientStep):
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
    >>> import numpy as np
    >>> from projfree import QuadraticForm, BacktrackingGradient
    >>> f = QuadraticForm(np.array([[2.0]]), np.array([2.0]))  # w^2 - 2 w
    >>> x = f.point([0.0])
    >>> BacktrackingGradient()(f, x, f.evaluate(x).slope, lambda w: w, 1, np.nan)[0].w
    array([1.])
    """

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
    return max(f.smoothness(), float(np.finfo(float).tiny), 1e-300 * size(m.gradient))


def _below_model(f: SmoothFunction, x: Point, m: Minorant, new: Point, M: float, value: float) -> bool:
    """Whether f at the new point lies below the quadratic with curvature M around x.

    Differences of values that are all rounding would raise M without end. There the change of the gradient tells the
    curvature along the step, at one more read.
    """
    step = new.w - x.w
    slope, curvature = inner(m.gradient, step), M * square(step)
    model = value + slope + 0.5 * curvature
    if f.value(new) <= model + ROUNDING * abs(value):
        return True
    if not is_rounding(max(abs(slope), curvature), value):
        return False
    return inner(f.evaluate(new).slope.gradient - m.gradient, step) <= curvature
