"""Least squares that take in rows part by part: their moments are all that is kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import shown
from projfree.data import Data, as_data
from projfree.data.convert import is_dask
from projfree.data.gram import Gram
from projfree.estimators.balls import inside
from projfree.estimators.fold_grams import FoldMoments
from projfree.estimators.problem import Problem
from projfree.estimators.regularization import penalised_fit
from projfree.estimators.solving import warn_if_short
from projfree.estimators.table import Table
from projfree.losses.squared import Squared
from projfree.run import minimize
from projfree.run.result import raise_if_interrupted

#: Settings that need single rows.
BY_ROW = ("task", "free")


def check_moments(model: Any) -> None:
    """Raise where the moments of the rows are not all that the fit needs."""
    for name in BY_ROW:
        value = getattr(model, name)
        if value is not None:
            raise ValueError(f"`partial_fit` keeps no rows, and `{name}` needs them, got {shown(value)}; use `fit`.")


def grown(gram: Gram | None, table: Table) -> Gram:
    """The moments with the rows of a table added to a copy, so that a failure changes nothing."""
    if table.weight is not None and table.weight.any():  # rows that count nothing are no rows
        table = table.part(np.flatnonzero(table.weight))
    data = as_data(table.X, table.y, table.weight)
    if gram is not None and data.y.shape[1:] != gram.outputs:
        raise ValueError(
            f"`y` must have as many outputs as in the rows before, {_counted(gram.outputs)}, got "
            f"{_counted(data.y.shape[1:])}; give all of them, or begin anew with a `clone`."
        )
    more = Gram(data.shape(())[0], data.y.shape[1:])
    if gram is not None:
        more.merge(gram)
    return more.include(data)


def _counted(outputs: tuple[int, ...]) -> str:
    return f"{outputs[0]} columns" if outputs else "a single column"


def fit_moments(model: Any, gram: Gram) -> None:
    """Minimise the mean squared error of all rows so far, and take over what is found."""
    from projfree.estimators.base import PreparedFit

    left, scaled = model._countdown(), model._standardizes()
    moments = FoldMoments.of(gram, intercept=bool(model.fit_intercept), standardize=scaled)
    if moments is None:
        raise ValueError("`standardize=True` needs columns that vary; leave out constant ones, or use `fit`.")
    scaling = moments.scaling if scaled else None
    problem = Problem(moments.form, moments.raw, scaling)  # type: ignore[arg-type]  # a form answers all that is asked
    ball = model._ball(Table(np.zeros((0, gram.d)), np.zeros((0, *gram.outputs))), problem)
    before = model.result_.w if hasattr(model, "result_") else None
    if model._is_penalised:
        prepared = penalised_fit(PreparedFit(problem, ball, before, left), model._penalty_weight(gram))
    else:
        prepared = PreparedFit(problem, ball, inside(ball, before, moments.form.shape), left)
    settings = model._settings(0, prepared)
    settings |= {"start": prepared.start, "callbacks": (), "check_start": prepared.start_is_solution}
    # Ctrl-C leaves the model as it was, without the new rows, so that the call can be repeated.
    result = moments.of_rows(raise_if_interrupted(minimize(moments.form, prepared.ball, **settings)))
    model._adopt(prepared, result, Squared())
    warn_if_short(model, result, model.tol, unsolved=prepared.unsolved)


def refuse_data(X: Any) -> None:
    """Raise for data classes and Dask collections, which are read as often as a fit likes."""
    if isinstance(X, Data) or is_dask(X):
        raise TypeError("`partial_fit` takes arrays, part by part; give Data to `fit`, which reads it chunk by chunk.")
