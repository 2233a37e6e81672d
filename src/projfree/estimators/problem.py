"""The objective of a fit, and the way back from its parameter to coefficients in the units of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, is_sparse
from projfree.data import Data, as_data
from projfree.data.column_stats import TableErrors
from projfree.estimators.table import Table
from projfree.estimators.unpenalised import UnpenalisedBlock
from projfree.losses.base import Loss
from projfree.losses.biweight import BiWeight
from projfree.losses.huber import Huber
from projfree.losses.quantile import Quantile
from projfree.losses.squared import is_squared
from projfree.objectives import Objective

#: ``(w, intercept) -> (coefficients of shape (d,) or (d, k), intercept)``.
Back = Callable[[Array, Any], tuple[Array, Array]]

#: The shift and the divisor of each column.
Scaling = tuple[Array, Array]
#: Losses of the residual alone whose intercept is searched for: targets may be shifted for them.
OF_RESIDUALS = (Huber, Quantile, BiWeight)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is minimised.

    Attributes
    ----------
    objective : Objective
        The mean loss, with an intercept that is minimised out.
    raw : callable
        From a parameter and an intercept of the objective to those of the table.
    scaling : tuple of ndarray, or None
        What columns were shifted and divided by; None where they were left as they are.
    free : tuple of int
        Rows of the parameter that no ball holds; empty where there are none, or where they were minimised out.
    eliminated : bool
        Whether free columns were minimised out beforehand, so that the objective has residuals as its rows.
    """

    objective: Objective
    raw: Back
    scaling: Scaling | None
    free: tuple[int, ...] = ()
    eliminated: bool = False


def make_problem(
    table: Table, loss: Loss, *, intercept: bool, standardize: bool | Scaling, free: tuple[int, ...]
) -> Problem:
    """The objective for these rows; the scaling of an earlier problem may be given.

    Squares minimise out free columns and the intercepts of tasks beforehand (Frisch and Waugh): the residuals of
    features and targets from a regression on them are what is left. Other losses keep free columns as coordinates.
    """
    data, scaling = table.data, None  # this checks the sizes of entries and the weights, whatever is done with them
    if table.task is not None:
        return _tasks(table, loss, intercept, standardize, free)
    if free and is_squared(loss):
        return _partialled(table, loss, intercept, standardize, free)
    if standardize:  # a view, also of sparse rows; centring keeps the intercept small, and with it its rounding
        scaling = _scaling(data, standardize, centre=intercept)
        data = data.standardized(*scaling)
    if not (intercept and type(loss) in OF_RESIDUALS):
        return Problem(Objective(loss, data, fit_intercept=intercept), data.column_stats.raw, scaling, free)
    # The median is an order statistic, the same in every storage and order of rows; the intercept that is searched for
    # is then small, and with it its rounding.
    centre = data.quantile(0.5)
    data = data.with_targets(partial(_less, centre))
    objective = Objective(loss, data, fit_intercept=True)
    return Problem(objective, lambda w, b: data.column_stats.raw(w, b + centre), scaling, free)


def _scaling(data: Data, given: bool | Scaling, *, centre: bool) -> Scaling:
    if not isinstance(given, bool):
        return given
    own = data.column_stats
    return own.mean if centre else np.zeros(data.shape(())), own.deviation(data.rounding_units, 1.0)


def _less(centre: Array, y: Array) -> Array:
    """Targets about a centre."""
    return np.asarray(y - centre)


def _partialled(
    table: Table, loss: Loss, intercept: bool, standardize: bool | Scaling, free: tuple[int, ...]
) -> Problem:
    X = table.X.toarray() if is_sparse(table.X) else np.asarray(table.X)
    kept = np.setdiff1d(np.arange(X.shape[1]), free)
    block = UnpenalisedBlock(np.asarray(X[:, list(free)], dtype=np.float64), table.weight, intercept)
    features, targets = block.residuals(X[:, kept]), block.residuals(table.y)
    data, scaling = as_data(features.rest, targets.rest, table.weight), None
    scale = np.ones(len(kept))
    if standardize:
        scaling = _scaling(data, standardize, centre=False)
        data, scale = data.standardized(*scaling), scaling[1]
    errors = targets.error, features.error / scale, targets.left, features.left / scale
    errors_of_table = TableErrors(*(float(np.linalg.norm(each)) for each in errors))
    data.column_stats = replace(data.column_stats, errors=errors_of_table)

    def raw(w: Array, _: Any) -> tuple[Array, Array]:
        inner = data.column_stats.raw(w)[0]
        outer, constant = block.coefficients(targets.along - features.along @ inner)
        coef = np.empty((X.shape[1], *w.shape[1:]))
        coef[kept], coef[list(free)] = inner, outer
        return coef, constant

    return Problem(Objective(loss, data), raw, scaling, eliminated=True)


def _tasks(table: Table, loss: Loss, intercept: bool, standardize: bool | Scaling, free: tuple[int, ...]) -> Problem:
    from projfree.data.sparse import TaskData  # brings in SciPy's sparse arrays

    if free:
        raise ValueError("`free` columns and `task` do not go together; give each task its own intercept instead.")
    X, y, task = np.asarray(table.X.toarray() if is_sparse(table.X) else table.X), table.y, table.task
    assert task is not None
    scaling, scale = None, np.ones(X.shape[1])
    if standardize:
        own = _deviations(X, table.weight) if isinstance(standardize, bool) else standardize[1]
        scaling, scale = (np.zeros(X.shape[1]), own), own
    if not intercept:
        data: Data = TaskData(X / scale, y, task, table.weight, table.tasks)
        return Problem(Objective(loss, data), lambda w, b: (w / scale[:, None], np.zeros(table.tasks)), scaling)
    if not is_squared(loss):  # one more feature, the constant one, that no ball holds
        data = TaskData(np.column_stack([X / scale, np.ones(len(X))]), y, task, table.weight, table.tasks)
        free = (X.shape[1],)
        return Problem(Objective(loss, data), lambda w, b: (w[:-1] / scale[:, None], w[-1]), scaling, free)
    (Xc, Xm), (yc, ym) = _centred(X, task, table), _centred(y[:, None], task, table)
    Xc, Xm, yc, ym = Xc / scale, Xm / scale, yc[:, 0], ym[:, 0]  # centred first: large means would be rounded
    data = TaskData(Xc, yc, task, table.weight, table.tasks)
    # Entries are rounded three times, and the means left over are rounding of sums of centred entries.
    sizes = _root_mean_square(yc, table), _root_mean_square(Xc, table)
    errors = TableErrors(*(UNIT * units * size for units in (4.0, len(X) + 4.0) for size in sizes))
    data.column_stats = replace(data.column_stats, errors=errors)

    def raw(w: Array, _: Any) -> tuple[Array, Array]:
        return w / scale[:, None], ym - np.einsum("tj,jt->t", Xm, w)

    return Problem(Objective(loss, data), raw, scaling)


def _centred(Z: Array, task: Array, table: Table) -> tuple[Array, Array]:
    """Rows less the mean of their task, and these means.

    Means that are large beside the deviations are rounded by more than the deviations are, so their rest is
    subtracted too.
    """
    first = _means(Z, task, table)
    Z = Z - first[task]
    second = _means(Z, task, table)
    return Z - second[task], first + second


def _root_mean_square(Z: Array, table: Table) -> float:
    s = np.ones(len(Z)) if table.weight is None else table.weight
    return float(np.sqrt(np.tensordot(s / s.sum(), Z * Z, axes=1).sum()))


def _means(Z: Array, task: Array, table: Table) -> Array:
    """The weighted mean of each task, 0 where it has no rows."""
    s = np.ones(len(Z)) if table.weight is None else table.weight
    total = np.bincount(task, weights=s, minlength=table.tasks)
    sums = np.stack([np.bincount(task, weights=s * z, minlength=table.tasks) for z in Z.T], axis=1)
    return np.asarray(sums / np.where(total > 0, total, 1.0)[:, None])


def _deviations(X: Array, weight: Array | None) -> Array:
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    return np.where(deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300), deviation, 1.0)
