"""Least squares that take in rows part by part: their moments are all that is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from projfree.checks import Array, flag, shown
from projfree.data import Data, as_data
from projfree.data.convert import is_dask
from projfree.data.gram import Gram
from projfree.estimators.base import warn_if_short
from projfree.estimators.inputs import TrainingSet
from projfree.estimators.problem import Problem
from projfree.losses.squared import Squared
from projfree.objectives.quadratic import gram_form
from projfree.run import minimize
from projfree.run.result import raise_if_interrupted

#: Moments about the mean that are a smaller part than this of those about the centre of the sums are too inexact.
LEAST_VARIATION = 1e-8


def moments_with(model: Any, gram: Gram | None, X: Any, y: Any, sample_weight: Any) -> Gram:
    """The moments with these rows added to a copy, so that a failure changes nothing."""
    if isinstance(X, Data) or is_dask(X):
        raise TypeError("`partial_fit` takes arrays, part by part; give Data to `fit`, which reads it chunk by chunk.")
    for name in ("task", "free"):
        if getattr(model, name) is not None:
            raise ValueError(
                f"`partial_fit` keeps no rows, and `{name}` needs them, got {shown(getattr(model, name))}; use `fit`."
            )
    if gram is not None:
        model._linear(X)  # which refuses other columns
    rows = model._training_set(X, y, sample_weight)
    if rows.weight is not None and rows.weight.any():  # rows that count nothing are no rows
        rows = rows.part(np.flatnonzero(rows.weight))
    outputs = rows.y.shape[1:]
    if gram is not None and outputs != gram.outputs:
        before, now = (f"{shape[0]} columns" if shape else "a single column" for shape in (gram.outputs, outputs))
        raise ValueError(
            f"`y` must have as many outputs as in the rows before, {before}, got {now}; give all of "
            "them, or begin anew with a `clone`."
        )
    grown = Gram(rows.X.shape[1], outputs)
    return (grown if gram is None else grown.merge(gram)).include(as_data(rows.X, rows.y, rows.weight))


def fit_moments(model: Any, gram: Gram) -> None:
    """Minimise the mean squared error of all rows so far, and take over what is found."""
    left, intercept = model._countdown(), flag("fit_intercept", model.fit_intercept)
    scaling, scaled = None, gram
    if flag("standardize", model.standardize):
        about = np.diag(gram.moment(gram.mean))
        if np.any(about <= LEAST_VARIATION * np.diag(gram.moment(gram.shift[: gram.d]))):
            raise ValueError("`standardize=True` needs columns that vary; leave out constant ones, or use `fit`.")
        scaling = gram.mean if intercept else np.zeros(gram.d), np.sqrt(about)
        scaled = gram.standardized(*scaling)
    form = gram_form(scaled, intercept)

    def raw(w: Array, _: Any) -> tuple[Array, Array]:
        coef = w if scaling is None else w / scaling[1].reshape(-1, *[1] * (w.ndim - 1))
        return coef, gram.intercept(coef) if intercept else np.zeros(w.shape[1:])

    rows = TrainingSet(np.zeros((1, gram.d)), np.zeros((1, *gram.outputs)), np.array([gram.total_weight]))
    problem = Problem(form, raw, scaling)  # type: ignore[arg-type]  # a form answers all that is asked
    start = model.result_.w if hasattr(model, "result_") else None
    prepared = model._on_ball(rows, problem, start, left)
    # Ctrl-C leaves the model as it was, without the new rows, so that the call can be repeated.
    settings = {**model._settings(prepared, left), "callbacks": ()}
    result = raise_if_interrupted(minimize(form, prepared.ball, **settings))

    def at(w: Array) -> Any:
        return scaled.intercept(w) if intercept else None

    own = result.certificate  # on the form; that of the rows, which `verify` checks, has intercepts
    proof = replace(own, loss=Squared(), intercept=at(own.w), witness_intercept=at(own.witness))
    result = replace(result, intercept=at(result.w), certificate=proof)
    model._set_attributes(prepared.problem, prepared.ball, result, Squared())
    warn_if_short(model, result, model.tol, unsolved=prepared.unsolved)
