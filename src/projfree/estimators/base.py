"""Base class of the linear estimators: their parameters, `fit`, and the methods of a fitted model."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from projfree.algebra import UNIT
from projfree.checks import Array, flag, is_sparse, positive, refuse_masked, shown, stacklevel
from projfree.data import Data, as_data
from projfree.data.convert import is_dask
from projfree.deadline import countdown
from projfree.estimators.constraints import active_constraints, is_constrained
from projfree.estimators.dask import refuse_other_columns
from projfree.estimators.inputs import (
    TrainingSet,
    check_sample_weight,
    check_training_data,
    convert_external,
    is_path,
    iter_features,
    linear_predictions,
    read_score_targets,
    refuse_columns,
    refuse_missing_targets,
    take_column,
    task_indices,
)
from projfree.estimators.problem import Problem, Scaling, make_ball, make_problem, nearest_feasible, radius_of
from projfree.losses.base import Loss
from projfree.run import ProgressBar, Result, Run, Status, Verification, minimize
from projfree.run.callbacks import as_callbacks, print_iteration
from projfree.run.result import raise_if_interrupted
from projfree.sets import ConstraintSet
from projfree.solvers import Plan, plan

#: Arguments of scikit-learn's `validate_data` for features.
VALIDATION: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
#: Relative difference below which two scalings count as equal: the default tolerance of a fit.
SCALING_TOL = 1e-6
#: Parameters that determine how `fit` reads its rows; `verify` uses their values at the time of the fit.
DATA_PARAMS = ("norm", "p", "fit_intercept", "free", "task", "class_weight")


@dataclass(frozen=True, eq=False)
class FitSetup:
    """The problem of a fit, its constraint set and the starting point.

    ``start_is_optimal`` is True if the start already solves the problem and only needs a certificate. ``failure`` is
    the text of a warning if the radius does not match that of the penalised problem, else empty.
    """

    problem: Problem
    ball: ConstraintSet
    start: Array | None
    start_is_optimal: bool = False
    failure: str = ""


@dataclass(eq=False, repr=False)
class LinearModel:
    """Base class of the linear estimators. Subclasses define the targets, the loss and the scores."""

    loss: Any = "squared"
    _: KW_ONLY
    norm: Any = "lp"
    p: Any = None
    q: float | None = None
    fit_intercept: bool = True
    solver: Any = "auto"
    tol: float = 1e-6
    max_iter: int = 10_000
    time_limit: float | None = None
    standardize: Any = False
    random_state: Any = None
    positive: bool = False
    feature_groups: Any = None
    free: Any = None
    task: Any = None
    verbose: int = 0
    callbacks: Any = ()
    signs: Any = None
    order: Any = None
    bounds: Any = None
    constraints: Any = None

    # ------------------------------------------------------------------ what regressors and classifiers define

    def _targets(self, y: Array, weight: Array | None) -> tuple[Array, Array | None]:
        """Convert the targets to the form that the loss expects, and return them with the sample weights."""
        raise NotImplementedError

    def _encode_data_targets(self, data: Data) -> Data:
        """Convert the targets of `Data` to the form that the loss expects, where the rows are stored."""
        return data

    def _loss(self, rows: TrainingSet) -> Loss:
        """Return the loss. A scale that depends on a fit is a first estimate."""
        raise NotImplementedError

    def _path_loss(self, rows: TrainingSet) -> Loss:
        """Return the loss that cross-validation paths minimise."""
        return self._loss(rows)

    def _to_coef(self, coef: Array, intercept: Any) -> tuple[Array, Any]:
        """Convert coefficients of shape (d,) or (d, k) and an intercept to ``coef_`` and ``intercept_``."""
        raise NotImplementedError

    def _score_predictions(self, loss: Loss, y: Array, u: Array, weight: Array | None) -> Array:
        """Return the default score of each of m models, from linear predictions of shape (n, m) or (n, m, k)."""
        raise NotImplementedError

    def _score_arrays(self, X: Any, y: Any, sample_weight: Any) -> float:
        """Return the default score on arrays."""
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]  # of scikit-learn's mixin

    def _score_data(self, data: Data) -> float:
        """Return the default score on `Data`, from sums that are computed where the rows are stored."""
        raise NotImplementedError

    # ------------------------------------------------------------------ rows, problem and set

    def _training_set(self, X: Any, y: Any, sample_weight: Any, client: Any = None) -> TrainingSet:
        """Validate features, targets and weights together."""
        X, y, sample_weight = convert_external(X, y, sample_weight, client)
        if isinstance(X, Data):
            return TrainingSet(self._encode_data_targets(check_training_data(self, X, y, sample_weight)), np.zeros(0))
        refuse_masked(X=X, y=y, sample_weight=sample_weight)
        refuse_missing_targets(y)
        X, labels = (X, None) if self.task is None else take_column(X, self.task)
        rules = {} if is_classifier(self) else {"multi_output": True, "y_numeric": True}
        X, y = validate_data(self, refuse_columns(X), y, **VALIDATION, **rules)
        y, weight = self._targets(y, check_sample_weight(sample_weight, X))
        if labels is None:
            return TrainingSet(X, y, weight)
        if y.ndim != 1:
            raise ValueError(f"`task` needs one target a row and at most two classes, got targets of shape {y.shape}.")
        self.tasks_, task = np.unique(labels, return_inverse=True)
        return TrainingSet(X, y, weight, task, len(self.tasks_))

    def _problem(self, rows: TrainingSet, loss: Loss) -> Problem:
        # `verify` sets `standardize` to the scaling of the fit.
        scaling = self.standardize if isinstance(self.standardize, tuple) else flag("standardize", self.standardize)
        return make_problem(rows, loss, flag("fit_intercept", self.fit_intercept), scaling, self.free, self)

    def _single_fit_model(self) -> Any:
        """Return an estimator that makes one fit with these parameters."""
        return clone(self)

    def explain(self, X: Any, y: Any = None, sample_weight: Any = None) -> Plan:
        """Return the `Plan` of `fit` for these rows: the problem, the solver, and why it was chosen. Nothing is run.

        The plan depends on the shape of the problem, but not on the radius or on the scale of a loss.
        """
        model = self._single_fit_model()
        rows = model._training_set(X, y, sample_weight)
        problem = model._problem(rows, model._loss(rows))
        return plan(problem.objective, make_ball(model, rows, problem, 1.0))

    # ------------------------------------------------------------------ fitted attributes

    def _set_attributes(self, problem: Problem, ball: ConstraintSet, result: Result, loss: Loss) -> None:
        vars(self).pop("_gram", None)  # moments of an earlier `partial_fit`
        self.coef_, self.intercept_ = self._to_coef(*problem.raw(result.w, result.intercept))
        self.loss_, self.ball_, self.radius_ = loss, ball, radius_of(ball)
        # Free columns alone may be scaled.
        self.standardize_ = problem.scaling is not None and bool(self.standardize)
        read = {name: getattr(self, name) for name in DATA_PARAMS if hasattr(self, name)}
        self.fit_params_ = {**read, "standardize": problem.scaling or False}
        self.result_, self.n_iter_, self.multiplier_ = result, max(1, result.n_iter), result.multiplier
        self.multipliers_ = active_constraints(ball, result.multipliers)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check the certificate and the coefficients against the data, in a few reads and without a run.

        Give the rows that were given to `fit`. They are read with the parameters of the fit, even if `set_params` has
        changed these since.
        """
        check_is_fitted(self, "coef_")
        model = copy.copy(self)
        for name, value in {**self.fit_params_, "loss": self.loss_}.items():
            setattr(model, name, value)
        rows = model._training_set(X, y, sample_weight)
        problem = model._problem(rows, self.loss_)
        outcome = self.result_.certificate.verify(objective=problem.objective)
        same = (
            model._has_mean_square(outcome.value, rows)
            if problem.eliminated
            else model._matches_certificate(problem, rows)
        )
        if problem.scaling is not None:  # with another scaling, the certificate would be about another problem
            model.standardize = self.standardize_
            own = model._problem(rows, self.loss_).scaling
            same = same and own is not None and _scalings_agree(own, problem.scaling, shifted=not model.fit_intercept)
        return replace(outcome, ok=outcome.ok and same)

    def _matches_certificate(self, problem: Problem, rows: TrainingSet) -> bool:
        """Return whether the coefficients equal those of the certificate, up to the rounding of sums over rows."""
        proof, data = self.result_.certificate, rows.data
        coef, intercept = self._to_coef(*problem.raw(proof.w, proof.intercept))
        sizes = np.abs(coef) @ data.column_stats.largest + np.abs(intercept)
        rounding = UNIT * (data.n + len(self.coef_.T) + 64.0)
        close = np.allclose(self.coef_, coef, rtol=rounding, atol=0.0)
        return bool(close and np.all(np.abs(intercept - self.intercept_) <= rounding * (sizes + np.max(sizes))))

    def _has_mean_square(self, value: float, rows: TrainingSet) -> bool:
        """Return whether the mean squared error on the unscaled columns equals ``value``, up to rounding."""
        X, y = np.asarray(rows.X.toarray() if is_sparse(rows.X) else rows.X, dtype=np.float64), rows.y
        s = np.ones(len(y)) if rows.weight is None else rows.weight
        terms = np.abs(X) @ np.abs(self.coef_.T) + np.abs(self.intercept_) + np.abs(y)
        residual = y - linear_predictions(X, self.coef_, self.intercept_)
        own, error = (
            math.sqrt(np.tensordot(s / s.sum(), part * part, axes=1).sum())
            for part in (residual, UNIT * (X.shape[1] + 4.0) * terms)
        )
        # The fit rounded its residuals by about as much.
        return abs(own - math.sqrt(value)) <= 2.0 * error + UNIT * len(y) * own

    def save(self, path: Any) -> None:
        """Save the fitted model to a folder, without pickle; `projfree.load` reads it."""
        from projfree.estimators.saving import save

        check_is_fitted(self, "coef_")
        save(self, path)

    def coef_frame(self) -> Any:
        """Return a data frame of coefficients: a row per feature and one for the intercept, a column per output.

        With a single output, the column is named ``"coefficient"``.
        """
        import pandas as pd

        check_is_fitted(self, "coef_")
        coef = np.atleast_2d(self.coef_)
        columns = self._output_names(len(coef)) if len(coef) > 1 or self._task_column is not None else ["coefficient"]
        frame = pd.DataFrame(coef.T, index=self._feature_names(), columns=columns)
        frame.loc["intercept"] = np.broadcast_to(self.intercept_, (len(coef),))
        return frame

    def _feature_names(self) -> list[str]:
        return list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.coef_.shape[-1])]))

    def _output_names(self, k: int) -> list[Any]:
        """Return the names of the rows of ``coef_``."""
        return list(self.tasks_ if self._task_column is not None else range(k))

    @property
    def _task_column(self) -> Any:
        """The ``task`` parameter at the time of the fit."""
        return getattr(self, "fit_params_", vars(self))["task"]

    # ------------------------------------------------------------------ predictions

    def _linear_predictor(self, X: Any) -> Array:
        """Return ``X @ coef + intercept``, of shape (n,) or (n, k)."""
        check_is_fitted(self, "coef_")
        if is_path(X):
            return np.concatenate(
                [linear_predictions(table, self.coef_, self.intercept_) for table in iter_features(self, X)]
            )
        refuse_masked(X=X)
        X, labels = (X, None) if (column := self._task_column) is None else take_column(X, column)
        X = validate_data(self, refuse_columns(X), **VALIDATION, reset=False)
        task = None if labels is None else task_indices(self.tasks_, labels)
        return linear_predictions(X, self.coef_, self.intercept_, task)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> float:
        """Return the accuracy of a classifier, R2 of a regressor, and D2 with a Poisson or Gamma loss.

        D2 is the fraction of the deviance that is explained. With several outputs, the score is their mean.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
            The score of collections and `Data` is computed from sums that are formed where the rows are stored.
        y : array of shape (n,) or (n, k), or the name of a Parquet column
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            As in `fit`.
        """
        check_is_fitted(self, "coef_")
        if client is not None or isinstance(X, Data) or is_dask(X):
            data: Data = X if isinstance(X, Data) else as_data(X, y, sample_weight, client=client)
            refuse_other_columns(self, data)
            return self._score_data(data)
        return self._score_arrays(X, *read_score_targets(self, X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of scikit-learn's base class
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SingleFit(LinearModel):
    """Base class of estimators that make one fit, with a given radius or penalty."""

    radius: float | None = None
    warm_start: bool = False

    def _penalty_weight(self, n: float) -> float:
        """Return the weight of the penalty relative to the mean loss, if the sample weights sum to ``n``."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
            A path is that of a .npy file, a Parquet file or a folder of Parquet files. Files, and memory maps that
            exceed the memory of one pass, are read in chunks. `Data` from `as_data` contains targets and weights.
        y : array of shape (n,), or (n, k) for regressors, str or list of str
            Targets, or class labels of any type; for Parquet also the name of one or several columns.
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            The cluster that stores a Dask collection or reads a Parquet folder; for collections, the active one by
            default.
        """
        return self._fit(self._training_set(X, y, sample_weight, client))

    def _fit(self, rows: TrainingSet, start: Array | None = None) -> Any:
        """Minimise the loss over the ball, and set the fitted attributes."""
        time_left = self._start_countdown()
        start = self.result_.w if self.warm_start and hasattr(self, "result_") else start
        setup = self._setup(rows, start, time_left)
        f = setup.problem.objective
        result = minimize(f, setup.ball, **self._minimize_options(setup, time_left))
        self._set_attributes(setup.problem, setup.ball, result, f.loss)
        raise_if_interrupted(result)  # after the attributes are set, so that an interrupted fit can be used
        warn_if_not_converged(self, result, self.tol, failure=setup.failure)
        return self

    def _start_countdown(self) -> Callable[[], float | None]:
        """Start the clock of ``time_limit``, and return a function that gives the remaining seconds or None."""
        return countdown(None if self.time_limit is None else positive("time_limit", self.time_limit))

    @property
    def _uses_penalty(self) -> bool:
        """Whether the fit has a penalty in place of a radius: neither a radius nor a set is given."""
        penalised = self.radius is None and not isinstance(self.norm, ConstraintSet)
        if penalised and is_constrained(self):
            raise ValueError(
                "constraints on coefficients need a `radius`, because the multiplier of a penalty would contain those "
                "of the constraints; give one, or choose it by cross-validation."
            )
        return penalised

    def _setup(self, rows: TrainingSet, start: Array | None, time_left: Callable[[], float | None]) -> FitSetup:
        """Build the problem, the ball and the starting point."""
        return self._setup_on_ball(rows, self._problem(rows, self._loss(rows)), start, time_left)

    def _setup_on_ball(
        self, rows: TrainingSet, problem: Problem, start: Array | None, time_left: Callable[[], float | None]
    ) -> FitSetup:
        """Build the ball for a problem; with a penalty, from the solution of the penalised problem."""
        if self._uses_penalty:
            from projfree.estimators.penalty import fit_penalised

            setup = FitSetup(problem, make_ball(self, rows, problem, 1.0), start)
            return fit_penalised(setup, self._penalty_weight(rows.total_weight), time_left())
        own = isinstance(self.norm, ConstraintSet)
        radius = 1.0 if own else positive("radius", self.radius, "Leave it out for a penalty, or give a large one.")  # type: ignore[arg-type]
        ball = make_ball(self, rows, problem, radius)
        return FitSetup(problem, ball, nearest_feasible(ball, start, problem.objective.shape))

    def _minimize_options(self, setup: FitSetup, time_left: Callable[[], float | None]) -> dict[str, Any]:
        """Return the keyword arguments of `minimize`."""
        callbacks = () if self.callbacks is None else as_callbacks(self.callbacks)
        return {
            "solver": self.solver,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "time_limit": time_left(),
            "start": setup.start,
            "check_start": setup.start_is_optimal,
            "seed": int(check_random_state(self.random_state).randint(2**31 - 1)),
            "callbacks": [*progress(self.verbose), *callbacks],
        }


def _scalings_agree(a: Scaling, b: Scaling, *, shifted: bool) -> bool:
    """Return whether two scalings agree; shifts matter only if no intercept compensates for them."""
    moved = np.abs(a[0] - b[0]) > SCALING_TOL * a[1]
    return np.allclose(a[1], b[1], rtol=SCALING_TOL, atol=0.0) and not (shifted and moved.any())


def progress(verbose: Any) -> list[Callable[[Run], Any]]:
    """Return the callbacks for ``verbose``: none, a progress bar, or one line per iteration."""
    if isinstance(verbose, bool | int) and verbose >= 0:
        return [] if verbose == 0 else [ProgressBar()] if verbose == 1 else [print_iteration]
    raise ValueError(f"`verbose` must be 0, 1 (a progress bar) or 2 (a line an iteration), got {shown(verbose)}.")


def warn_if_not_converged(model: Any, result: Result, tol: float, failure: str = "") -> None:
    """Warn if the penalised problem was not solved, or if the run ended above its tolerance without a callback."""
    if failure:
        warnings.warn(f"{type(model).__name__}: {failure}.", ConvergenceWarning, stacklevel=stacklevel())
    status, gap = result.status, result.relative_gap
    if status.converged or gap <= tol or status is Status.CALLBACK:
        return
    kind = "certified relative gap"
    if result.bound is None:
        kind = "relative Frank-Wolfe gap"
        # A value within the tolerance of the lower bound of the loss cannot be improved.
        if gap > 0.0 and result.value - model.loss_.lower_bound <= tol * result.gap / gap:
            return
    warn_about_gap(model, status, result.n_iter, gap, tol, kind)


def warn_about_gap(
    model: Any, status: Status, n_iter: int, gap: float, tol: float, kind: str = "certified relative gap"
) -> None:
    """Warn about a gap above the tolerance: its size, its reason, and what to do."""
    way = {
        Status.MAX_ITER: "raise `max_iter`, loosen `tol`, or try another `solver`",
        Status.TIME_LIMIT: "raise `time_limit`, or loosen `tol`",
        Status.PRECISION: "loosen `tol`",
        Status.SMOOTHED: "give the loss a smaller `delta`, or loosen `tol`",
    }.get(status, "fit again for a smaller one")
    warnings.warn(
        f"{type(model).__name__} {status} ({n_iter} iterations): the {kind} is {gap:.2g}, above tol={tol:g}; {way}.",
        ConvergenceWarning,
        stacklevel=stacklevel(),
    )
