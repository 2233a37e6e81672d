r"""Paths of a search: one problem solved for many penalties or radii, each solution the start of the next.

A path goes from strong to weak regularization. Its ``levels`` are

* multipliers :math:`\mu` of the penalty :math:`\mu \|w\|` for l_1 and group norms, as in `LassoCV`;
* weights :math:`\lambda` of :math:`\tfrac\lambda2 \|w\|_2^2` for l_2, as in `RidgeCV`; the multiplier is
  :math:`\mu = \lambda \|w\|`;
* radii for other norms, with other solvers than the planned ones, and where the user gave them.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from projfree.algebra import UNIT
from projfree.checks import Array
from projfree.estimators.inputs import TrainingSet
from projfree.estimators.penalty import at_zero, has_working_sets, minimize_with_penalty, newton
from projfree.estimators.problem import Problem, inside, own_norm
from projfree.objectives import QuadraticForm
from projfree.objectives.base import Evaluation
from projfree.run import path
from projfree.run.certificate import multiplier
from projfree.sets import ConstraintSet, GroupBall
from projfree.sets.base import resized
from projfree.solvers.choose import MOST_PARAMETERS

#: A solution: the parameter and the intercept.
Solution = tuple[Array, Any]

#: The tolerance of `LassoCV`, for solutions that are scored and nothing else; Newton steps on working sets converge so
#: quickly that two more digits cost little, and without them neighbouring levels share a solution.
SCORED, SCORED_SETS = 1e-4, 1e-6
#: The smallest multiplier of a grid is this part of the largest, as in `LassoCV`.
SMALLEST = 1e-3
#: A level moves by this factor at most where a secant predicts it, as a line says little farther away; and at least.
FARTHEST, NEAREST = 4.0, 1.01


@dataclass(frozen=True, eq=False)
class RadiusPath:
    """Coefficients for many radii, fitted to all rows.

    Attributes
    ----------
    p : float
        The exponent of the norm.
    radii : ndarray of shape (m,)
        In increasing order.
    coefs : ndarray of shape (m, ...)
        ``coef_`` for each radius.
    intercepts : ndarray of shape (m, ...)
    multipliers : ndarray of shape (m,)
        The penalty that each radius amounts to; NaN where the set has no norm.
    """

    p: float
    radii: Array
    coefs: Array
    intercepts: Array
    multipliers: Array

    def __repr__(self) -> str:
        radii = f"{len(self.radii)} from {self.radii[0]:.4g} to {self.radii[-1]:.4g}"
        return f"RadiusPath(p: {self.p:g}, radii: {radii}, coefs: {' x '.join(map(str, self.coefs.shape))})"


class PathSolver(ABC):
    """Solves one problem level by level; each call goes on from the last solution.

    Parameters
    ----------
    problem : Problem
    ball : ConstraintSet
        Its radius does not matter.
    tol : float
        The relative gap of each solution.
    start : ndarray, optional
        Where the first call begins.
    """

    def __init__(self, problem: Problem, ball: ConstraintSet, tol: float, start: Array | None = None) -> None:
        self.problem, self.f, self.ball, self.tol = problem, problem.objective, ball, tol
        self.w = np.zeros(self.f.shape) if start is None else start
        self._solutions: dict[float, Solution] = {}
        self._secant: tuple[float, float, float] | None = None
        self._target = self._largest = 0.0

    @abstractmethod
    def _solve(self, levels: Array) -> list[Solution]:
        """The solutions at these levels, which go from strong to weak."""

    def solve(self, levels: Array) -> list[Solution]:
        """As `_solve`, for levels that were not solved before."""
        new = np.array([level for level in levels.tolist() if level not in self._solutions])
        if len(new):
            found = self._solve(new)
            self._solutions.update(zip(new.tolist(), found, strict=True))
            self.w = found[-1][0]
        return [self._solutions[level] for level in levels.tolist()]

    def multiplier(self, level: float, w: Array) -> float:
        """The multiplier of the norm at a solution."""
        return level

    def grid(self, count: int) -> Array:
        """Levels whose multipliers go from mu(0), where all coefficients are zero, to a thousandth of it."""
        self._ratio = SMALLEST ** (1.0 / (count - 1))
        return np.append(self._first(), self.more(count - 1))

    def _first(self) -> float:
        zero = at_zero(self.f, self.ball)
        self._target = multiplier(resized(self.ball, 1.0), zero.slope.gradient) or 0.0
        return self._target

    def more(self, count: int) -> Array:
        """The next levels, whose multipliers fall by the ratio of the grid; none where they vanish."""
        levels = self._target * self._ratio ** np.arange(1, count + 1) if self._target > 0.0 else np.zeros(0)
        self._target = float(levels[-1]) if len(levels) else 0.0
        return levels


class WorkingSetPath(PathSolver):
    """l_1 and group penalties: Newton steps on working sets at a fixed multiplier."""

    _here: Evaluation | None = None

    def _solve(self, levels: Array) -> list[Solution]:
        here = self._here or self.f.evaluate(self.f.point(self.w), keep=True)
        found = []
        for level in levels.tolist():
            here, _ = minimize_with_penalty(self.f, self.ball, level, here, self.tol)
            found.append((here.point.w, here.intercept))
        self._here = here
        return found


class SecantPath(PathSolver):
    r"""Levels that are no multipliers: a secant through the last two solutions predicts the next level.

    With one curvature h of f, :math:`1/\mu` is a line in :math:`1/\lambda`, and :math:`\mu` a line in the radius.
    """

    @staticmethod
    def _level(x: float) -> float:
        """The level at the coordinate in which the path begins at 0."""
        return x

    @staticmethod
    def _height(mu: float) -> float:
        """What is about a line in that coordinate."""
        return mu

    @staticmethod
    def _slope(mu: float, curvature: float) -> float:
        """The slope of that line at 0."""
        return -curvature

    def _first(self) -> float:
        zero, unit = at_zero(self.f, self.ball), resized(self.ball, 1.0)
        self._target = self._largest = mu = multiplier(unit, zero.slope.gradient) or 0.0
        if mu > 0.0:
            vertex = unit.lmo(zero.slope.gradient)
            vertex[self.ball.structure(self.f.shape).free] = 0.0
            hessian = self.f.hessian(zero.point)
            curvature = float(np.vdot(vertex, hessian.times(vertex))) if hessian is not None else self.f.smoothness()
            self._secant = 0.0, self._height(mu), self._slope(mu, curvature)
        return self._level(0.0)

    def more(self, count: int) -> Array:
        levels: list[float] = []
        while len(levels) < count and self._secant is not None and self._target > 0.0:
            x, y, slope = self._secant
            self._target *= self._ratio
            new = x + (self._height(self._target) - y) / slope if slope else math.inf
            new = min(max(new, NEAREST * x), FARTHEST * x) if x > 0.0 else new
            if x == 0.0 and math.isinf(self._level(new)):  # there is no such radius
                new = self._least(y) / UNIT
            level, mu = self._at(new)
            if x == 0.0 and mu < 0.5 * self._target:  # Huber's loss and others curve less far from their minimum
                least = self._least(y)
                new = min(new, least / UNIT)
                while mu < 0.5 * self._target and new > least:
                    new = max(0.1 * new, least)
                    level, mu = self._at(new)
            if not (math.isfinite(level) and mu > self._ratio * self._target * SMALLEST):
                self._target = 0.0  # nothing is held back any more
                break
            levels.append(level)
            secant = (self._height(mu) - y) / (new - x)
            right = secant * self._slope(self._largest, 1.0) > 0.0  # it has the sign of a line through exact solutions
            self._secant = new, self._height(mu), secant if right else slope
        return np.array(levels)

    def _least(self, y: float) -> float:
        """The coordinate below which the multiplier is above its target, from the height ``y`` at 0."""
        return (self._height(self._target) - y) / self._slope(self._largest, self.f.smoothness())

    def _at(self, x: float) -> tuple[float, float]:
        """The level at a coordinate, and the multiplier of its solution."""
        level = self._level(x)
        return level, self.multiplier(level, self.solve(np.array([level]))[0][0])


class RidgePath(SecantPath):
    """l_2 penalties: Newton's method."""

    _here: Evaluation | None = None

    @staticmethod
    def _level(x: float) -> float:
        return 1.0 / x if x > 0.0 else math.inf

    @staticmethod
    def _height(mu: float) -> float:
        return 1.0 / mu

    @staticmethod
    def _slope(mu: float, curvature: float) -> float:
        return curvature / mu

    def multiplier(self, level: float, w: Array) -> float:
        return level * own_norm(self.ball, w) if math.isfinite(level) else self._largest

    def _solve(self, levels: Array) -> list[Solution]:
        found = []
        for level in levels.tolist():
            if math.isinf(level):
                here = at_zero(self.f, self.ball)
            else:
                penalty = np.full(self.f.shape, level)
                penalty[self.ball.structure(self.f.shape).free] = 0.0
                here = self._here or self.f.evaluate(self.f.point(self.w), keep=True)
                here, _ = newton(self.f, penalty, here, self.tol)
            self._here = here
            found.append((here.point.w, here.intercept))
        return found


class RadiusSolver(SecantPath):
    """Any norm and any solver: balls of increasing radii."""

    def __init__(self, *given: Any, settings: dict[str, Any], **more: Any) -> None:
        super().__init__(*given, **more)
        self.settings, self._multipliers = settings, dict[float, float]()

    def multiplier(self, level: float, w: Array) -> float:
        return self._multipliers.get(level, self._largest)

    def _solve(self, levels: Array) -> list[Solution]:
        found: list[Solution] = []
        if levels[0] == 0.0:
            zero = at_zero(self.f, self.ball)
            found, levels = [(zero.point.w, zero.intercept)], levels[1:]
        if len(levels):
            start = inside(resized(self.ball, float(levels[0])), self.w, self.f.shape)
            solved = path(self.f, self.ball, levels, tol=self.tol, start=start, record=0, **self.settings)
            self._multipliers.update(zip(levels.tolist(), solved.multipliers.tolist(), strict=True))
            found += [(result.w, result.intercept) for result in solved.results]
        return found


class SpectralRidge(RidgePath):
    r"""Least squares with an l_2 penalty, for all levels from one spectrum: :math:`w = V\,(V^T b / (h + \lambda))`."""

    def __init__(self, *given: Any, factor: Factor) -> None:
        super().__init__(*given)
        self.factor = factor

    def _solve(self, levels: Array) -> list[Solution]:
        h, V, b = self.factor.h, self.factor.V, self.factor.b
        scaled = b / (h + levels[:, None]).reshape(len(levels), -1, *[1] * (b.ndim - 1))
        points = np.moveaxis(np.tensordot(V, scaled, axes=(1, 1)), 1, 0)
        return [(w, self.factor.intercept(w)) for w in points]


class CoordinateDescent(PathSolver):
    """Least squares with an l_1 penalty on entries or rows, by scikit-learn on the rows of a factor."""

    def __init__(self, *given: Any, factor: Factor) -> None:
        super().__init__(*given)
        self.factor, self.rows = factor, np.asfortranarray(factor.A)

    def _solve(self, levels: Array) -> list[Solution]:
        settings = {"alphas": levels / (2.0 * len(self.rows)), "tol": self.tol, "copy_X": False}
        with warnings.catch_warnings():  # a solution that is scored may be short of its tolerance
            warnings.simplefilter("ignore", ConvergenceWarning)
            if not len(self.rows):
                points = np.zeros((len(levels), *self.f.shape))
            elif self.w.ndim == 1 or isinstance(self.ball, GroupBall):
                found = lasso_path(self.rows, self.factor.t, coef_init=self.w.T, **settings)[1]
                points = np.moveaxis(found, -1, 0).swapaxes(1, -1)
            else:  # a sum over entries: each output on its own
                outputs = zip(self.factor.t.T, self.w.T, strict=True)
                each = [lasso_path(self.rows, t, coef_init=w, **settings)[1] for t, w in outputs]
                points = np.moveaxis(np.stack(each), (0, 2), (2, 0))
        return [(w, self.factor.intercept(w)) for w in points]


@dataclass(frozen=True, eq=False)
class Factor:
    r"""Squares as :math:`\|A w - t\|^2 + c`, with :math:`2 A^T A = V \operatorname{diag}(h) V^T`.

    A has no more rows than there are features; ``b`` is :math:`2 V^T A^T t`, and ``intercept(w)`` that of a solution.
    """

    A: Array
    t: Array
    h: Array
    V: Array
    b: Array
    intercept: Callable[[Array], Any]

    @classmethod
    def of_form(cls, form: QuadraticForm) -> Factor:
        """From the moments of the rows."""
        h, V = np.linalg.eigh(form.H)
        kept = h > _rounding(h)
        h, V = h[kept], V[:, kept]
        b, root = V.T @ form.b, np.sqrt(0.5 * h)
        return cls(root[:, None] * V.T, _by(0.5 / root, b), h, V, b, form.intercept)

    @classmethod
    def of_rows(cls, table: TrainingSet, scaling: Any, intercept: bool) -> Factor:
        """From fewer rows than features: A has the weighted rows about their mean."""
        Z, y = np.asarray(table.X, dtype=np.float64), table.y
        s = np.full(len(y), 1.0 / len(y)) if table.weight is None else table.weight / table.weight.sum()
        if scaling is not None:
            Z = (Z - scaling[0]) / scaling[1]
        mean, level = (s @ Z, np.asarray(s @ y)) if intercept else (np.zeros(Z.shape[1]), np.zeros(y.shape[1:]))
        A, t = np.sqrt(s)[:, None] * (Z - mean), _by(np.sqrt(s), y - level)
        h, U = np.linalg.eigh(A @ A.T)
        kept = h > _rounding(h)
        root, U = np.sqrt(h[kept]), U[:, kept]
        return cls(A, t, 2.0 * h[kept], A.T @ (U / root), _by(2.0 * root, U.T @ t), lambda w: level - mean @ w)


def _rounding(h: Array) -> float:
    """What eigenvalues may be by rounding alone."""
    return len(h) * float(np.finfo(np.float64).eps) * float(h.max(initial=0.0))


def _by(scale: Array, t: Array) -> Array:
    """The rows of ``t`` times a number each."""
    return np.asarray((t.T * scale).T)


def path_solver(
    model: Any, table: TrainingSet, problem: Problem, *, by_radius: bool, start: Array | None = None
) -> PathSolver:
    """What solves the problems of a search: by penalties where there is a solver for them, else by radii."""
    f, ball = problem.objective, model._ball(table, problem)
    structure, tol = ball.structure(f.shape), max(model.tol, SCORED)
    if by_radius or model.solver != "auto":
        settings = {"solver": model.solver, "max_iter": model.max_iter}
        return RadiusSolver(problem, ball, model.tol if by_radius else tol, start, settings=settings)
    ridge = structure.lp is not None and structure.lp.p == 2.0 and structure.weights is None
    plain = structure.plain_lp is not None and structure.plain_lp.p in (1.0, 2.0)
    rows = isinstance(ball, GroupBall) and (ball.p, ball.q, ball.groups) == (2.0, 1.0, None)
    if f.structure.quadratic_form and (plain or rows):
        kind, factor = SpectralRidge if ridge else CoordinateDescent, None
        few = table.task is None and not problem.eliminated and isinstance(table.X, np.ndarray)
        if few and len(table.y) < min(f.shape[0], MOST_PARAMETERS):
            factor = Factor.of_rows(table, problem.scaling, f.fit_intercept)
        elif f.shape[0] <= MOST_PARAMETERS:
            form = f.quadratic_form()
            assert form is not None
            factor = Factor.of_form(form)
        if factor is not None:
            return kind(problem, ball, tol, start, factor=factor)
    if ridge and (f.structure.hessian or f.structure.quadratic):
        return RidgePath(problem, ball, tol, start)
    if has_working_sets(f, ball):
        return WorkingSetPath(problem, ball, max(model.tol, SCORED_SETS), start)
    settings = {"solver": model.solver, "max_iter": model.max_iter}
    return RadiusSolver(problem, ball, tol, start, settings=settings)
