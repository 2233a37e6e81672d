"""What all linear estimators share: their parameters, `fit` from rows to attributes, and what a fitted model says."""

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

#: How `validate_data` of scikit-learn is to check features.
VALIDATION: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
#: Scalings that differ by no more than the default tolerance make the same problem.
SCALING_TOL = 1e-6
#: Settings that say how a fit has read its rows.
DATA_PARAMS = ("norm", "p", "fit_intercept", "free", "task", "class_weight")


@dataclass(frozen=True, eq=False)
class FitSetup:
    """A problem that waits for its solver.

    ``start_is_optimal`` says that the start is only to be certified, and ``failure`` why its radius is not that of
    the penalised problem; it is empty where it is.
    """

    problem: Problem
    ball: ConstraintSet
    start: Array | None
    start_is_optimal: bool = False
    failure: str = ""


@dataclass(eq=False, repr=False)
class LinearModel:
    """The parameters of every linear estimator, and what they do with rows."""

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
        """The targets as the loss takes them, and the weights of the rows."""
        raise NotImplementedError

    def _encode_data_targets(self, data: Data) -> Data:
        """Data with its targets as the loss takes them, converted where the rows are."""
        return data

    def _loss(self, rows: TrainingSet) -> Loss:
        """The loss, with a first guess at its scale where that depends on a fit."""
        raise NotImplementedError

    def _path_loss(self, rows: TrainingSet) -> Loss:
        """The loss of the paths of a search."""
        return self._loss(rows)

    def _to_coef(self, coef: Array, intercept: Any) -> tuple[Array, Any]:
        """``coef_`` and ``intercept_`` from coefficients of shape (d,) or (d, k)."""
        raise NotImplementedError

    def _score_predictions(self, loss: Loss, y: Array, u: Array, weight: Array | None) -> Array:
        """The default scores of m models by their linear predictions, of shape (n, m) or (n, m, k)."""
        raise NotImplementedError

    def _score_arrays(self, X: Any, y: Any, sample_weight: Any) -> float:
        """The default score of rows at hand."""
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]  # of scikit-learn's mixin

    def _score_data(self, data: Data) -> float:
        """The default score, from sums that are formed where the rows are."""
        raise NotImplementedError

    # ------------------------------------------------------------------ rows, problem and set

    def _training_set(self, X: Any, y: Any, sample_weight: Any, client: Any = None) -> TrainingSet:
        """Features, targets and weights of a fit, checked together."""
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
        # `verify` gives the scaling of the fit.
        scaling = self.standardize if isinstance(self.standardize, tuple) else flag("standardize", self.standardize)
        return make_problem(rows, loss, flag("fit_intercept", self.fit_intercept), scaling, self.free, self)

    def _single_fit_model(self) -> Any:
        """The estimator of a single fit with these settings."""
        return clone(self)

    def explain(self, X: Any, y: Any = None, sample_weight: Any = None) -> Plan:
        """What `fit` would do with these rows: a `Plan`, from the shape of the problem alone; nothing is run.

        The plan depends on neither the radius nor the scale of a loss, which a fit may have to find first.
        """
        model = self._single_fit_model()
        rows = model._training_set(X, y, sample_weight)
        problem = model._problem(rows, model._loss(rows))
        return plan(problem.objective, make_ball(model, rows, problem, 1.0))

    # ------------------------------------------------------------------ what a fit leaves

    def _set_attributes(self, problem: Problem, ball: ConstraintSet, result: Result, loss: Loss) -> None:
        vars(self).pop("_gram", None)  # the moments of other rows
        self.coef_, self.intercept_ = self._to_coef(*problem.raw(result.w, result.intercept))
        self.loss_, self.ball_, self.radius_ = loss, ball, radius_of(ball)
        self.standardize_ = problem.scaling is not None
        read = {name: getattr(self, name) for name in DATA_PARAMS if hasattr(self, name)}
        self.fit_params_ = {**read, "standardize": problem.scaling or False}
        self.result_, self.n_iter_, self.multiplier_ = result, max(1, result.n_iter), result.multiplier
        self.multipliers_ = active_constraints(ball, result.multipliers)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check the certificate and the coefficients against the data of the fit, in a few reads and without a run.

        The rows are those that were given to `fit`; they are read as the fit has read them, whatever settings were
        changed since.
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
        if problem.scaling is not None:  # a scaling that is not that of these columns makes another problem
            model.standardize = True
            own = model._problem(rows, self.loss_).scaling
            same = same and own is not None and _scalings_agree(own, problem.scaling, shifted=not model.fit_intercept)
        return replace(outcome, ok=outcome.ok and same)

    def _matches_certificate(self, problem: Problem, rows: TrainingSet) -> bool:
        """Whether the coefficients are those of the certified point, up to the rounding of sums over the rows."""
        proof, data = self.result_.certificate, rows.data
        coef, intercept = self._to_coef(*problem.raw(proof.w, proof.intercept))
        sizes = np.abs(coef) @ data.column_stats.largest + np.abs(intercept)
        rounding = UNIT * (data.n + len(self.coef_.T) + 64.0)
        close = np.allclose(self.coef_, coef, rtol=rounding, atol=0.0)
        return bool(close and np.all(np.abs(intercept - self.intercept_) <= rounding * (sizes + np.max(sizes))))

    def _has_mean_square(self, value: float, rows: TrainingSet) -> bool:
        """Whether the coefficients have this mean square on the columns as they were given, up to rounding."""
        X, y = np.asarray(rows.X.toarray() if is_sparse(rows.X) else rows.X, dtype=np.float64), rows.y
        s = np.ones(len(y)) if rows.weight is None else rows.weight
        terms = np.abs(X) @ np.abs(self.coef_.T) + np.abs(self.intercept_) + np.abs(y)
        residual = y - linear_predictions(X, self.coef_, self.intercept_)
        own, error = (
            math.sqrt(np.tensordot(s / s.sum(), part * part, axes=1).sum())
            for part in (residual, UNIT * (X.shape[1] + 4.0) * terms)
        )
        # The residuals of the fit were rounded as well, by about as much.
        return abs(own - math.sqrt(value)) <= 2.0 * error + UNIT * len(y) * own

    def save(self, path: Any) -> None:
        """Write the fitted model to a folder, without pickle; `projfree.estimators.load` reads it back."""
        from projfree.estimators.saving import save

        check_is_fitted(self, "coef_")
        save(self, path)

    def coef_frame(self) -> Any:
        """The coefficients as a pandas table: features as rows, outputs as columns, the intercept last.

        A single output is the column ``"coefficient"``.
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
        """The names of the rows of ``coef_``."""
        return list(self.tasks_ if self._task_column is not None else range(k))

    @property
    def _task_column(self) -> Any:
        """The column of the tasks in the fit, whatever was set since."""
        return getattr(self, "fit_params_", vars(self))["task"]

    # ------------------------------------------------------------------ predictions

    def _linear_predictor(self, X: Any) -> Array:
        """Linear predictions, of shape (n,) or (n, k)."""
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
        """The accuracy of a classifier; of a regressor R2, and for Poisson and Gamma losses D2.

        D2 is the part of the deviance that is explained. Several outputs have the mean of theirs.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
            Of collections and `Data` the score is made of sums that are formed where the rows are.
        y : array of shape (n,) or (n, k), or with Parquet the name of a column
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
    """One fit, over the ball of a radius or of a penalty."""

    radius: float | None = None
    warm_start: bool = False

    def _penalty_weight(self, n: float) -> float:
        """The weight of the penalty beside the mean loss, where the weights of the rows sum to n."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
            The path of a .npy file, of a Parquet file or of a folder of those is read chunk by chunk, and so are memory
            maps larger than a pass keeps in memory. Data from `as_data` holds its targets and weights itself.
        y : array of shape (n,), or (n, k) for regressors, str or list of str
            Targets, or labels of any kind; with Parquet also the name of a column, or several.
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            The cluster that has the rows of a Dask collection or reads a Parquet folder; by default the active one has
            those of collections.
        """
        return self._fit(self._training_set(X, y, sample_weight, client))

    def _fit(self, rows: TrainingSet, start: Array | None = None) -> Any:
        """Minimise the loss of these rows over the ball, and set the attributes."""
        time_left = self._start_countdown()
        start = self.result_.w if self.warm_start and hasattr(self, "result_") else start
        setup = self._setup(rows, start, time_left)
        f = setup.problem.objective
        result = minimize(f, setup.ball, **self._minimize_options(setup, time_left))
        self._set_attributes(setup.problem, setup.ball, result, f.loss)
        raise_if_interrupted(result)  # with all that was found kept, Ctrl-C ends whatever has asked for this fit
        warn_if_not_converged(self, result, self.tol, failure=setup.failure)
        return self

    def _start_countdown(self) -> Callable[[], float | None]:
        """What is left of the time limit of a fit, which begins now: the penalised problem takes from it too."""
        return countdown(None if self.time_limit is None else positive("time_limit", self.time_limit))

    @property
    def _uses_penalty(self) -> bool:
        """Whether a penalty decides the radius: none was given, and the set is not given either."""
        penalised = self.radius is None and not isinstance(self.norm, ConstraintSet)
        if penalised and is_constrained(self):
            raise ValueError(
                "constraints on coefficients need a `radius`, because the multiplier of a penalty would contain those "
                "of the constraints; give one, or choose it by cross-validation."
            )
        return penalised

    def _setup(self, rows: TrainingSet, start: Array | None, time_left: Callable[[], float | None]) -> FitSetup:
        """The problem with its last loss, the ball, and where to begin."""
        return self._setup_on_ball(rows, self._problem(rows, self._loss(rows)), start, time_left)

    def _setup_on_ball(
        self, rows: TrainingSet, problem: Problem, start: Array | None, time_left: Callable[[], float | None]
    ) -> FitSetup:
        """A problem on its ball; for a penalty, its minimiser and the ball on whose boundary that lies."""
        if self._uses_penalty:
            from projfree.estimators.penalty import fit_penalised

            setup = FitSetup(problem, make_ball(self, rows, problem, 1.0), start)
            return fit_penalised(setup, self._penalty_weight(rows.total_weight), time_left())
        own = isinstance(self.norm, ConstraintSet)
        radius = 1.0 if own else positive("radius", self.radius, "Leave it out for a penalty, or give a large one.")  # type: ignore[arg-type]
        ball = make_ball(self, rows, problem, radius)
        return FitSetup(problem, ball, nearest_feasible(ball, start, problem.objective.shape))

    def _minimize_options(self, setup: FitSetup, time_left: Callable[[], float | None]) -> dict[str, Any]:
        """The settings of `minimize`."""
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
    """Whether two scalings are the same; a shift matters only where no intercept makes up for it."""
    moved = np.abs(a[0] - b[0]) > SCALING_TOL * a[1]
    return np.allclose(a[1], b[1], rtol=SCALING_TOL, atol=0.0) and not (shifted and moved.any())


def progress(verbose: Any) -> list[Callable[[Run], Any]]:
    """The callbacks that ``verbose`` asks for: none, a bar, or a line an iteration."""
    if isinstance(verbose, bool | int) and verbose >= 0:
        return [] if verbose == 0 else [ProgressBar()] if verbose == 1 else [print_iteration]
    raise ValueError(f"`verbose` must be 0, 1 (a progress bar) or 2 (a line an iteration), got {shown(verbose)}.")


def warn_if_not_converged(model: Any, result: Result, tol: float, failure: str = "") -> None:
    """Say why a penalised problem is failure, and by how much a run that no callback ended missed its tolerance."""
    if failure:
        warnings.warn(f"{type(model).__name__}: {failure}.", ConvergenceWarning, stacklevel=stacklevel())
    status, gap = result.status, result.relative_gap
    if status.converged or gap <= tol or status is Status.CALLBACK:
        return
    kind = "certified relative gap"
    if result.bound is None:
        kind = "relative Frank-Wolfe gap"
        # A value that is within the tolerance of what the loss is never below cannot be improved.
        if gap > 0.0 and result.value - model.loss_.lower_bound <= tol * result.gap / gap:
            return
    warn_about_gap(model, status, result.n_iter, gap, tol, kind)


def warn_about_gap(
    model: Any, status: Status, n_iter: int, gap: float, tol: float, kind: str = "certified relative gap"
) -> None:
    """Say how large a gap is, why it is no smaller, and what to do about it."""
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
