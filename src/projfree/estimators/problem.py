r"""The problem of a fit: the set, the objective, and the way back from its parameter to the units of the table.

Squares minimise out free columns and the intercepts of tasks beforehand. With F the free columns and a column of ones,
:math:`\min_\gamma \|y - Xw - F\gamma\|` is the norm of :math:`P(y - Xw)`, where P projects onto the complement of the
span of F (Frisch and Waugh). Residuals of features and targets are formed with an orthonormal basis of that span, and
each comes with a bound on its distance from the exact projection, which the lower bound of a fit is charged with.
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
from projfree.sets import Constrained, ConstraintSet, LpBall, NormBall, Positive, WithFree
from projfree.sets.base import resized

#: ``(w, intercept) -> (coefficients of shape (d,) or (d, k), intercept)``.
ToCoefficients = Callable[[Array, Any], tuple[Array, Array]]

#: The shift and the divisor of each column.
Scaling = tuple[Array, Array]
#: Losses of the residual alone whose intercept is searched for: targets may be shifted for them.
RESIDUAL_LOSSES = (Huber, Quantile, BiWeight)
#: A column that others explain up to this part of it is taken for a combination of them: its residual is rounding.
COLLINEAR_TOL = 1e-12
#: The kinds of norms; aliases stand for a kind with an exponent.
NORMS, ALIASES = ("lp", "group", "schatten"), {"l1": ("lp", 1.0), "l2": ("lp", 2.0), "nuclear": ("schatten", 1.0)}
#: Free coefficients of losses other than squares may be this many times as large as the range of the targets.
FREE_FACTOR = 1e4
#: The radius of ``ball_`` where ``radius_`` is 0, as balls need a positive one: products with its points vanish.
ZERO_RADIUS = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is minimised, and the way back to the rows.

    ``raw`` turns a parameter and an intercept of the objective into those of the rows. ``scaling`` is None where
    columns were left as they are. ``free`` are the rows of the parameter that no ball holds; where free columns were
    eliminated, it is empty and the objective has residuals as its rows.
    """

    objective: Objective
    raw: ToCoefficients
    scaling: Scaling | None
    free: tuple[int, ...] = ()
    eliminated: bool = False


def make_problem(
    rows: TrainingSet, loss: Loss, intercept: bool, standardize: bool | Scaling, free: Any, model: Any
) -> Problem:
    """The objective for these rows; the scaling of an earlier problem may be given.

    Losses other than squares keep free columns as coordinates.
    """
    data, scaling = rows.data, None  # this checks the sizes of entries and the weights, whatever is done with them
    free = free_columns(free, data.shape(())[0], model)
    if rows.task is not None:
        return _task_problem(rows, loss, intercept, standardize, free, model)
    if free and is_squared(loss) and not is_constrained(model):
        return _partial_out_problem(rows, loss, intercept, standardize, free)
    if standardize:  # a view, also of sparse rows; centring keeps the intercept small, and with it its rounding
        scaling = _scaling(data, standardize, centre=intercept)
        data = data.standardized(*scaling)
    if not (intercept and type(loss) in RESIDUAL_LOSSES):
        return Problem(Objective(loss, data, fit_intercept=intercept), data.column_stats.raw, scaling, free)
    # The median is an order statistic, the same in every storage and order of rows; the intercept that is searched for
    # is then small, and with it its rounding.
    centre = data.quantile(0.5)
    objective = Objective(loss, data.with_targets(partial(_subtract, centre)), fit_intercept=True)
    return Problem(objective, lambda w, b: data.column_stats.raw(w, b + centre), scaling, free)


def _scaling(data: Data, given: bool | Scaling, *, centre: bool) -> Scaling:
    if not isinstance(given, bool):
        return given
    own = data.column_stats
    return own.mean if centre else np.zeros(data.shape(())), own.deviation(data.rounding_units, 1.0)


def _subtract(centre: Array, y: Array) -> Array:
    """Targets about a centre."""
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
    from projfree.data.sparse import TaskData, spread_out  # brings in SciPy's sparse arrays

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
    if constant:  # one more feature, that no ball holds
        X, scale = np.column_stack([X, np.ones(len(X))]), np.append(scale, 1.0)
    elif intercept:  # centred first: large means would be rounded
        (X, Xm), (yc, ym) = _center_by_task(X, task, rows), _center_by_task(y[:, None], task, rows)
        Xm, yc, ym = Xm / scale, yc[:, 0], ym[:, 0]
        # Entries are rounded three times, and the means left over are rounding of sums of centred entries.
        sizes = _root_mean_square(yc, rows), _root_mean_square(X / scale, rows)
        errors = TableErrors(*(UNIT * units * size for units in (4.0, len(X) + 4.0) for size in sizes))
    if norm_and_exponent(model.norm, model.p) == ("lp", 1.0):  # a plain table, in which working sets find features
        data: Data = as_data(spread_out(X / scale, task, rows.tasks), yc, rows.weight)
    else:
        data = TaskData(X / scale, yc, task, rows.weight, rows.tasks)
    data.column_stats = replace(data.column_stats, errors=errors)

    def raw(w: Array, _: Any) -> tuple[Array, Array]:
        coef = w.reshape(-1, rows.tasks) / scale[:, None]
        return (coef[:-1], coef[-1]) if constant else (coef, ym - np.einsum("tj,jt->t", Xm * scale, coef))

    d = data.shape(())[0]
    return Problem(Objective(loss, data), raw, scaling, tuple(range(d - d // len(scale), d)) if constant else ())


def _center_by_task(Z: Array, task: Array, rows: TrainingSet) -> tuple[Array, Array]:
    """Rows less the mean of their task, and these means.

    Means that are large beside the deviations are rounded by more than the deviations are, so their rest is
    subtracted too.
    """
    first = _task_means(Z, task, rows)
    Z = Z - first[task]
    second = _task_means(Z, task, rows)
    return Z - second[task], first + second


def _root_mean_square(Z: Array, rows: TrainingSet) -> float:
    s = np.ones(len(Z)) if rows.weight is None else rows.weight
    return float(np.sqrt(np.tensordot(s / s.sum(), Z * Z, axes=1).sum()))


def _task_means(Z: Array, task: Array, rows: TrainingSet) -> Array:
    """The weighted mean of each task, 0 where it has no rows."""
    s = np.ones(len(Z)) if rows.weight is None else rows.weight
    total = np.bincount(task, weights=s, minlength=rows.tasks)
    sums = np.stack([np.bincount(task, weights=s * z, minlength=rows.tasks) for z in Z.T], axis=1)
    return np.asarray(sums / np.where(total > 0, total, 1.0)[:, None])


# ---------------------------------------------------------------------- free columns of squares


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of columns from the block, their coordinates in its basis, and the errors of each column.

    Root mean squares: ``span_error`` bounds the part of a column that still lies in the span of the block, and
    ``error`` all other differences between it and the exact residual.
    """

    residual: Array
    coordinates: Array
    error: Array
    span_error: Array


class UnpenalisedBlock:
    """An orthonormal basis, in the weighted inner product, of the free columns and the intercept.

    A free column that the ones before it explain up to rounding gets the coefficient zero, as in R's `lm`. The column
    of ones comes first, so that all others are centred.
    """

    def __init__(self, F: Array, weight: Array | None, intercept: bool) -> None:
        n, k = F.shape
        s = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        self.share, self.intercept, self.columns = s / s.sum(), intercept, k
        # The ones are exact: subtracting a multiple of them rounds an entry relative to the difference alone.
        self.basis, self.triangle, self.independent = np.ones((n, int(intercept))), np.eye(int(intercept)), []
        self.angles = np.zeros(int(intercept))
        for j in range(k):
            column = self.residuals(F[:, j])
            size = self._norms(column.residual)
            if not size:
                continue
            # The new vector lies in the span up to its own rounding and that of the vectors it was made from.
            angle = (column.error + np.linalg.norm(self.angles * column.coordinates)) / size
            self.basis = np.column_stack([self.basis, column.residual / size])
            grown = np.eye(len(self.triangle) + 1)
            grown[:-1, :-1], grown[:-1, -1], grown[-1, -1] = self.triangle, column.coordinates, size
            self.triangle, self.angles = grown, np.append(self.angles, angle)
            self.independent.append(j)

    def residuals(self, Z: Any) -> Residuals:
        """What is left of each column of ``Z`` after a regression on the block."""
        residual = np.asarray(Z, dtype=np.float64)
        coordinates: Array = np.zeros((self.basis.shape[1], *residual.shape[1:]))
        ones, others = slice(0, int(self.intercept)), slice(int(self.intercept), None)
        residual, coordinates = self._project_out(residual, coordinates, ones)
        centred = self._norms(residual)
        for part in (others, ones, others):  # twice is enough: Giraud, Langou and Rozloznik (2005)
            residual, coordinates = self._project_out(residual, coordinates, part)
        gone = self._norms(residual) <= COLLINEAR_TOL * centred
        theta = float(np.linalg.norm(self.angles))
        n, k = self.basis.shape
        # An entry is rounded a few times for each vector of the basis, relatively to the centred column; the basis
        # leaves the span by the angle theta; and of a column that is set to zero, all that was left is missing.
        error = (UNIT * 8.0 * (k + 1) + 2.0 * theta + np.where(gone, COLLINEAR_TOL, 0.0)) * centred
        span_error = (UNIT * 3.0 * n + theta) * centred  # inner products of n terms
        return Residuals(np.where(gone, 0.0, residual), coordinates, error, span_error)

    def _project_out(self, residual: Array, coordinates: Array, part: slice) -> tuple[Array, Array]:
        """One round of projection with a part of the basis."""
        Q = self.basis[:, part]
        moved = (Q.T * self.share) @ residual
        coordinates = coordinates.copy()
        coordinates[part] += moved
        return residual - Q @ moved, coordinates

    def _norms(self, Z: Array) -> Any:
        """The root of the weighted mean square of each column."""
        return np.sqrt(np.tensordot(self.share, Z * Z, axes=1))

    def coefficients(self, coordinates: Array) -> tuple[Array, Array]:
        """Coefficients of the free columns, and the intercept, from coordinates in the basis."""
        from scipy.linalg import solve_triangular

        solution = solve_triangular(self.triangle, coordinates) if len(coordinates) else coordinates
        constant = int(self.intercept)
        coef = np.zeros((self.columns, *coordinates.shape[1:]))
        coef[self.independent] = solution[constant:]
        return coef, solution[0] if constant else np.zeros(coordinates.shape[1:])


# ---------------------------------------------------------------------- the set


def norm_and_exponent(norm: Any, p: Any) -> tuple[Any, float]:
    """The kind of a norm and its exponent, by default 2, or 1 for singular values, where 2 would be a ridge."""
    kind, own = ALIASES.get(norm, (norm, None)) if isinstance(norm, str) else (norm, None)
    if own is not None and p is not None and p != own:
        raise ValueError(f"`norm={norm!r}` has the exponent {own:g}, got `p={shown(p)}`; leave `p` out.")
    if own is None and p is None:
        own = 1.0 if isinstance(kind, str) and kind == "schatten" else 2.0
    return kind, p if own is None else own


def make_ball(model: Any, rows: TrainingSet, problem: Problem, radius: float) -> ConstraintSet:
    """The set of an estimator for the parameter of a problem, or a sentence on which argument does not fit."""
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
        # Squares keep free columns as coordinates too, whose bound costs digits of the gap.
        outer = WithFree(ball, free, 0.1 * _free_bound(rows, model.fit_intercept)) if free else ball
        return constrained_ball(model, outer, f.shape, problem)
    if flag("positive", model.positive):
        if not isinstance(ball, NormBall):
            raise TypeError(
                f"`positive=True` needs an l_p or a group ball, got {shown(ball)}; use `Positive` yourself."
            )
        ball = Positive(ball)
    ball.check_shape(shape)
    return WithFree(ball, free, _free_bound(rows, model.fit_intercept)) if free else ball


def _free_bound(rows: TrainingSet, intercept: bool) -> float:
    if rows.y.dtype.kind in "iu":
        return FREE_FACTOR
    # An intercept takes the level of the targets; those of tasks are free coefficients themselves.
    size = np.ptp(rows.y) if intercept and rows.task is None else np.abs(rows.y).max(initial=1.0)
    return FREE_FACTOR * max(1.0, float(size))


def group_labels(groups: Any) -> tuple[int, ...]:
    """Labels of any kind as whole numbers; a list of lists of columns names the groups one after the other."""
    if isinstance(groups, Sequence) and groups and all(isinstance(g, list | tuple | np.ndarray) for g in groups):
        owner = [(int(column), k) for k, members in enumerate(groups) for column in members]
        if [column for column, _ in sorted(owner)] != list(range(len(owner))):
            raise ValueError("`feature_groups` as lists of columns must name each column once, from 0.")
        return tuple(k for _, k in sorted(owner))
    return tuple(np.unique(np.asarray(groups), return_inverse=True)[1].tolist())


def inner_ball(ball: ConstraintSet) -> Any:
    """The set behind free columns, signs and other constraints."""
    while isinstance(ball, WithFree | Positive | Constrained):
        ball = ball.ball
    return ball


def radius_of(ball: ConstraintSet) -> float | None:
    """The radius of a ball, None where the set has none."""
    radius = getattr(inner_ball(ball), "radius", None)
    return None if radius is None else 0.0 if radius == ZERO_RADIUS else float(radius)


def ball_through(ball: ConstraintSet, w: Array) -> ConstraintSet:
    """The ball with ``w`` on its boundary."""
    through: ConstraintSet = resized(ball, ball_norm(ball, w) or ZERO_RADIUS)
    return through


def ball_norm(ball: ConstraintSet, w: Array) -> float:
    """The norm of the ball behind a set, of the part of ``w`` that lies in it."""
    outer, inner = ball.ball if isinstance(ball, Constrained) else ball, inner_ball(ball)
    w = outer.split(w)[0] if isinstance(outer, WithFree) else w
    if not isinstance(inner, NormBall):
        raise TypeError(f"penalties and radius grids need a norm ball, got {shown(ball)}; give the set a size.")
    return inner.norm(w)


def nearest_feasible(ball: ConstraintSet, w: Array | None, shape: tuple[int, ...]) -> Array | None:
    """``w`` if it lies in the set, else the nearest point; None where there is no way to it."""
    if w is None or w.shape != shape or not np.isfinite(w).all():
        return None
    if ball.contains(w):
        return w
    inner = ball.ball if isinstance(ball, Positive) else ball
    if isinstance(inner, NormBall) and ball.contains(shrunk := w * (inner.radius / inner.norm(w))):
        return np.asarray(shrunk)
    return ball.project(w) if ball.structure(shape).projection != "none" else None
