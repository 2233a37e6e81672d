"""The objective of a fit, and the way back from its parameter to coefficients in the units of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array, is_sparse
from projfree.data import Data, as_data
from projfree.estimators.table import Table
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.objectives import Objective

#: ``(w, intercept) -> (coefficients of shape (d,) or (d, k), intercept)``.
Back = Callable[[Array, Any], tuple[Array, Array]]


#: A column is explained by others if no more than this part of it is left.
EXPLAINED = 1e-12


@dataclass(frozen=True, eq=False)
class Problem:
    """What is minimised.

    Attributes
    ----------
    objective : Objective
        The mean loss, with an intercept that is minimised out.
    raw : callable
        From a parameter and an intercept of the objective to those of the table.
    standardized : bool
        Whether columns were scaled.
    free : tuple of int
        Rows of the parameter that no ball holds; empty where there are none, or where they were minimised out.
    """

    objective: Objective
    raw: Back
    standardized: bool
    free: tuple[int, ...] = ()


def make_problem(table: Table, loss: Loss, *, intercept: bool, standardize: bool, free: tuple[int, ...]) -> Problem:
    """The objective for these rows.

    Squares minimise out free columns and the intercepts of tasks beforehand (Frisch and Waugh): the residuals of
    features and targets from a regression on them are what is left. Other losses keep free columns as coordinates.
    """
    if table.task is not None:
        return _tasks(table, loss, intercept, standardize, free)
    if free and is_squared(loss):
        return _partialled(table, loss, intercept, standardize, free)
    data = table.data
    if standardize:  # an intercept makes up for means, so that sparse rows stay as they are
        centred = intercept and data.stored is None
        shift = data.mean_row() if centred else np.zeros(data.shape(()))
        data = data.standardized(shift, data.column_deviation())
    return Problem(Objective(loss, data, fit_intercept=intercept), data.raw, standardize, free)


def _partialled(table: Table, loss: Loss, intercept: bool, standardize: bool, free: tuple[int, ...]) -> Problem:
    X = table.X.toarray() if is_sparse(table.X) else table.X
    kept = np.setdiff1d(np.arange(X.shape[1]), free)
    F = np.asarray(X[:, list(free)], dtype=np.float64)
    F = np.column_stack([F, np.ones(len(F))]) if intercept else F
    fit = _projection(F, table.weight)
    BX, By = fit(X[:, kept]), fit(table.y)
    rest = X[:, kept] - F @ BX
    # What the free columns explain entirely leaves rounding, which scaling would make a feature.
    rest[:, np.linalg.norm(rest, axis=0) <= EXPLAINED * np.linalg.norm(X[:, kept], axis=0)] = 0.0
    data = as_data(rest, table.y - F @ By, table.weight, scale=standardize)

    def raw(w: Array, _: Any) -> tuple[Array, Array]:
        inner = data.raw(w)[0]
        outer = By - BX @ inner
        coef = np.empty((X.shape[1], *w.shape[1:]))
        coef[kept], coef[list(free)] = inner, outer[: len(free)]
        return coef, outer[-1] if intercept else np.zeros(w.shape[1:])

    return Problem(Objective(loss, data), raw, standardize)


def _projection(F: Array, weight: Array | None) -> Callable[[Array], Array]:
    root = np.ones(len(F)) if weight is None else np.sqrt(weight)

    def fit(Z: Array) -> Array:
        solved: Array = np.linalg.lstsq((F.T * root).T, (np.asarray(Z, dtype=np.float64).T * root).T, rcond=None)[0]
        return solved

    return fit


def _tasks(table: Table, loss: Loss, intercept: bool, standardize: bool, free: tuple[int, ...]) -> Problem:
    from projfree.data.tasks import TaskData  # brings in SciPy's sparse arrays

    if free:
        raise ValueError("`free` columns and `task` do not go together; give each task its own intercept instead.")
    X, y, task = np.asarray(table.X.toarray() if is_sparse(table.X) else table.X), table.y, table.task
    assert task is not None
    scale = _deviations(X, table.weight) if standardize else np.ones(X.shape[1])
    X = X / scale if standardize else X
    if not intercept:
        data: Data = TaskData(X, y, task, table.weight, table.tasks)
        return Problem(Objective(loss, data), lambda w, b: (w / scale[:, None], np.zeros(table.tasks)), standardize)
    if not is_squared(loss):  # one more feature, the constant one, that no ball holds
        data = TaskData(np.column_stack([X, np.ones(len(X))]), y, task, table.weight, table.tasks)
        free = (X.shape[1],)
        return Problem(Objective(loss, data), lambda w, b: (w[:-1] / scale[:, None], w[-1]), standardize, free)
    Xm, ym = _means(X, task, table), _means(y[:, None], task, table)[:, 0]
    data = TaskData(X - Xm[task], y - ym[task], task, table.weight, table.tasks)

    def raw(w: Array, _: Any) -> tuple[Array, Array]:
        return w / scale[:, None], ym - np.einsum("tj,jt->t", Xm, w)

    return Problem(Objective(loss, data), raw, standardize)


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
