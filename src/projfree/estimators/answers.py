"""What a fitted estimator answers: predictions, its certificate, its coefficients in other forms."""

from __future__ import annotations

import inspect
import math
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from projfree.checks import Array, refuse_masked, shown
from projfree.estimators.fit_certificate import FitCertificate
from projfree.estimators.frame_columns import refuse_columns, refuse_missing_targets
from projfree.estimators.given_data import features_at, is_path
from projfree.estimators.sklearn_callbacks import CallbackSupportMixin
from projfree.estimators.table import take_column
from projfree.losses.base import Loss
from projfree.run import Certificate, Result, Verification
from projfree.sets import ConstraintSet


class Answers(CallbackSupportMixin, BaseEstimator):
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
        if "checkpoint" in given and "checkpoint" not in inspect.signature(cls).parameters:
            raise TypeError(
                f"`{cls.__name__}` fits many models, and a checkpoint holds one; leave `checkpoint` out, and give it "
                "to a fit with the radius that was chosen."
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
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    verbose: Any
    callbacks: Any
    checkpoint: Any

    #: The losses that scikit-learn has with a penalty.
    _penalised_losses: tuple[str, ...] = ()

    # What a fit leaves.
    coef_: Array
    intercept_: Any
    n_iter_: int
    result_: Result
    radius_: float | None
    standardize_: bool
    multiplier_: float | None
    ball_: ConstraintSet
    loss_: Loss
    held_out_: Array | None

    @property
    def certificate_(self) -> Certificate:
        """What proves the gap; its `verify` checks it against the rows, as they were given to `fit`."""
        check_is_fitted(self, "coef_")
        return FitCertificate.of(self)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check the certificate of the fit against the data it was fitted on, in one read.

        With early stopping the certificate is about the rows that were not held out: of all rows those in
        ``held_out_`` are left out.
        """
        check_is_fitted(self, "coef_")
        names = [name for name in vars(self) if name.endswith("_")]
        other = type(self)(**self.get_params(deep=False)) if not hasattr(self, "_single") else self._single()
        for name in names:
            setattr(other, name, getattr(self, name))
        other.standardize = getattr(self, "standardize_", self.standardize)
        table = other._table(X, y, sample_weight)
        if self.held_out_ is not None and len(self.held_out_) == len(table.y):
            table = table.part(np.flatnonzero(~self.held_out_))
        problem = other._problem(table, self.loss_)
        return self.result_.certificate.verify(objective=problem.objective)

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


def _finite(array: Array, kinds: str) -> bool:
    """Whether the entries are finite numbers of these kinds, in a type and a byte order that need no conversion."""
    dtype = array.dtype
    if dtype.kind not in kinds or dtype.itemsize not in (4, 8) or not dtype.isnative:
        return False
    if dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(np.add.reduce(array, axis=None))
