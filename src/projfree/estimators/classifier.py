"""`ConstrainedClassifier`: linear classification over a ball."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array, positive, shown
from projfree.data import Data
from projfree.data.convert import is_dask
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.cv import CrossValidated
from projfree.estimators.dask import lazy_on_dask
from projfree.estimators.inputs import (
    Encode,
    TrainingSet,
    class_weighted,
    from_outside,
    given_data,
    on_cluster,
    row_weights,
    scored_columns,
    weights_of_classes,
)
from projfree.estimators.penalty import total_weight
from projfree.estimators.scores import data_score, predicted_classes
from projfree.losses import Logistic, Softmax, SquaredHinge, SquaredSigmoid
from projfree.losses.base import Loss

NAMES: dict[str, Callable[..., Loss]] = {
    "logistic": Logistic,
    "softmax": Softmax,
    "squared_sigmoid": SquaredSigmoid,
    "squared_hinge": SquaredHinge,
}


def _has_probabilities(model: Any) -> bool:
    """Whether the loss models probabilities."""
    kind = NAMES.get(model.loss) if isinstance(model.loss, str) else type(model.loss)
    if isinstance(kind, type) and issubclass(kind, Logistic | Softmax | SquaredSigmoid):
        return True
    raise AttributeError(f"`predict_proba` needs a loss that models probabilities, got {shown(model.loss)}.")


class ConstrainedClassifier(ClassifierMixin, ConstrainedModel):
    r"""Linear classification whose coefficients lie in a ball, with a certificate.

    .. math:: \min_{w, b}\ \frac{1}{\sum_i s_i} \sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i)
              \quad\text{subject to}\quad \|w\| \le r

    Parameters
    ----------
    loss : {"logistic", "softmax", "squared_sigmoid", "squared_hinge"} or Loss
        ``"logistic"`` is logistic regression: with two classes one vector of coefficients, with more a matrix with a
        column for each class and the softmax loss. ``"softmax"`` has a column for each class also where there are two.
        ``"squared_sigmoid"`` is the squared error of a sigmoid, bounded, for noisy labels, and not convex; with more
        than two classes each class has its sigmoid against the others. ``"squared_hinge"`` is that of a linear support
        vector machine, each class against the others, and has no probabilities. A ``Loss`` must be one of labels.
    norm : {"lp", "group", "schatten", "l1", "l2", "nuclear"} or ConstraintSet
        As in `ConstrainedRegressor`; the coefficients are a matrix, features x classes, with a column for each class.
    p, q : float
        The exponent of the norm, by default 2, or 1 for ``"schatten"``; for ``"group"`` the one within groups, and q (1
        by default) the one across them.
    radius : float, optional
        The radius of the ball. It is used in place of ``C`` where it is given.
    C : float
        Without a radius, the weight of the loss beside a penalty: the fit minimises

        .. math:: C \sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i) + \frac1k \|w\|^k , \qquad k = \min(p, 2) ,

        with q in place of p for groups, and ``radius_`` is the norm of its coefficients, over whose ball the
        certificate is. That is `LogisticRegression` of scikit-learn, with its l2 penalty for p = 2 and l1 for p = 1.
        The default of 1 is scikit-learn's, and no better: choose it, or the radius, by cross-validation.
    fit_intercept : bool
        Whether an intercept for each output, which the ball does not hold, is minimised out.
    class_weight : dict, "balanced" or None
        Weights of classes, as in scikit-learn; they multiply the sample weights.
    solver, tol, max_iter, time_limit, standardize, warm_start, random_state
        As in `ConstrainedRegressor`.
    positive, feature_groups, free, task, verbose, callbacks
        As in `ConstrainedRegressor`; ``task`` needs two classes.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    coef_ : ndarray of shape (1, n_features), (n_classes, n_features) or (n_tasks, n_features)
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_tasks,)
    n_iter_, result_, certificate_, multiplier_, radius_, standardize_, ball_, loss_, tasks_
        As in `ConstrainedRegressor`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where ``X`` has names.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import ConstrainedClassifier
    >>> X, y = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]]), ["no", "no", "yes", "yes"]
    >>> model = ConstrainedClassifier(p=1, radius=2.0).fit(X, y)
    >>> model.predict([[2.5, 0.0]]), model.coef_.round(3)
    (array(['yes'], dtype='<U3'), array([[ 1.414, -0.586]]))
    """

    classes_: Array

    def __init__(
        self,
        loss: Any = "logistic",
        *,
        norm: Any = "lp",
        p: float | None = None,
        q: float | None = None,
        radius: float | None = None,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        standardize: Any = False,
        warm_start: bool = False,
        random_state: Any = None,
        positive: bool = False,
        feature_groups: Any = None,
        free: Any = None,
        task: Any = None,
        verbose: int = 0,
        callbacks: Any = (),
    ) -> None:
        self.loss = loss
        self.norm = norm
        self.p = p
        self.q = q
        self.radius = radius
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.standardize = standardize
        self.warm_start = warm_start
        self.random_state = random_state
        self.positive = positive
        self.feature_groups = feature_groups
        self.free = free
        self.task = task
        self.verbose = verbose
        self.callbacks = callbacks

    def _penalty_weight(self, data: Any) -> float:
        return 1.0 / (positive("C", self.C) * total_weight(data))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> ConstrainedClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
            The path of a .npy file, of a Parquet file or of a folder of those is read chunk by chunk, and so are memory
            maps larger than a pass keeps in memory. Data from `as_data` holds its targets and weights itself.
        y : array of shape (n,)
            Labels of any kind; with Parquet also the name of a column.
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            The cluster that has the rows of a Dask collection or reads a Parquet folder; by default the active one has
            those of collections.
        """
        X, y, sample_weight = on_cluster(client, X, y, sample_weight)
        self._fit(self._training_set(X, y, sample_weight))
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> float:
        """The accuracy; of a Dask collection or of `Data` from sums that are formed where the rows are.

        ``X`` may be a path, and ``y`` the name of a column, as for `fit`.
        """
        check_is_fitted(self, "coef_")
        X, y, sample_weight = on_cluster(client, X, y, sample_weight)
        if isinstance(X, Data) or is_dask(X):
            return data_score(self, self._checked_data(X, y, sample_weight))
        return float(super().score(X, *scored_columns(self, X, y, sample_weight)))

    def _own_score(self, loss: Loss, y: Array, u: Array, weight: Array | None) -> float:
        true = y if loss.coupled else predicted_classes(y)
        return float(np.average(predicted_classes(u) == true, weights=weight))

    @lazy_on_dask
    def decision_function(self, X: Any) -> Array:
        """Scores: of the second class with two classes, else one for each."""
        u = self._linear(X)
        return u[:, 1] - u[:, 0] if u.ndim == 2 and len(self.classes_) == 2 else u

    @lazy_on_dask
    def predict(self, X: Any) -> Array:
        """The labels with the largest scores; ``X`` may be a path, as for `fit`, and is then read in chunks."""
        u = self.decision_function(X)  # says so if there was no fit
        labels: Array = self.classes_[predicted_classes(u)]
        return labels

    @available_if(_has_probabilities)
    @lazy_on_dask
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, of shape (n, n_classes).

        Softmax of the scores for the softmax loss, else the sigmoid of the score; where several classes have a sigmoid
        each, these are divided by their sum.
        """
        from scipy.special import expit, softmax

        u = self._linear(X)
        if self.loss_.coupled:
            return np.asarray(softmax(u, axis=1))
        if u.ndim == 1:
            return np.column_stack([expit(-u), expit(u)])
        odds = expit(u)
        # Far from all classes every sigmoid vanishes; scores then decide.
        total = odds.sum(axis=1, keepdims=True)
        shares: Array = np.where(total > 0, odds / np.where(total > 0, total, 1.0), softmax(u, axis=1))
        return shares

    @available_if(_has_probabilities)
    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.predict_proba(X))
        return logs

    def _training_set(self, X: Any, y: Any, sample_weight: Any) -> TrainingSet:
        X, y, sample_weight = from_outside(X, y, sample_weight)
        if isinstance(X, Data):
            return self._labelled(given_data(self, X, y, sample_weight))
        X, y, labels = self._features_and_targets(X, y, sample_weight)
        try:
            check_classification_targets(y)
            self.classes_, index = np.unique(y, return_inverse=True)
        except TypeError:  # labels that have no order
            kinds = " and ".join(sorted({type(label).__name__ for label in y.ravel()}))
            raise ValueError(f"`y` must hold labels of one kind, got {kinds}; drop or relabel the others.") from None
        self._refuse_one_class()
        weight = self._weights(X, index, sample_weight)
        task, tasks = self._task_places(labels, reset=True)
        if task is not None and len(self.classes_) > 2:
            raise ValueError(f"`task` needs two classes, got {len(self.classes_)}.")
        return TrainingSet(X, Encode(self.classes_, self._losses().coupled)(y), weight, task, tasks)

    def _refuse_one_class(self) -> None:
        if len(self.classes_) < 2:
            raise ValueError(f"`y` must hold at least two classes, got the one class {shown(self.classes_[0])} only.")

    def _labelled(self, table: TrainingSet) -> TrainingSet:
        """The table of a data class with its labels encoded where the rows are."""
        found = table.X.labels()
        if len(found) != 1:
            raise ValueError(f"`fit(data)` needs one label a row, got targets with {len(found)} columns.")
        self.classes_ = found[0]
        self._refuse_one_class()
        data = table.X
        if self.class_weight is not None:
            data = class_weighted(data, self.classes_, self.class_weight)
        return TrainingSet(data.with_targets(Encode(self.classes_, self._losses().coupled)), table.y)

    def _weights(self, X: Any, index: Array, sample_weight: Any) -> Array | None:
        weight = row_weights(sample_weight, X)
        if self.class_weight is None:
            return weight
        if self.class_weight == "balanced":  # scikit-learn takes weights of rows here since 1.7
            total = np.bincount(index, weights=weight, minlength=len(self.classes_))
            per_class = total.sum() / (len(self.classes_) * np.where(total > 0, total, 1.0))
        else:
            per_class = weights_of_classes(self.class_weight, self.classes_)
        by_row: Array = per_class[index]
        return by_row if weight is None else by_row * weight

    def _losses(self, table: TrainingSet | None = None) -> Loss:
        k = len(self.classes_)
        if self.loss == "softmax" or isinstance(self.loss, Softmax) or (self.loss == "logistic" and k > 2):
            return Softmax(k)
        if isinstance(self.loss, str) and self.loss in NAMES:
            return NAMES[self.loss]()
        if not isinstance(self.loss, Loss):
            raise ValueError(f"`loss` must be one of {', '.join(map(repr, NAMES))} or a Loss, got {shown(self.loss)}.")
        if not self.loss.labels:
            raise ValueError(f"`loss` must be one of labels, got {shown(self.loss)}; use ConstrainedRegressor.")
        return self.loss

    def _shaped(self, coef: Array, intercept: Array) -> dict[str, Any]:
        if len(self.classes_) == 2 and coef.ndim == 1:
            return {"coef_": coef[None, :].copy(), "intercept_": np.reshape(intercept, (1,))}
        k = 1 if coef.ndim == 1 else coef.shape[1]
        if self._losses().coupled:  # softmax does not see a shift of all scores
            intercept = intercept - np.mean(intercept)
        return {"coef_": np.atleast_2d(coef.T.copy()), "intercept_": np.broadcast_to(intercept, (k,)).copy()}

    def _scores_of(self, X: Any, task: Array | None, fitted: dict[str, Any] | None = None) -> Array:
        u = super()._scores_of(X, task, fitted)
        return u[:, 0] if u.ndim == 2 and u.shape[1] == 1 else u

    def _output_names(self, k: int) -> list[Any]:
        if self.task is not None:
            return list(self.tasks_)
        return list(self.classes_[1:]) if k == 1 else list(self.classes_)


class ConstrainedClassifierCV(CrossValidated, ConstrainedClassifier):
    """ConstrainedClassifier with radius and exponent chosen by cross-validation along warm-started paths.

    Parameters
    ----------
    loss, norm, q, fit_intercept, class_weight, solver, tol, max_iter, time_limit, standardize
        As in `ConstrainedClassifier`.
    random_state, positive, feature_groups, free, task, callbacks
        As in `ConstrainedClassifier`; callbacks are called in the final fit.
    p, radii, rule, n_jobs, verbose
        As in `ConstrainedRegressorCV`.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default, stratified.
    scoring : str or callable, optional
        What is maximised; by default the accuracy. Sample weights reach it where it takes some.

    Attributes
    ----------
    radius_, p_, radii_, scores_, cv_results_, best_index_, best_params_, best_score_, extended_, path_
        As in `ConstrainedRegressorCV`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where ``X`` has names.

    All other attributes are those of `ConstrainedClassifier` for the chosen radius, fitted on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import ConstrainedClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 10))
    >>> y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(200) > 0, "yes", "no")
    >>> model = ConstrainedClassifierCV(p=[1, 2], radii=8).fit(X, y)
    >>> model.p_, model.scores_.shape, model.path_.coefs.shape
    (1.0, (2, 8, 5), (8, 1, 10))
    """

    _kind = ConstrainedClassifier

    def __init__(
        self,
        loss: Any = "logistic",
        *,
        norm: Any = "lp",
        p: Any = None,
        q: float | None = None,
        radii: Any = 50,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        standardize: Any = False,
        random_state: Any = None,
        positive: bool = False,
        feature_groups: Any = None,
        free: Any = None,
        task: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = (),
    ) -> None:
        self.loss = loss
        self.norm = norm
        self.p = p
        self.q = q
        self.radii = radii
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.standardize = standardize
        self.random_state = random_state
        self.positive = positive
        self.feature_groups = feature_groups
        self.free = free
        self.task = task
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    warm_start = False

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None, **params: Any
    ) -> ConstrainedClassifierCV:
        """Choose radius and exponent, and fit all rows with them.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
        y : array of shape (n,), or with Parquet the name of a column
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            As in `ConstrainedClassifier.fit`.
        **params
            ``groups`` for the splitter; with metadata routing anything that splitter and scorer ask for.
        """
        self._search(X, y, sample_weight, params, client)
        return self
