"""What a fitted estimator answers: predictions, its certificate, its coefficients in other forms."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from projfree.algebra import UNIT
from projfree.checks import Array, is_sparse, refuse_masked, shown
from projfree.data import Data, as_data
from projfree.estimators.fit_certificate import FitCertificate
from projfree.estimators.frame_columns import refuse_columns, refuse_missing_targets
from projfree.estimators.given_data import features_at, is_path
from projfree.estimators.lazily import refuse_other_columns
from projfree.estimators.problem import Problem, Scaling
from projfree.estimators.table import Table, take_column
from projfree.losses.base import Loss
from projfree.run import Certificate, Result, Verification
from projfree.sets import ConstraintSet

#: Scalings that differ by no more than the default tolerance make the same problem.
SCALED = 1e-6


class Answers(BaseEstimator):
    """The part of an estimator that comes after `fit`."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        # `__new__` below takes anything; what can be given is what `__init__` says.
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature(parameters)

    def __new__(cls, *_: Any, **given: Any) -> Self:
        if "groups" in given:
            raise TypeError(
                f"`{cls.__name__}` takes the groups of features as `feature_groups`, got `groups`; the `groups` of "
                "scikit-learn belong to rows and go to the `fit` of a search."
            )
        made: Self = super().__new__(cls)
        return made

    # Parameters that every leaf has.
    loss: Any
    norm: Any
    p: float
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

    @property
    def certificate_(self) -> Certificate:
        """What proves the gap; its `verify` checks it against the rows, as they were given to `fit`."""
        check_is_fitted(self, "coef_")
        return FitCertificate.of(self)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check the certificate and the coefficients against the data of the fit, in a few reads and without a run."""
        check_is_fitted(self, "coef_")
        names = [name for name in vars(self) if name.endswith("_")]
        other = type(self)(**self.get_params(deep=False)) if not hasattr(self, "_single") else self._single()
        for name in names:
            setattr(other, name, getattr(self, name))
        for name, value in self.fit_params_.items():
            setattr(other, name, value)
        table = other._table(X, y, sample_weight)
        problem = other._problem(table, self.loss_)
        checked = self.result_.certificate.verify(objective=problem.objective)
        same = self._attains(checked.value, table) if problem.eliminated else self._is_of(problem, table)
        if problem.scaling is not None:  # a scaling that is not that of these columns makes another problem
            other.standardize = True
            own = other._problem(table, self.loss_).scaling
            same = same and own is not None and _same_scaling(own, problem.scaling, shifted=not other.fit_intercept)
        return replace(checked, ok=checked.ok and same)

    def _is_of(self, problem: Problem, table: Table) -> bool:
        """Whether the coefficients are those of the certified point, up to the rounding of sums over the rows."""
        proof, data = self.result_.certificate, table.data
        own = self._shaped(*problem.raw(proof.w, proof.intercept))
        sizes = np.abs(own["coef_"]) @ data.column_stats.largest + np.abs(own["intercept_"])
        rounding = UNIT * (data.n + len(self.coef_.T) + 64.0)
        apart = np.abs(own["intercept_"] - self.intercept_)
        close = np.allclose(self.coef_, own["coef_"], rtol=rounding, atol=0.0)
        return bool(close and np.all(apart <= rounding * (sizes + np.max(sizes))))

    def _attains(self, value: float, table: Table) -> bool:
        """Whether the coefficients have this mean square on the columns as they were given, up to rounding."""
        X, y = np.asarray(table.X.toarray() if is_sparse(table.X) else table.X, dtype=np.float64), table.y
        s = np.ones(len(y)) if table.weight is None else table.weight
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
        """The coefficients as a pandas table: features as rows, outputs as columns, the intercept last."""
        import pandas as pd

        check_is_fitted(self, "coef_")
        coef = np.atleast_2d(self.coef_)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(coef.shape[1])])
        frame = pd.DataFrame(coef.T, index=list(names), columns=self._output_names(len(coef)))
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
        X, labels = self._features(X, reset=False)
        return self._scores_of(X, self._task_places(labels, reset=False)[0])

    def _checked_data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        """Data or a Dask collection with targets, once its columns are those of the fit."""
        data: Data = X if isinstance(X, Data) else as_data(X, y, sample_weight)
        refuse_other_columns(self, data)
        return data

    def _features(self, X: Any, *, reset: bool) -> tuple[Any, Array | None]:
        """The checked features and the labels of the tasks."""
        refuse_masked(X=X)
        labels = None
        if self.task is not None:
            X, labels = take_column(X, self.task)
        X = validate_data(self, refuse_columns(X), accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
        return X, labels

    def _validated(self, X: Any, y: Any, **rules: Any) -> tuple[Any, Array]:
        """Features and targets of a fit as `validate_data` of scikit-learn leaves them.

        Finite arrays of the usual types are what it would return; finding out what else an argument might be takes it
        as long as a tenth of a small fit.
        """
        plain = type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and _finite(X, "f")
        if plain and type(y) is np.ndarray and y.shape == X.shape[:1] and _finite(y, "fiu"):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return X, y
        refuse_missing_targets(y)
        types = [np.float64, np.float32]
        found: tuple[Any, Array] = validate_data(self, refuse_columns(X), y, accept_sparse="csr", dtype=types, **rules)
        return found

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


def _same_scaling(a: Scaling, b: Scaling, *, shifted: bool) -> bool:
    """Whether two scalings are the same; a shift matters only where no intercept makes up for it."""
    moved = np.abs(a[0] - b[0]) > SCALED * a[1]
    return np.allclose(a[1], b[1], rtol=SCALED, atol=0.0) and not (shifted and moved.any())


def _finite(array: Array, kinds: str) -> bool:
    """Whether the entries are finite numbers of these kinds, in a type and a byte order that need no conversion."""
    dtype = array.dtype
    if dtype.kind not in kinds or dtype.itemsize not in (4, 8) or not dtype.isnative:
        return False
    if dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(np.add.reduce(array, axis=None))
