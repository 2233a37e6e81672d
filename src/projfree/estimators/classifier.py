"""`ConstrainedClassifier`: linear classification over a ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from projfree.checks import Array, positive, shown
from projfree.data import Data
from projfree.estimators.base import LinearModel, SingleFit
from projfree.estimators.cv import CrossValidated
from projfree.estimators.dask import dask_aware
from projfree.estimators.inputs import TrainingSet
from projfree.estimators.scores import CorrectWeight, predicted_classes, prediction_sums
from projfree.losses import Logistic, Softmax, SquaredHinge, SquaredSigmoid
from projfree.losses.base import Loss

LOSSES: dict[str, Callable[..., Loss]] = {
    "logistic": Logistic,
    "softmax": Softmax,
    "squared_sigmoid": SquaredSigmoid,
    "squared_hinge": SquaredHinge,
}


def encode_labels(classes: Array, indices: bool, y: Array) -> Array:
    """Encode labels for a loss: as class indices, or as the sign of each class against the others."""
    index = np.searchsorted(classes, y)
    if indices:
        return index
    return 2.0 * (index if len(classes) == 2 else one_hot(classes, y)) - 1.0


def one_hot(classes: Array, y: Array) -> Array:
    """Return the one-hot encoding of labels."""
    return np.eye(len(classes))[np.searchsorted(classes, y)]


def weight_by_class(classes: Array, factors: Array, y: Array) -> Array:
    """Return the weight of the class of each label."""
    return np.asarray(factors[np.searchsorted(classes, y)])


def _models_probabilities(model: Any) -> bool:
    """Return True if the loss models probabilities, else raise AttributeError."""
    kind = LOSSES.get(model.loss) if isinstance(model.loss, str) else type(model.loss)
    if isinstance(kind, type) and issubclass(kind, Logistic | Softmax | SquaredSigmoid):
        return True
    raise AttributeError(f"`predict_proba` needs a loss that models probabilities, got {shown(model.loss)}.")


@dataclass(eq=False, repr=False)
class Classification(LinearModel, ClassifierMixin, BaseEstimator):
    """Labels, losses, scores and probabilities of classifiers."""

    loss: Any = "logistic"
    _: KW_ONLY
    class_weight: Any = None

    def _targets(self, y: Array, weight: Array | None) -> tuple[Array, Array | None]:
        try:
            check_classification_targets(y)
            classes, index = np.unique(y, return_inverse=True)
        except TypeError:  # labels that have no order
            kinds = " and ".join(sorted({type(label).__name__ for label in y.ravel()}))
            raise ValueError(f"`y` must hold labels of one kind, got {kinds}; drop or relabel the others.") from None
        self._set_classes(classes)
        if self.class_weight is not None:
            factors = self._compute_class_weights(np.bincount(index, weight, len(classes)))[index]
            weight = factors if weight is None else factors * weight
        return encode_labels(classes, self._loss().coupled, y), weight

    def _encode_data_targets(self, data: Data) -> Data:
        labels = data.labels()
        if len(labels) != 1:
            raise ValueError(f"`fit(data)` needs one label a row, got targets with {len(labels)} columns.")
        classes, reweight = labels[0], None
        self._set_classes(classes)
        if self.class_weight is not None:
            shares = data.with_targets(partial(one_hot, classes)).mean_target()
            reweight = partial(weight_by_class, classes, self._compute_class_weights(shares))
        return data.with_targets(partial(encode_labels, classes, self._loss().coupled), reweight)

    def _set_classes(self, classes: Array) -> None:
        if len(classes) < 2:
            raise ValueError(f"`y` must hold at least two classes, got the one class {shown(classes[0])} only.")
        if self.task is not None and len(classes) > 2:
            raise ValueError(f"`task` needs two classes, got {len(classes)}.")
        self.classes_ = classes

    def _compute_class_weights(self, totals: Array) -> Array:
        """Return the weight of each class, given the total sample weight of each class."""
        if self.class_weight == "balanced":  # scikit-learn uses sample weights here since 1.7
            return np.asarray(totals.sum() / (len(totals) * np.where(totals > 0, totals, 1.0)))
        factors: Array = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if factors.min() < 0.0:
            label = shown(self.classes_[factors.argmin()])
            raise ValueError(
                f"`class_weight` must hold no negative weight, got {factors.min():g} for the class {label}; "
                "drop its rows, or give it a positive weight."
            )
        return factors

    def _loss(self, rows: TrainingSet | None = None) -> Loss:
        k = len(self.classes_)
        if self.loss == "softmax" or isinstance(self.loss, Softmax) or (self.loss == "logistic" and k > 2):
            return Softmax(k)
        if isinstance(self.loss, str) and self.loss in LOSSES:
            return LOSSES[self.loss]()
        if not isinstance(self.loss, Loss):
            raise ValueError(f"`loss` must be one of {', '.join(map(repr, LOSSES))} or a Loss, got {shown(self.loss)}.")
        if not self.loss.labels:
            raise ValueError(f"`loss` must be one of labels, got {shown(self.loss)}; use ConstrainedRegressor.")
        return self.loss

    def _to_coef(self, coef: Array, intercept: Any) -> tuple[Array, Any]:
        if self._loss().coupled:  # softmax is invariant to a shift of all scores
            intercept = intercept - np.mean(intercept)
        coef = np.atleast_2d(coef.T.copy())
        return coef, np.broadcast_to(intercept, (len(coef),)).copy()

    def _linear_predictor(self, X: Any) -> Array:
        u = super()._linear_predictor(X)
        return u[:, 0] if u.ndim == 2 and u.shape[1] == 1 else u

    def _score_predictions(self, loss: Loss, y: Array, u: Array, weight: Array | None) -> Array:
        guess = (u.reshape(u.shape[:2]) > 0).astype(np.intp) if u[0, 0].size == 1 else u.argmax(axis=2)
        true = y if loss.coupled else predicted_classes(y)
        return np.average(guess == true[:, None], axis=0, weights=weight)

    def _score_data(self, data: Data) -> float:
        coef, intercept = (part[0] if len(self.coef_) == 1 else part for part in (self.coef_, self.intercept_))
        return float(prediction_sums(data, CorrectWeight(self.classes_, intercept), coef)[0])

    def _output_names(self, k: int) -> list[Any]:
        return super()._output_names(k) if self._task_column is not None else list(self.classes_[-k:])

    @dask_aware
    def decision_function(self, X: Any) -> Array:
        """Return the score of the second of two classes, or a score for each class."""
        u = self._linear_predictor(X)
        return u[:, 1] - u[:, 0] if u.ndim == 2 and len(self.classes_) == 2 else u

    @dask_aware
    def predict(self, X: Any) -> Array:
        """Predict class labels. ``X`` may be a path, as in `fit`, which is read in chunks."""
        u = self.decision_function(X)  # raises NotFittedError before `classes_` is needed
        labels: Array = self.classes_[predicted_classes(u)]
        return labels

    @available_if(_models_probabilities)
    @dask_aware
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, of shape (n, n_classes).

        It is the softmax of the scores for the softmax loss, and the sigmoid of the score otherwise. With one sigmoid
        per class, these are normalised to sum to one.
        """
        from scipy.special import expit, softmax

        u = self._linear_predictor(X)
        if self.loss_.coupled:
            return np.asarray(softmax(u, axis=1))
        if u.ndim == 1:
            return np.column_stack([expit(-u), expit(u)])
        odds = expit(u)
        # If all sigmoids underflow, use the softmax of the scores.
        total = odds.sum(axis=1, keepdims=True)
        shares: Array = np.where(total > 0, odds / np.where(total > 0, total, 1.0), softmax(u, axis=1))
        return shares

    @available_if(_models_probabilities)
    @dask_aware
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.predict_proba(X))
        return logs


@dataclass(eq=False, repr=False, kw_only=True)
class ConstrainedClassifier(Classification, SingleFit):
    r"""Linear classification whose coefficients lie in a ball, with a certificate.

    .. math:: \min_{w, b}\ \frac{1}{\sum_i s_i} \sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i)
              \quad\text{subject to}\quad \|w\| \le r

    Parameters
    ----------
    loss : {"logistic", "softmax", "squared_sigmoid", "squared_hinge"} or Loss
        ``"logistic"`` is logistic regression: one vector of coefficients for two classes, and the softmax loss with
        one column per class for more. ``"softmax"`` has one column per class also for two classes.
        ``"squared_sigmoid"`` is the squared error of a sigmoid: bounded, for noisy labels, and not convex; with
        more than two classes it is one-versus-rest. ``"squared_hinge"`` is the loss of `LinearSVC`,
        one-versus-rest, without probabilities. A ``Loss`` must be one for labels.
    norm : {"lp", "group", "schatten", "l1", "l2", "nuclear"} or ConstraintSet
        As in `ConstrainedRegressor`; the coefficients are a matrix, features x classes, with a column for each class.
    p, q : float
        The exponent of the norm, by default 2, and 1 for ``"schatten"``. For ``"group"``, p is the exponent within
        groups and q (default 1) the exponent across groups.
    radius : float, optional
        The radius of the ball. If it is given, ``C`` is ignored.
    C : float
        The weight of the loss relative to the penalty of a fit without a radius, which minimises

        .. math:: C \sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i) + \frac1k \|w\|^k , \qquad k = \min(p, 2) ,

        with q in place of p for groups. ``radius_`` is then the norm of the coefficients, and the certificate is about
        the ball of this radius. This is `LogisticRegression` of scikit-learn, with its l2 penalty for p = 2 and its l1
        penalty for p = 1. The default of 1 is that of scikit-learn; choose ``C`` or the radius by cross-validation.
    fit_intercept : bool
        Whether to fit an intercept for each output. The intercepts are not constrained.
    class_weight : dict, "balanced" or None
        Class weights, as in scikit-learn; they multiply the sample weights.
    solver, tol, max_iter, time_limit, standardize, warm_start, random_state
        As in `ConstrainedRegressor`.
    positive, feature_groups, free, task, verbose, callbacks, signs, order, bounds, constraints
        As in `ConstrainedRegressor`; ``task`` and constraints need two classes.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    coef_ : ndarray of shape (1, n_features), (n_classes, n_features) or (n_tasks, n_features)
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_tasks,)
    n_iter_, result_, multiplier_, multipliers_, radius_, standardize_, ball_, loss_, tasks_
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

    C: float = 1.0

    def _penalty_weight(self, n: float) -> float:
        return 1.0 / (positive("C", self.C) * n)


@dataclass(eq=False, repr=False, kw_only=True)
class ConstrainedClassifierCV(Classification, CrossValidated):
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
        The score to maximise, by default the accuracy. Sample weights are passed to it if it accepts them.

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

    _estimator_class = ConstrainedClassifier
