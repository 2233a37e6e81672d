"""Least squares that take in rows part by part: their moments are all that is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.data import Data, as_data
from projfree.data.convert import is_dask
from projfree.data.gram import Gram
from projfree.estimators.base import warn_if_short
from projfree.estimators.inputs import TrainingSet
from projfree.estimators.penalty import penalised_fit
from projfree.estimators.problem import Problem, inside
from projfree.losses.squared import Squared
from projfree.objectives.quadratic import QuadraticForm, gram_form
from projfree.run import Result, minimize
from projfree.run.result import raise_if_interrupted

#: Settings that need single rows.
BY_ROW = ("task", "free")
#: Moments about the mean that are a smaller part than this of those about the centre of the sums are too inexact.
LEAST_VARIATION = 1e-8


@dataclass(frozen=True, eq=False)
class MomentProblem:
    """Least squares on some rows, ready to be solved for any radius.

    Attributes
    ----------
    gram : Gram
        Of the features in their own units.
    scaling : tuple of ndarray of shape (d,)
        What the features are shifted and divided by.
    form : QuadraticForm
        The mean squared error in the coefficients of the divided features.
    intercept : bool
        Whether one is minimised out.
    """

    gram: Gram
    scaling: tuple[Array, Array]
    form: QuadraticForm
    intercept: bool
    #: Of the divided features.
    scaled: Gram

    @classmethod
    def of(cls, gram: Gram, *, intercept: bool, standardize: bool) -> MomentProblem | None:
        """None where deviations drown in the rounding of the sums."""
        shift, scale, scaled = np.zeros(gram.d), np.ones(gram.d), gram
        if standardize:
            about = np.diag(gram.moment(gram.mean))
            if np.any(about <= LEAST_VARIATION * np.diag(gram.moment(gram.shift[: gram.d]))):
                return None
            scale = np.sqrt(about)
            shift = gram.mean if intercept else shift
            scaled = gram.standardized(shift, scale)
        return cls(gram, (shift, scale), gram_form(scaled, intercept), intercept, scaled)

    def raw(self, w: Array, _: Any) -> tuple[Array, Array]:
        """Coefficients and intercept in the units of the features."""
        coef = w / self.scaling[1].reshape(-1, *[1] * (w.ndim - 1))
        return coef, self.gram.intercept(coef) if self.intercept else np.zeros(w.shape[1:])

    def of_rows(self, result: Result) -> Result:
        """A result on the form as one on the rows, with its intercept, which `verify` checks on them."""
        own = result.certificate
        b = self.scaled.intercept if self.intercept else lambda _: None
        certificate = replace(
            own, loss=Squared(), intercept=b(own.w), witness_intercept=None if own.witness is None else b(own.witness)
        )
        return replace(result, intercept=b(result.w), certificate=certificate)


def refuse_rows(model: Any, X: Any) -> None:
    """Raise where the fit needs more than moments, and for data classes, which are read as often as a fit likes."""
    if isinstance(X, Data) or is_dask(X):
        raise TypeError("`partial_fit` takes arrays, part by part; give Data to `fit`, which reads it chunk by chunk.")
    for name in BY_ROW:
        value = getattr(model, name)
        if value is not None:
            raise ValueError(f"`partial_fit` keeps no rows, and `{name}` needs them, got {shown(value)}; use `fit`.")


def grown(gram: Gram | None, table: TrainingSet) -> Gram:
    """The moments with the rows of a table added to a copy, so that a failure changes nothing."""
    if table.weight is not None and table.weight.any():  # rows that count nothing are no rows
        table = table.part(np.flatnonzero(table.weight))
    data = as_data(table.X, table.y, table.weight)
    if gram is not None and data.y.shape[1:] != gram.outputs:
        before, now = (
            f"{shape[0]} columns" if shape else "a single column" for shape in (gram.outputs, data.y.shape[1:])
        )
        raise ValueError(
            f"`y` must have as many outputs as in the rows before, {before}, got {now}; give all of "
            "them, or begin anew with a `clone`."
        )
    more = Gram(data.shape(())[0], data.y.shape[1:])
    if gram is not None:
        more.merge(gram)
    return more.include(data)


def fit_moments(model: Any, gram: Gram) -> None:
    """Minimise the mean squared error of all rows so far, and take over what is found."""
    from projfree.estimators.base import PreparedFit

    left, scaled = model._countdown(), model._standardizes()
    moments = MomentProblem.of(gram, intercept=bool(model.fit_intercept), standardize=scaled)
    if moments is None:
        raise ValueError("`standardize=True` needs columns that vary; leave out constant ones, or use `fit`.")
    scaling = moments.scaling if scaled else None
    problem = Problem(moments.form, moments.raw, scaling)  # type: ignore[arg-type]  # a form answers all that is asked
    ball = model._ball(TrainingSet(np.zeros((0, gram.d)), np.zeros((0, *gram.outputs))), problem)
    before = model.result_.w if hasattr(model, "result_") else None
    if model._is_penalised:
        prepared = penalised_fit(PreparedFit(problem, ball, before, left), model._penalty_weight(gram))
    else:
        prepared = PreparedFit(problem, ball, inside(ball, before, moments.form.shape), left)
    settings = {**model._settings(prepared, 0), "callbacks": ()}
    # Ctrl-C leaves the model as it was, without the new rows, so that the call can be repeated.
    result = moments.of_rows(raise_if_interrupted(minimize(moments.form, prepared.ball, **settings)))
    model._adopt(prepared, result, Squared())
    warn_if_short(model, result, model.tol, unsolved=prepared.unsolved)
