r"""Regularisation paths for cross-validation: one problem solved at many levels, each warm-started from the last.

A path goes from strong to weak regularisation. Its levels are

* weights :math:`\lambda` of the penalty :math:`\tfrac\lambda k \|w\|^k` for l_1 and group norms (k = 1), where they are
  the multipliers as in `LassoCV`, and for l_2 (k = 2) as in `RidgeCV`;
* radii for other norms, for other solvers than ``"auto"``, and if the user gives radii.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from projfree.algebra import UNIT
from projfree.checks import Array
from projfree.estimators.inputs import TrainingSet
from projfree.estimators.penalty import curvature_at_zero, evaluate_at_zero, minimize_with_penalty, penalty_method
from projfree.estimators.problem import Problem, ball_norm, make_ball, nearest_feasible
from projfree.losses.base import Loss
from projfree.objectives import QuadraticForm
from projfree.objectives.base import Evaluation
from projfree.run import minimize, path
from projfree.run.certificate import multiplier
from projfree.sets import Constrained, GroupBall
from projfree.sets.base import resized
from projfree.solvers.choose import MOST_PARAMETERS, plan

#: A solution: the parameter and the intercept.
Solution = tuple[Array, Any]

#: Tolerance of solutions that are only scored, as in `LassoCV`. Newton's method on working sets converges so fast that
#: two more digits cost little; without them, solutions of neighbouring levels would be equal.
PATH_TOL, WORKING_SET_TOL = 1e-4, 1e-6
#: The ratio of the smallest to the largest multiplier of a grid, as in `LassoCV`.
SMALLEST_RATIO = 1e-3
#: Largest and smallest ratio of consecutive levels that the secant method may take.
MAX_LEVEL_RATIO, MIN_LEVEL_RATIO = 4.0, 1.01
#: Factor of the search for the first level after zero.
SEARCH_FACTOR = 10.0


@dataclass(frozen=True, eq=False)
class RadiusPath:
    """Coefficients along a path of radii, fitted to all rows.

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
        The Lagrange multiplier of each radius; NaN if the set has no norm.
    """

    p: float
    radii: Array
    coefs: Array
    intercepts: Array
    multipliers: Array

    def __repr__(self) -> str:
        radii = f"{len(self.radii)} from {self.radii[0]:.4g} to {self.radii[-1]:.4g}"
        return f"RadiusPath(p: {self.p:g}, radii: {radii}, coefs: {' x '.join(map(str, self.coefs.shape))})"


class PathSolver:
    """Solve a problem level by level with the solver of a single fit; each call continues from the last solution."""

    def __init__(
        self, model: Any, rows: TrainingSet, problem: Problem, *, by_radius: bool, start: Array | None = None
    ) -> None:
        self.problem, self.f, self.ball = problem, problem.objective, make_ball(model, rows, problem, 1.0)
        self.settings, self.tol = {"solver": model.solver, "max_iter": model.max_iter}, max(model.tol, PATH_TOL)
        self.w = np.zeros(self.f.shape) if start is None else start
        self.current: Evaluation | None = None
        self._solutions, self._multipliers = dict[float, Solution](), dict[float, float]()
        #: The exponent of the penalty, 0 if levels are radii.
        self.power, self._solve = 0, self._solve_on_balls
        structure, known = self.ball.structure(self.f.shape), self.f.structure
        if by_radius or model.solver != "auto":
            self.tol = model.tol if by_radius else self.tol
            return
        plain = structure.plain_lp is not None and structure.plain_lp.p in (1.0, 2.0)
        groups = isinstance(self.ball, GroupBall) and (self.ball.p, self.ball.q, self.ball.groups) == (2.0, 1.0, None)
        ridge = structure.lp is not None and structure.lp.p == 2.0 and structure.weights is None
        reduced = (
            ReducedLeastSquares.from_problem(self.f, rows, problem)
            if known.quadratic_form and (plain or groups)
            else None
        )
        if reduced is not None:
            self.power, self.reduced = (2, reduced) if ridge else (1, reduced)
            self._solve = self._solve_ridge if ridge else self._solve_lasso
        elif (method := penalty_method(self.f, self.ball)) is not None:
            self.method, self._solve, self.power = method, self._solve_penalised, 2
            if method is minimize_with_penalty:
                self.power, self.tol = 1, max(model.tol, WORKING_SET_TOL)

    def solve(self, levels: Array) -> list[Solution]:
        """Return the solutions at these levels, from strong to weak regularisation; each level is solved once."""
        ends = set() if self._solve == self._solve_ridge else {0.0, math.inf}
        for level in ends.intersection(levels.tolist()) - set(self._solutions):
            zero = evaluate_at_zero(self.f, self.ball)
            self._solutions[level] = zero.point.w, zero.intercept
        new = np.array([level for level in levels.tolist() if level not in self._solutions])
        if len(new):
            solutions = self._solve(new)
            self._solutions.update(zip(new.tolist(), solutions, strict=True))
            self.w = solutions[-1][0]
        return [self._solutions[level] for level in levels.tolist()]

    def multiplier(self, level: float) -> float:
        """Return the Lagrange multiplier of the norm at a level."""
        w = self.solve(np.array([level]))[0][0]
        if level in (0.0, math.inf):
            g = self.f.evaluate(self.f.point(w)).slope.gradient
            return multiplier(resized(self.ball, 1.0), g) or 0.0
        return self._multipliers[level] if not self.power else level * ball_norm(self.ball, w) ** (self.power - 1)

    def grid(self, count: int) -> Array:
        """Return levels with multipliers from the smallest one with zero coefficients down to a thousandth of it."""
        nothing = math.inf if self.power else 0.0
        self._target = self.multiplier(nothing)
        self._ratio, self._history = (
            SMALLEST_RATIO ** (1.0 / (count - 1)),
            [(0.0, self._linearise(self._target))],
        )
        if not self._target > 0.0:
            return np.array([nothing])
        return np.append(self._target if self.power == 1 else nothing, self.extend_grid(count - 1))

    def extend_grid(self, count: int) -> Array:
        """Return the next levels, with multipliers in the ratio of the grid; fewer if the multiplier vanishes."""
        levels: list[float] = []
        while len(levels) < count and self._target > 0.0:
            self._target *= self._ratio
            x = self._next_level()
            level = self._target if self.power == 1 else 1.0 / x if self.power else x
            mu = self._target if self.power == 1 else self.multiplier(level)
            if not mu > SMALLEST_RATIO * self._ratio * self._target:  # the constraint is no longer active
                self._target = 0.0
                break
            self._history = [self._history[-1], (x, self._linearise(mu))]
            levels.append(level)
        return np.array(levels)

    def _linearise(self, mu: float) -> float:
        """Transform a multiplier so that it is about linear in the radius, or in the inverse penalty for l_2."""
        return 1.0 / mu if self.power == 2 and mu > 0.0 else mu

    def _next_level(self) -> float:
        """Predict the radius, or the inverse penalty, of the next multiplier by the secant through the last two."""
        if self.power == 1:
            return 0.0
        if len(self._history) == 1:
            return self._first_level()
        (x0, y0), (x, y) = self._history
        slope = (y - y0) / (x - x0)
        rises = slope > 0.0 if self.power else slope < 0.0
        new = x + (self._linearise(self._target) - y) / slope if rises else math.inf
        return min(max(new, MIN_LEVEL_RATIO * x), MAX_LEVEL_RATIO * x)

    def _first_level(self) -> float:
        """Return the first level after zero, by the curvature at zero, or a smaller one if the multiplier falls faster.

        The curvature of a loss like Huber's is smaller at zero, where many residuals are large, than further along the
        path.
        """
        y, zero = self._history[0][1], self.f.evaluate(self.f.point(self.solve(np.array([math.inf]))[0][0]))

        def at(curvature: float) -> float:
            slope = curvature * self._ratio / self._target if self.power else -curvature
            return (self._linearise(self._target) - y) / slope

        def near(x: float) -> bool:
            return self.multiplier(1.0 / x if self.power else x) >= 0.5 * self._target

        curvature = curvature_at_zero(self.f, self.ball, zero)
        if curvature > 0.0 and near(x := at(curvature)):
            return x
        closest = at(self.f.smoothness())
        x = closest / UNIT
        while x > closest and not near(x):
            x = max(x / SEARCH_FACTOR, closest)
        return x

    # ------------------------------------------------------------------ solvers

    def _solve_on_balls(self, levels: Array) -> list[Solution]:
        """Solve over balls, with the solver that a single fit would use."""
        start, settings = (
            nearest_feasible(resized(self.ball, float(levels[0])), self.w, self.f.shape),
            dict(self.settings),
        )
        if settings["solver"] == "auto":
            settings["solver"] = plan(self.f, resized(self.ball, float(levels.max()))).solver
        result = path(self.f, self.ball, levels, tol=self.tol, start=start, record=0, **settings)
        self._multipliers.update(zip(levels.tolist(), result.multipliers.tolist(), strict=True))
        return [(result.w, result.intercept) for result in result.results]

    def _solve_penalised(self, levels: Array) -> list[Solution]:
        """Solve penalised problems by Newton's method or on working sets, as a single fit does."""
        current, solutions = self.current or self.f.evaluate(self.f.point(self.w), keep=True), []
        for level in levels.tolist():
            current, _ = self.method(self.f, self.ball, level, current, self.tol)
            solutions.append((current.point.w, current.intercept))
        self.current = current
        return solutions

    def _solve_ridge(self, levels: Array) -> list[Solution]:
        """Solve ridge regressions for all levels, from one eigendecomposition."""
        return [(w, self.reduced.intercept(w)) for w in self.reduced.ridge(levels)]

    def _solve_lasso(self, levels: Array) -> list[Solution]:
        """Solve (multi-task) lasso problems by the coordinate descent of scikit-learn."""
        A, t = np.asfortranarray(self.reduced.A), self.reduced.t
        settings = {"alphas": levels / (2.0 * len(A)), "tol": self.tol, "copy_X": False}
        with warnings.catch_warnings():  # the tolerance need not be reached for scoring
            warnings.simplefilter("ignore", ConvergenceWarning)
            if not len(A):
                points = np.zeros((len(levels), *self.f.shape))
            elif self.w.ndim == 1 or isinstance(self.ball, GroupBall):
                coefs = lasso_path(A, t, coef_init=self.w.T, **settings)[1]
                points = np.moveaxis(coefs, -1, 0).swapaxes(1, -1)
            else:  # the penalty is a sum over entries: solve each output separately
                outputs = zip(t.T, self.w.T, strict=True)
                each = [lasso_path(A, own, coef_init=w, **settings)[1] for own, w in outputs]
                points = np.moveaxis(np.stack(each), (0, 2), (2, 0))
        return [(w, self.reduced.intercept(w)) for w in points]


@dataclass(frozen=True, eq=False)
class ReducedLeastSquares:
    r"""The mean squared error as :math:`\|A w - t\|^2 + c`, where A has at most as many rows as columns.

    ``intercept(w)`` returns the optimal intercept for ``w``.
    """

    A: Array
    t: Array
    intercept: Callable[[Array], Any]

    @classmethod
    def from_problem(cls, f: Any, rows: TrainingSet, problem: Problem) -> ReducedLeastSquares | None:
        """Build it from the rows if they are fewer than the features, else from moments; None if both are many."""
        few = rows.task is None and not problem.eliminated and isinstance(rows.X, np.ndarray)
        if few and len(rows.y) < min(f.shape[0], MOST_PARAMETERS):
            return cls.from_rows(rows, problem.scaling, f.fit_intercept)
        return cls.from_moments(f.quadratic_form()) if f.shape[0] <= MOST_PARAMETERS else None

    @classmethod
    def from_moments(cls, form: QuadraticForm) -> ReducedLeastSquares:
        """Build it from the moments of the rows, by a Cholesky factor, or by an eigendecomposition if singular."""
        try:
            A = cholesky(0.5 * form.H)
            return cls(A, solve_triangular(A, 0.5 * form.b, trans=1), form.intercept)
        except LinAlgError:
            h, V = np.linalg.eigh(form.H)
            positive = h > len(h) * np.finfo(np.float64).eps * h.max(initial=0.0)
            root, V = np.sqrt(0.5 * h[positive]), V[:, positive]
            return cls(root[:, None] * V.T, _scale_rows(0.5 / root, V.T @ form.b), form.intercept)

    @classmethod
    def from_rows(cls, table: TrainingSet, scaling: Any, intercept: bool) -> ReducedLeastSquares:
        """Build it from the rows: A holds the weighted, centred rows."""
        Z, y = np.asarray(table.X, dtype=np.float64), table.y
        s = np.full(len(y), 1.0 / len(y)) if table.weight is None else table.weight / table.weight.sum()
        if scaling is not None:
            Z = (Z - scaling[0]) / scaling[1]
        mean, level = (s @ Z, np.asarray(s @ y)) if intercept else (np.zeros(Z.shape[1]), np.zeros(y.shape[1:]))
        return cls(np.sqrt(s)[:, None] * (Z - mean), _scale_rows(np.sqrt(s), y - level), lambda w: level - mean @ w)

    def ridge(self, levels: Array) -> Array:
        r"""Return the ridge solutions :math:`A^T (A A^T + \tfrac\lambda2)^{-1} t`, stacked along the first axis."""
        h, U, c = self._eigen
        c = np.stack([_scale_rows(1.0 / (h + 0.5 * level), c) for level in levels.tolist()], axis=1)
        points = self.A.T @ (U @ c.reshape(len(h), -1))
        return np.moveaxis(points.reshape(-1, *c.shape[1:]), 1, 0)

    @cached_property
    def _eigen(self) -> tuple[Array, Array, Array]:
        h, U = np.linalg.eigh(self.A @ self.A.T)
        return np.maximum(h, 0.0), U, U.T @ self.t


def _scale_rows(scale: Array, t: Array) -> Array:
    """Multiply each row of ``t`` by an entry of ``scale``."""
    return np.asarray((t.T * scale).T)


def radius_grid(model: Any, parts: Sequence[TrainingSet], loss: Loss, count: int) -> Array:
    """Return a grid of radii for problems with linear constraints.

    The grid starts at the smallest radius that is feasible in all parts. Its last radius is four times the norm of a
    nearly unconstrained solution of the first part: one that is inside its ball, or has a multiplier below a millionth
    of the gradient.
    """
    problems = [model._problem(part, loss) for part in parts]
    balls = [make_ball(model, part, problem, 1.0) for part, problem in zip(parts, problems, strict=True)]
    f, ball = problems[0].objective, balls[0]
    low = max(each.smallest_radius(f.shape) for each in balls if isinstance(each, Constrained))
    first = f.evaluate(f.point(resized(ball, low).centre(f.shape) if low else np.zeros(f.shape)))
    most = multiplier(resized(ball, 1.0), first.slope.gradient) or 1.0
    radius, size, mu = max(low, abs(first.value) / most) or 1.0, math.inf, math.inf
    while size >= (1.0 - PATH_TOL) * radius and mu > SMALLEST_RATIO**2 * most and radius < SEARCH_FACTOR**15:
        radius *= SEARCH_FACTOR
        result = minimize(f, resized(ball, radius), tol=PATH_TOL, record=0)
        size, mu = ball_norm(ball, result.w), result.multiplier or 0.0
    last = 2.0 * max(low, size) or radius  # the constraints may leave nothing but zero
    return np.append(np.geomspace(max(low, SMALLEST_RATIO * last), last, count - 1), 2.0 * last)
