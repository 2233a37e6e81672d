"""What all linear estimators share: from parameters and rows to a run, and from its result to answers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from projfree.algebra import UNIT
from projfree.checks import Array, flag, is_sparse, positive, refuse_masked, shown, stacklevel
from projfree.data import Data, as_data
from projfree.deadline import countdown
from projfree.estimators.dask import refuse_other_columns
from projfree.estimators.inputs import (
    TrainingSet,
    features_at,
    free_columns,
    is_path,
    refuse_columns,
    refuse_missing_targets,
    take_column,
)
from projfree.estimators.problem import Problem, Scaling, inside, labels, make_ball, make_problem, radius_of
from projfree.losses.base import Loss
from projfree.objectives import SmoothFunction
from projfree.run import Certificate, ProgressBar, Result, Run, Status, Verification, minimize
from projfree.run.callbacks import as_callbacks, print_iteration
from projfree.run.result import raise_if_interrupted
from projfree.sets import ConstraintSet, WithFree
from projfree.solvers import Plan, plan

#: Free coefficients of losses other than squares may be this many times as large as the range of the targets.
FREE_FACTOR = 1e4
#: How `validate_data` of scikit-learn is to check features.
FEATURES: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
#: Scalings that differ by no more than the default tolerance make the same problem.
SCALED = 1e-6


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """A problem that waits for its solver, and what is left of the time limit.

    ``start_is_solution`` says that the start is only to be certified, and ``unsolved`` why its radius is not that of
    the penalised problem; it is empty where it is.
    """

    problem: Problem
    ball: ConstraintSet
    start: Array | None
    left: Callable[[], float | None] = field(default_factory=lambda: countdown(None))
    start_is_solution: bool = False
    unsolved: str = ""


class ConstrainedModel(BaseEstimator):
    """A linear model whose coefficients lie in a ball."""

    # Parameters that every estimator has.
    loss: Any
    norm: Any
    p: Any
    q: float | None
    radius: Any
    fit_intercept: bool
    solver: Any
    tol: float
    max_iter: int
    time_limit: float | None
    standardize: Any
    warm_start: bool
    random_state: Any
    positive: bool
    feature_groups: Any
    free: Any
    task: Any
    verbose: Any
    callbacks: Any

    # What a fit leaves.
    coef_: Array
    intercept_: Any
    n_iter_: int
    result_: Result
    radius_: float | None
    standardize_: bool
    fit_params_: dict[str, Any]
    multiplier_: float | None
    ball_: ConstraintSet
    loss_: Loss

    # ------------------------------------------------------------------ what regressors and classifiers define

    def _training_set(self, X: Any, y: Any, sample_weight: Any) -> TrainingSet:
        """Features and targets of a fit, checked together."""
        raise NotImplementedError

    def _losses(self, rows: TrainingSet) -> Loss:
        """The loss, or one to begin with where its scale is still to be found."""
        raise NotImplementedError

    def _last_loss(self, rows: TrainingSet) -> Loss:
        """The loss that is fitted in the end, of whatever scale."""
        return self._losses(rows)

    def _path_loss(self, rows: TrainingSet) -> Loss:
        """The loss of the paths of a search."""
        return self._losses(rows)

    def _penalty_weight(self, data: Any) -> float:
        """The weight of the penalty beside the mean loss of these rows, or of their moments."""
        raise NotImplementedError

    def _shaped(self, coef: Array, intercept: Array) -> dict[str, Any]:
        """``coef_`` and ``intercept_`` from coefficients of shape (d,) or (d, k)."""
        raise NotImplementedError

    def _own_score(self, loss: Loss, y: Array, u: Array, weight: Array | None) -> float:
        """The default score of linear predictions of targets as the loss takes them."""
        raise NotImplementedError

    # ------------------------------------------------------------------ fit

    def _fit(self, rows: TrainingSet, start: Array | None = None) -> Any:
        """Minimise the loss of these rows over the ball, and set the attributes."""
        left = self._countdown()
        problem = self._problem(rows, self._losses(rows))
        before = self.result_.w if self.warm_start and hasattr(self, "result_") else start
        prepared = PreparedFit(problem, self._ball(rows, problem), before, left)
        if self._is_penalised:
            prepared = self._penalised(rows, prepared)
        else:
            begin = inside(prepared.ball, before, problem.objective.shape)
            prepared = self._refined(rows, replace(prepared, start=begin))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        result = minimize(prepared.problem.objective, prepared.ball, **self._settings(prepared, seed))
        self._adopt(prepared, result)
        raise_if_interrupted(result)  # with all that was found kept, Ctrl-C ends whatever has asked for this fit
        warn_if_short(self, result, self.tol, unsolved=prepared.unsolved)
        return self

    def _countdown(self) -> Callable[[], float | None]:
        """What is left of the time limit of a fit, which begins now: the penalised problem takes from it too."""
        return countdown(None if self.time_limit is None else positive("time_limit", self.time_limit))

    def _problem(self, rows: TrainingSet, loss: Loss) -> Problem:
        free = () if self.free is None else free_columns(self.free, rows.features, self)
        intercept, scaled = flag("fit_intercept", self.fit_intercept), self._standardizes()
        return make_problem(rows, loss, intercept=intercept, standardize=scaled, free=free)

    def _standardizes(self) -> bool | Scaling:
        """Whether columns are scaled; `verify` asks for the scaling of the fit."""
        return self.standardize if isinstance(self.standardize, tuple) else flag("standardize", self.standardize)

    def _ball(self, rows: TrainingSet, problem: Problem) -> ConstraintSet:
        """The set, with the radius that was given, or 1 where a penalty decides it."""
        f, free = problem.objective, problem.free
        given = self.radius is not None and not isinstance(self.norm, ConstraintSet)
        groups = self.feature_groups
        if groups is not None and self.free is not None and self.norm == "group":
            groups = np.delete(labels(groups), list(free_columns(self.free, rows.features, self)))
        ball = make_ball(
            self.norm,
            self.p,
            self.q,
            positive("radius", self.radius) if given else 1.0,
            positive=flag("positive", self.positive),
            groups=groups,
            shape=(f.shape[0] - len(free), *f.shape[1:]),
        )
        return WithFree(ball, free, self._free_bound(rows)) if free else ball

    def _free_bound(self, rows: TrainingSet) -> float:
        if rows.y.dtype.kind in "iu":
            return FREE_FACTOR
        # An intercept takes the level of the targets; those of tasks are free coefficients themselves.
        size = np.ptp(rows.y) if self.fit_intercept and rows.task is None else np.abs(rows.y).max(initial=1.0)
        return FREE_FACTOR * max(1.0, float(size))

    @property
    def _is_penalised(self) -> bool:
        """Whether a penalty decides the radius: none was given, and the set is not given either."""
        return self.radius is None and not isinstance(self.norm, ConstraintSet)

    def _penalised(self, rows: TrainingSet, prepared: PreparedFit) -> PreparedFit:
        """The minimiser of the penalised problem, and the ball that it lies on the boundary of."""
        from projfree.estimators.penalty import penalised_fit

        return penalised_fit(prepared, self._penalty_weight(prepared.problem.objective.data))

    def _refined(self, rows: TrainingSet, prepared: PreparedFit) -> PreparedFit:
        """The problem with the scale of its loss found, where it has one."""
        return prepared

    def _settings(self, prepared: PreparedFit, seed: int) -> dict[str, Any]:
        """The settings of `minimize`."""
        return {
            "solver": self.solver,
            "start": prepared.start,
            "check_start": prepared.start_is_solution,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "time_limit": prepared.left(),
            "seed": seed,
            "callbacks": [*progress(self.verbose), *(() if self.callbacks is None else as_callbacks(self.callbacks))],
        }

    def _adopt(self, prepared: PreparedFit, result: Result, loss: Loss | None = None) -> None:
        """Set the attributes; ``loss`` is that of the rows where the objective has only their moments."""
        problem, ball = prepared.problem, prepared.ball
        for name, value in self._shaped(*problem.raw(result.w, result.intercept)).items():
            setattr(self, name, value)
        self.loss_, self.ball_, self.radius_ = loss or problem.objective.loss, ball, radius_of(ball)
        self.standardize_ = problem.scaling is not None
        # How the rows were read, which `verify` does again even if the settings are changed later.
        read = {name: getattr(self, name) for name in ("fit_intercept", "free", "task")}
        self.fit_params_ = {**read, "standardize": problem.scaling or False}
        self.result_, self.n_iter_, self.multiplier_ = result, max(1, result.n_iter), result.multiplier

    def explain(self, X: Any, y: Any = None, sample_weight: Any = None) -> Plan:
        """What `fit` would do with these rows: a `Plan`, from the shape of the problem alone; nothing is run.

        The plan depends on neither the radius nor the scale of a loss, which a fit may have to find first.
        """
        model = self._single() if hasattr(self, "_single") else clone(self)
        rows = model._training_set(X, y, sample_weight)
        problem = model._problem(rows, model._last_loss(rows))
        return plan(problem.objective, model._ball(rows, problem))

    # ------------------------------------------------------------------ certificate

    @property
    def certificate_(self) -> Certificate:
        """What proves the gap; its `verify` checks it against the rows, as they were given to `fit`."""
        check_is_fitted(self, "coef_")
        own = self.result_.certificate
        return FitCertificate(**{one.name: getattr(own, one.name) for one in fields(own)}, model=copy(self))

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check the certificate and the coefficients against the data of the fit, in a few reads and without a run."""
        check_is_fitted(self, "coef_")
        names = [name for name in vars(self) if name.endswith("_")]
        other = type(self)(**self.get_params(deep=False)) if not hasattr(self, "_single") else self._single()
        for name in names:
            setattr(other, name, getattr(self, name))
        for name, value in self.fit_params_.items():
            setattr(other, name, value)
        rows = other._training_set(X, y, sample_weight)
        problem = other._problem(rows, self.loss_)
        checked = self.result_.certificate.verify(objective=problem.objective)
        same = self._attains(checked.value, rows) if problem.eliminated else self._is_of(problem, rows)
        if problem.scaling is not None:  # a scaling that is not that of these columns makes another problem
            other.standardize = True
            own = other._problem(rows, self.loss_).scaling
            same = same and own is not None and _same_scaling(own, problem.scaling, shifted=not other.fit_intercept)
        return replace(checked, ok=checked.ok and same)

    def _is_of(self, problem: Problem, rows: TrainingSet) -> bool:
        """Whether the coefficients are those of the certified point, up to the rounding of sums over the rows."""
        proof, data = self.result_.certificate, rows.data
        own = self._shaped(*problem.raw(proof.w, proof.intercept))
        sizes = np.abs(own["coef_"]) @ data.column_stats.largest + np.abs(own["intercept_"])
        rounding = UNIT * (data.n + len(self.coef_.T) + 64.0)
        apart = np.abs(own["intercept_"] - self.intercept_)
        close = np.allclose(self.coef_, own["coef_"], rtol=rounding, atol=0.0)
        return bool(close and np.all(apart <= rounding * (sizes + np.max(sizes))))

    def _attains(self, value: float, rows: TrainingSet) -> bool:
        """Whether the coefficients have this mean square on the columns as they were given, up to rounding."""
        X, y = np.asarray(rows.X.toarray() if is_sparse(rows.X) else rows.X, dtype=np.float64), rows.y
        s = np.ones(len(y)) if rows.weight is None else rows.weight
        terms = np.abs(X) @ np.abs(self.coef_.T) + np.abs(self.intercept_) + np.abs(y)
        own, error = (
            math.sqrt(np.tensordot(s / s.sum(), part * part, axes=1).sum())
            for part in (y - self._scores_of(X, None), UNIT * (X.shape[1] + 4.0) * terms)
        )
        # The residuals of the fit were rounded as well, by about as much.
        return abs(own - math.sqrt(value)) <= 2.0 * error + UNIT * len(y) * own

    def save(self, path: Any) -> None:
        """Write the fitted model to a folder, without pickle; `projfree.estimators.load` reads it back."""
        from projfree.estimators.saving import save

        check_is_fitted(self, "coef_")
        save(self, path)

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a SciPy CSR array with one row for each output; small where p is 1."""
        import scipy.sparse as sp

        check_is_fitted(self, "coef_")
        return sp.csr_array(np.atleast_2d(self.coef_))

    def coef_frame(self) -> Any:
        """The coefficients as a pandas table: features as rows, outputs as columns, the intercept last.

        A single output is the column ``"coefficient"``.
        """
        import pandas as pd

        check_is_fitted(self, "coef_")
        coef = np.atleast_2d(self.coef_)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(coef.shape[1])])
        columns = self._output_names(len(coef)) if len(coef) > 1 or self.task is not None else ["coefficient"]
        frame = pd.DataFrame(coef.T, index=list(names), columns=columns)
        frame.loc["intercept"] = np.broadcast_to(self.intercept_, (len(coef),))
        return frame

    def _output_names(self, k: int) -> list[Any]:
        return list(self.tasks_) if self.task is not None else list(range(k))

    def _scores_of(self, X: Any, task: Array | None, fitted: dict[str, Any] | None = None) -> Array:
        """Linear predictions, of shape (n,) or (n, k)."""
        held = vars(self) if fitted is None else fitted
        coef, intercept = held["coef_"], held["intercept_"]
        if task is not None:
            own = X.multiply(coef[task]).sum(axis=1) if hasattr(X, "multiply") else np.einsum("ij,ij->i", X, coef[task])
            return np.asarray(np.ravel(own) + intercept[task])
        return np.asarray(X @ coef.T + intercept)

    def _linear(self, X: Any) -> Array:
        check_is_fitted(self, "coef_")
        if is_path(X):
            return np.concatenate([self._scores_of(table, None) for table in features_at(self, X)])
        X, labels = self._features(X)
        return self._scores_of(X, self._task_places(labels, reset=False)[0])

    def _checked_data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        """Data or a Dask collection with targets, once its columns are those of the fit."""
        data: Data = X if isinstance(X, Data) else as_data(X, y, sample_weight)
        refuse_other_columns(self, data)
        return data

    def _features(self, X: Any) -> tuple[Any, Array | None]:
        """The checked features of rows to predict, and the labels of their tasks."""
        refuse_masked(X=X)
        X, labels = (X, None) if self.task is None else take_column(X, self.task)
        return validate_data(self, refuse_columns(X), **FEATURES, reset=False), labels

    def _features_and_targets(self, X: Any, y: Any, sample_weight: Any, **rules: Any) -> tuple[Any, Array, Any]:
        """The checked features and targets of a fit, and the labels of the tasks."""
        refuse_masked(X=X, y=y, sample_weight=sample_weight)
        X, labels = (X, None) if self.task is None else take_column(X, self.task)
        refuse_missing_targets(y)
        X, y = validate_data(self, refuse_columns(X), y, **FEATURES, **rules)
        return X, y, labels

    def _task_places(self, labels: Array | None, *, reset: bool) -> tuple[Array | None, int]:
        if labels is None:
            return None, 0
        if reset:
            self.tasks_, places = np.unique(labels, return_inverse=True)
        else:
            try:
                places = np.searchsorted(self.tasks_, labels)
            except TypeError:  # labels of another kind, none of which was there
                places = np.zeros(len(labels), dtype=int)
            places = np.minimum(places, len(self.tasks_) - 1)
            unknown = self.tasks_[places] != labels
            if unknown.any():
                raise ValueError(
                    f"`X` has the task {shown(labels[unknown][0])}, which was not there when the model was fitted."
                )
        return places, len(self.tasks_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True, eq=False, repr=False)
class FitCertificate(Certificate):
    """The certificate of a fit, which takes the rows as the fit took them.

    What it proves is about prepared rows: scaled columns, and labels as the loss has them.
    """

    model: Any = None

    def verify(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, objective: SmoothFunction | None = None
    ) -> Verification:
        """Check feasibility, value and bound, on the rows of the fit as `verify` of the model does."""
        if objective is not None or X is None:
            return super().verify(objective=objective)
        checked: Verification = self.model.verify(X, y, sample_weight)
        return checked


def _same_scaling(a: Scaling, b: Scaling, *, shifted: bool) -> bool:
    """Whether two scalings are the same; a shift matters only where no intercept makes up for it."""
    moved = np.abs(a[0] - b[0]) > SCALED * a[1]
    return np.allclose(a[1], b[1], rtol=SCALED, atol=0.0) and not (shifted and moved.any())


def progress(verbose: Any) -> list[Callable[[Run], Any]]:
    """The callbacks that ``verbose`` asks for: none, a bar, or a line an iteration."""
    if isinstance(verbose, bool | int) and verbose >= 0:
        return [] if verbose == 0 else [ProgressBar()] if verbose == 1 else [print_iteration]
    raise ValueError(f"`verbose` must be 0, 1 (a progress bar) or 2 (a line an iteration), got {shown(verbose)}.")


def warn_if_short(model: Any, result: Result, tol: float, unsolved: str = "") -> None:
    """Say why a penalised problem is unsolved, and by how much a run that no callback ended missed its tolerance."""
    if unsolved:
        warnings.warn(f"{type(model).__name__}: {unsolved}.", ConvergenceWarning, stacklevel=stacklevel())
    if (
        result.status.converged
        or result.relative_gap <= tol
        or result.status is Status.CALLBACK
        or _at_least_value(model, result, tol)
    ):
        return
    kind = "certified relative gap" if result.bound is not None else "relative Frank-Wolfe gap"
    warn_of_gap(model, result.status, result.n_iter, result.relative_gap, tol, kind)


def warn_of_gap(
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


def _at_least_value(model: Any, result: Result, tol: float) -> bool:
    """Whether a loss that is not convex is within the tolerance of what it is never below: no point is better."""
    loss = getattr(model, "loss_", None)
    if result.bound is not None or loss is None or not result.relative_gap > 0.0:
        return False
    scale = result.gap / result.relative_gap
    return bool(result.value - loss.lower_bound <= tol * scale)
