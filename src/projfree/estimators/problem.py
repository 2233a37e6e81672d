r"""The optimisation problem of a fit: objective, constraint set, and the map from its parameter to ``coef_``.

For the squared loss, unpenalised (free) columns and the intercepts of tasks are eliminated beforehand. With F the free
columns and a column of ones, :math:`\min_\gamma \|y - Xw - F\gamma\|` is the norm of :math:`P(y - Xw)`, where P
projects onto the orthogonal complement of the span of F (Frisch-Waugh theorem). The residuals of features and targets
are computed with an orthonormal basis of that span. Each comes with a bound on its distance from the exact projection,
which is subtracted from the lower bound of a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from projfree import sets
from projfree.algebra import UNIT
from projfree.checks import Array, flag, is_sparse, shown
from projfree.data import Data, as_data
from projfree.data.column_stats import EXACT, TableErrors
from projfree.estimators.constraints import constrained_ball, is_constrained
from projfree.estimators.inputs import TrainingSet, free_columns
from projfree.losses.base import Loss
from projfree.losses.biweight import BiWeight
from projfree.losses.huber import Huber
from projfree.losses.quantile import Quantile
from projfree.losses.squared import is_squared
from projfree.objectives import Objective
from projfree.sets import Constrained, ConstraintSet, LpBall, NormBall, Positive, WithUnpenalized
from projfree.sets.base import resized

#: ``(w, intercept) -> (coefficients of shape (d,) or (d, k), intercept)``.
ToCoefficients = Callable[[Array, Any], tuple[Array, Array]]

#: The shift and the divisor of each column.
Scaling = tuple[Array, Array]
#: Losses of the residual y - u whose intercept is found by a search, so that targets may be shifted.
RESIDUAL_LOSSES = (Huber, Quantile, BiWeight)
#: A free column with a relative residual below this counts as a linear combination of the columns before it.
COLLINEAR_TOL = 1e-12
#: Names of norms; an alias stands for a norm with an exponent.
NORMS, ALIASES = ("lp", "group", "schatten"), {"l1": ("lp", 1.0), "l2": ("lp", 2.0), "nuclear": ("schatten", 1.0)}
#: Bound on free coefficients relative to the range of the targets, for losses other than squares.
FREE_FACTOR = 1e4
#: The radius of ``ball_`` if ``radius_`` is 0: balls need a positive radius, and products with its points underflow.
ZERO_RADIUS = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Problem:
    """Objective of a fit, and the map from its parameter to coefficients.

    ``raw`` maps a parameter and an intercept of the objective to coefficients in the units of the rows. ``scaling`` is
    None if the columns were not scaled. ``free`` are the rows of the parameter outside the ball; it is empty if free
    columns were eliminated, in which case the rows of the objective are residuals.
    """

    objective: Objective
    raw: ToCoefficients
    scaling: Scaling | None
    free: tuple[int, ...] = ()
    eliminated: bool = False


def make_problem(
    rows: TrainingSet, loss: Loss, intercept: bool, standardize: bool | Scaling, free: Any, model: Any
) -> Problem:
    """Build the problem for these rows; ``standardize`` may be the scaling of an earlier problem.

    Losses other than squares keep free columns as coordinates of the parameter.
    """
    data, scaling = rows.data, None  # `rows.data` checks entries and weights
    free = free_columns(free, data.shape(())[0], model)
    if rows.task is not None:
        return _task_problem(rows, loss, intercept, standardize, free, model)
    if free and is_squared(loss) and not is_constrained(model):
        return _partial_out_problem(rows, loss, intercept, standardize, free)
    if standardize:  # a view, also for sparse rows; centring keeps the intercept and its rounding error small
        scaling = _scaling(data, standardize, centre=intercept)
        data = data.standardized(*scaling)
    elif free:  # the bound on free coefficients is meant for columns of unit size
        mean, deviation = _scaling(data, True, centre=False)
        scaling = mean, np.where(np.isin(np.arange(len(mean)), free), deviation, 1.0)
        data = data.standardized(*scaling)
    if not (intercept and type(loss) in RESIDUAL_LOSSES):
        return Problem(Objective(loss, data, fit_intercept=intercept), data.column_stats.raw, scaling, free)
    # The median does not depend on storage or row order. After the shift, the intercept and its rounding error are
    # small.
    centre = data.quantile(0.5)
    objective = Objective(loss, data.with_targets(partial(_subtract, centre)), fit_intercept=True)
    return Problem(objective, lambda w, b: data.column_stats.raw(w, b + centre), scaling, free)


def _scaling(data: Data, given: bool | Scaling, *, centre: bool) -> Scaling:
    if not isinstance(given, bool):
        return given
    own = data.column_stats
    return own.mean if centre else np.zeros(data.shape(())), own.deviation(data.rounding_units, 1.0)


def _subtract(centre: Array, y: Array) -> Array:
    """Return the targets minus a constant; a function of its own so that workers can unpickle it."""
    return np.asarray(y - centre)


def _partial_out_problem(
    rows: TrainingSet, loss: Loss, intercept: bool, standardize: bool | Scaling, free: tuple[int, ...]
) -> Problem:
    X = rows.X.toarray() if is_sparse(rows.X) else np.asarray(rows.X)
    penalised = np.setdiff1d(np.arange(X.shape[1]), free)
    block = UnpenalisedBlock(np.asarray(X[:, list(free)], dtype=np.float64), rows.weight, intercept)
    features, targets = block.residuals(X[:, penalised]), block.residuals(rows.y)
    data, scaling = as_data(features.residual, targets.residual, rows.weight), None
    scale = np.ones(len(penalised))
    if standardize:
        scaling = _scaling(data, standardize, centre=False)
        data, scale = data.standardized(*scaling), scaling[1]
    errors = targets.error, features.error / scale, targets.span_error, features.span_error / scale
    errors_of_table = TableErrors(*(float(np.linalg.norm(each)) for each in errors))
    data.column_stats = replace(data.column_stats, errors=errors_of_table)

    def raw(w: Array, _: Any) -> tuple[Array, Array]:
        inner = data.column_stats.raw(w)[0]
        outer, constant = block.coefficients(targets.coordinates - features.coordinates @ inner)
        coef = np.empty((X.shape[1], *w.shape[1:]))
        coef[penalised], coef[list(free)] = inner, outer
        return coef, constant

    return Problem(Objective(loss, data), raw, scaling, eliminated=True)


def _task_problem(
    rows: TrainingSet, loss: Loss, intercept: bool, standardize: bool | Scaling, free: tuple[int, ...], model: Any
) -> Problem:
    from projfree.data.sparse import TaskData, expand_tasks  # imports SciPy's sparse arrays

    if free:
        raise ValueError("`free` columns and `task` do not go together; give each task its own intercept instead.")
    X, y, task = np.asarray(rows.X.toarray() if is_sparse(rows.X) else rows.X), rows.y, rows.task
    assert task is not None
    scaling, scale = None, np.ones(X.shape[1])
    if standardize:
        scaling = np.zeros(X.shape[1]), _scaling(rows.data, standardize, centre=False)[1]
        scale = scaling[1]
    yc, Xm, ym, errors = y, np.zeros((rows.tasks, X.shape[1])), np.zeros(rows.tasks), EXACT
    constant = intercept and not is_squared(loss)
    if constant:  # the intercepts are the coefficients of one more feature, outside the ball
        X, scale = np.column_stack([X, np.ones(len(X))]), np.append(scale, 1.0)
    elif intercept:  # center before scaling: large means would cause rounding errors
        (X, Xm), (yc, ym) = _center_by_task(X, task, rows), _center_by_task(y[:, None], task, rows)
        Xm, yc, ym = Xm / scale, yc[:, 0], ym[:, 0]
        # Each entry is rounded three times; the remaining means are rounding errors of sums of centred entries.
        sizes = _root_mean_square(yc, rows), _root_mean_square(X / scale, rows)
        errors = TableErrors(*(UNIT * units * size for units in (4.0, len(X) + 4.0) for size in sizes))
    if norm_and_exponent(model.norm, model.p) == ("lp", 1.0):  # working sets need a sparse matrix of all tasks
        data: Data = as_data(expand_tasks(X / scale, task, rows.tasks), yc, rows.weight)
    else:
        data = TaskData(X / scale, yc, task, rows.weight, rows.tasks)
    data.column_stats = replace(data.column_stats, errors=errors)

    def raw(w: Array, _: Any) -> tuple[Array, Array]:
        coef = w.reshape(-1, rows.tasks) / scale[:, None]
        return (coef[:-1], coef[-1]) if constant else (coef, ym - np.einsum("tj,jt->t", Xm * scale, coef))

    d = data.shape(())[0]
    return Problem(Objective(loss, data), raw, scaling, tuple(range(d - d // len(scale), d)) if constant else ())


def _center_by_task(Z: Array, task: Array, rows: TrainingSet) -> tuple[Array, Array]:
    """Subtract the mean of its task from each row, and return the means.

    Means that are large relative to the deviations have rounding errors of their size, so the means of the result are
    subtracted again.
    """
    first = _task_means(Z, task, rows)
    Z = Z - first[task]
    second = _task_means(Z, task, rows)
    return Z - second[task], first + second


def _root_mean_square(Z: Array, rows: TrainingSet) -> float:
    s = np.ones(len(Z)) if rows.weight is None else rows.weight
    return float(np.sqrt(np.tensordot(s / s.sum(), Z * Z, axes=1).sum()))


def _task_means(Z: Array, task: Array, rows: TrainingSet) -> Array:
    """Return the weighted mean of each task, 0 for tasks without rows."""
    s = np.ones(len(Z)) if rows.weight is None else rows.weight
    total = np.bincount(task, weights=s, minlength=rows.tasks)
    sums = np.stack([np.bincount(task, weights=s * z, minlength=rows.tasks) for z in Z.T], axis=1)
    return np.asarray(sums / np.where(total > 0, total, 1.0)[:, None])


# ---------------------------------------------------------------------- free columns with the squared loss


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of columns after a regression on the free columns, their coordinates in its basis, and error bounds.

    Bounds are root mean squares per column: ``span_error`` bounds the part of the residual that still lies in the span
    of the free columns, and ``error`` any other difference from the exact residual.
    """

    residual: Array
    coordinates: Array
    error: Array
    span_error: Array


class UnpenalisedBlock:
    """Orthonormal basis of the free columns and the intercept, in the weighted inner product.

    A free column that the preceding columns explain up to rounding gets the coefficient zero, as in R's `lm`. The
    column of ones comes first, so that all other columns are centred.
    """

    def __init__(self, F: Array, weight: Array | None, intercept: bool) -> None:
        n, k = F.shape
        s = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        self.share, self.intercept, self.columns = s / s.sum(), intercept, k
        # The column of ones is exact: subtracting a multiple of it rounds each entry relative to the difference only.
        self.basis, self.triangle, self.independent = np.ones((n, int(intercept))), np.eye(int(intercept)), []
        self.angles = np.zeros(int(intercept))
        for j in range(k):
            column = self.residuals(F[:, j])
            size = self._norms(column.residual)
            if not size:
                continue
            # The new vector leaves the span by its own rounding error and by those of the basis vectors subtracted from
            # it.
            angle = (column.error + np.linalg.norm(self.angles * column.coordinates)) / size
            self.basis = np.column_stack([self.basis, column.residual / size])
            grown = np.eye(len(self.triangle) + 1)
            grown[:-1, :-1], grown[:-1, -1], grown[-1, -1] = self.triangle, column.coordinates, size
            self.triangle, self.angles = grown, np.append(self.angles, angle)
            self.independent.append(j)

    def residuals(self, Z: Any) -> Residuals:
        """Return the residuals of the columns of ``Z`` after a weighted regression on the block."""
        residual = np.asarray(Z, dtype=np.float64)
        coordinates: Array = np.zeros((self.basis.shape[1], *residual.shape[1:]))
        ones, others = slice(0, int(self.intercept)), slice(int(self.intercept), None)
        residual, coordinates = self._project_out(residual, coordinates, ones)
        centred = self._norms(residual)
        for part in (others, ones, others):  # two rounds suffice: Giraud, Langou and Rozloznik (2005)
            residual, coordinates = self._project_out(residual, coordinates, part)
        collinear = self._norms(residual) <= COLLINEAR_TOL * centred
        theta = float(np.linalg.norm(self.angles))
        n, k = self.basis.shape
        # Each basis vector rounds an entry a few times, relative to the centred column. The basis leaves the span by
        # the angle theta. A column that is set to zero misses its whole residual.
        error = (UNIT * 8.0 * (k + 1) + 2.0 * theta + np.where(collinear, COLLINEAR_TOL, 0.0)) * centred
        span_error = (UNIT * 3.0 * n + theta) * centred  # inner products of n terms
        return Residuals(np.where(collinear, 0.0, residual), coordinates, error, span_error)

    def _project_out(self, residual: Array, coordinates: Array, part: slice) -> tuple[Array, Array]:
        """Subtract the projection onto some of the basis vectors, and add its coordinates."""
        Q = self.basis[:, part]
        moved = (Q.T * self.share) @ residual
        coordinates = coordinates.copy()
        coordinates[part] += moved
        return residual - Q @ moved, coordinates

    def _norms(self, Z: Array) -> Any:
        """Return the weighted root mean square of each column."""
        return np.sqrt(np.tensordot(self.share, Z * Z, axes=1))

    def coefficients(self, coordinates: Array) -> tuple[Array, Array]:
        """Return the coefficients of the free columns and the intercept for coordinates in the basis."""
        from scipy.linalg import solve_triangular

        solution = solve_triangular(self.triangle, coordinates) if len(coordinates) else coordinates
        constant = int(self.intercept)
        coef = np.zeros((self.columns, *coordinates.shape[1:]))
        coef[self.independent] = solution[constant:]
        return coef, solution[0] if constant else np.zeros(coordinates.shape[1:])


# ---------------------------------------------------------------------- the constraint set


def norm_and_exponent(norm: Any, p: Any) -> tuple[Any, float]:
    """Return the name of the norm and its exponent: by default 2, and 1 for Schatten norms, where 2 would be ridge."""
    kind, own = ALIASES.get(norm, (norm, None)) if isinstance(norm, str) else (norm, None)
    if own is not None and p is not None and p != own:
        raise ValueError(f"`norm={norm!r}` has the exponent {own:g}, got `p={shown(p)}`; leave `p` out.")
    if own is None and p is None:
        own = 1.0 if isinstance(kind, str) and kind == "schatten" else 2.0
    return kind, p if own is None else own


def make_ball(model: Any, rows: TrainingSet, problem: Problem, radius: float) -> ConstraintSet:
    """Build the constraint set of an estimator; raise ValueError if an argument does not fit the problem."""
    f, free, groups = problem.objective, problem.free, model.feature_groups
    norm, p = norm_and_exponent(model.norm, model.p)
    shape = (f.shape[0] - len(free), *f.shape[1:])
    if groups is not None:
        if norm != "group":
            raise ValueError(f"`feature_groups` needs `norm='group'`, got {shown(norm)}.")
        groups = group_labels(groups)
        groups = tuple(np.delete(groups, list(free_columns(model.free, len(groups), model))).tolist())
    if isinstance(norm, ConstraintSet):
        ball = norm
    elif norm == "lp":
        ball = LpBall(p, radius)
    elif norm == "group":
        if groups is None and len(shape) == 1:
            raise ValueError("`norm='group'` with one output needs `feature_groups`, a label for each feature.")
        ball = sets.GroupBall(p, 1.0 if model.q is None else model.q, radius, groups)
    elif norm == "schatten":
        if len(shape) == 1:
            raise ValueError(
                "`norm='schatten'` needs coefficients that are a matrix: several outputs, classes or tasks."
            )
        ball = sets.SchattenBall(p, radius)
    else:
        raise ValueError(
            f"`norm` must be one of {', '.join(map(repr, (*NORMS, *ALIASES)))} or a ConstraintSet, got {shown(norm)}."
        )
    if is_constrained(model):
        # With constraints, squares keep free columns as coordinates too. A small bound on them costs less of the gap.
        outer = WithUnpenalized(ball, free, 0.1 * _free_bound(rows, model.fit_intercept)) if free else ball
        return constrained_ball(model, outer, f.shape, problem)
    if flag("positive", model.positive):
        if not isinstance(ball, NormBall):
            raise TypeError(
                f"`positive=True` needs an l_p or a group ball, got {shown(ball)}; use `Positive` yourself."
            )
        ball = Positive(ball)
    ball.check_shape(shape)
    return WithUnpenalized(ball, free, _free_bound(rows, model.fit_intercept)) if free else ball


def _free_bound(rows: TrainingSet, intercept: bool) -> float:
    if rows.y.dtype.kind in "iu":
        return FREE_FACTOR
    # An intercept absorbs the mean of the targets, except with tasks, whose intercepts are free coefficients.
    size = np.ptp(rows.y) if intercept and rows.task is None else np.abs(rows.y).max(initial=1.0)
    return FREE_FACTOR * max(1.0, float(size))


def group_labels(groups: Any) -> tuple[int, ...]:
    """Convert group labels of any type, or a list of lists of columns, to one integer per feature."""
    if isinstance(groups, Sequence) and groups and all(isinstance(g, list | tuple | np.ndarray) for g in groups):
        owner = [(int(column), k) for k, members in enumerate(groups) for column in members]
        if [column for column, _ in sorted(owner)] != list(range(len(owner))):
            raise ValueError("`feature_groups` as lists of columns must name each column once, from 0.")
        return tuple(k for _, k in sorted(owner))
    return tuple(np.unique(np.asarray(groups), return_inverse=True)[1].tolist())


def inner_ball(ball: ConstraintSet) -> Any:
    """Return the ball inside `WithUnpenalized`, `Positive` and `Constrained`."""
    while isinstance(ball, WithUnpenalized | Positive | Constrained):
        ball = ball.ball
    return ball


def radius_of(ball: ConstraintSet) -> float | None:
    """Return the radius of a set, None if it has none."""
    radius = getattr(inner_ball(ball), "radius", None)
    return None if radius is None else 0.0 if radius == ZERO_RADIUS else float(radius)


def ball_through(ball: ConstraintSet, w: Array) -> ConstraintSet:
    """Return the ball with ``w`` on its boundary."""
    through: ConstraintSet = resized(ball, ball_norm(ball, w) or ZERO_RADIUS)
    return through


def ball_norm(ball: ConstraintSet, w: Array) -> float:
    """Return the norm of ``w`` in the ball inside a set, without its free entries."""
    outer, inner = ball.ball if isinstance(ball, Constrained) else ball, inner_ball(ball)
    w = outer.split(w)[0] if isinstance(outer, WithUnpenalized) else w
    if not isinstance(inner, NormBall):
        raise TypeError(f"penalties and radius grids need a norm ball, got {shown(ball)}; give the set a size.")
    return inner.norm(w)


def nearest_feasible(ball: ConstraintSet, w: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Return ``w`` if it lies in the set, else a nearby point of the set; None if no projection is available."""
    if w is None or w.shape != shape or not np.isfinite(w).all():
        return None
    if ball.contains(w):
        return w
    inner = ball.ball if isinstance(ball, Positive) else ball
    if isinstance(inner, NormBall) and ball.contains(shrunk := w * (inner.radius / inner.norm(w))):
        return np.asarray(shrunk)
    return ball.project(w) if ball.structure(shape).projection != "none" else None
