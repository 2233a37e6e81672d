"""`ConstrainedRegressor`: linear regression over a ball."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if

from projfree.checks import Array, flag, positive, shown
from projfree.data import Data, as_data
from projfree.data.convert import is_dask
from projfree.data.gram import Gram
from projfree.estimators.base import FitSetup, LinearModel, SingleFit, warn_if_not_converged
from projfree.estimators.cv import CrossValidated
from projfree.estimators.dask import dask_aware
from projfree.estimators.inputs import TrainingSet, check_sample_weight, refuse_dates
from projfree.estimators.problem import Problem
from projfree.estimators.robust import BIWEIGHT, HUBER, robust_scale, setup_quantile, setup_robust
from projfree.estimators.scores import DevianceSums, d2_score, explained_fraction, has_deviance, prediction_sums
from projfree.losses import BiWeight, Gamma, Huber, Poisson, Quantile, Squared
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.objectives.quadratic import gram_form
from projfree.run import minimize
from projfree.run.result import raise_if_interrupted

log = logging.getLogger(__name__)

#: Smoothing of quantile losses along cross-validation paths, relative to the loss at zero.
PATH_SMOOTHING = 1e-4
#: Squares of smaller targets underflow.
MIN_TARGET = 1e-150
#: Smallest ratio of moments about the mean to moments about the origin of the sums; below it they are too inexact.
MIN_VARIATION = 1e-8
#: Losses that do not depend on the data.
LOSSES: dict[str, type[Loss]] = {"squared": Squared, "poisson": Poisson, "gamma": Gamma}


def _supports_partial_fit(model: Any) -> bool:
    """Return True if `partial_fit` is available, which needs the squared loss; else raise AttributeError."""
    if model.loss == "squared" or is_squared(model.loss):
        return True
    raise AttributeError(
        f"`partial_fit` keeps moments, which serve squares alone, got `loss={shown(model.loss)}`; use `fit`."
    )


@dataclass(eq=False, repr=False, kw_only=True)
class Regression(LinearModel, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Targets, losses and scores of regressors."""

    quantile: float = 0.5

    def _targets(self, y: Array, weight: Array | None) -> tuple[Array, Array | None]:
        refuse_dates("y", y)
        y = np.asarray(y, dtype=np.float64)
        if 0.0 < (largest := np.abs(y).max()) < MIN_TARGET:
            raise ValueError(
                f"`y` must have a largest size of at least {MIN_TARGET:g}, got {largest:.3g}; "
                "multiply it by a constant."
            )
        return y, weight

    def _loss(self, rows: TrainingSet) -> Loss:
        if isinstance(self.loss, Loss):
            if self.loss.labels:
                raise ValueError(
                    f"`loss` must be one for regression, got {shown(self.loss)}; use ConstrainedClassifier."
                )
            return self.loss
        if self.loss == "quantile":
            return Quantile(self.quantile)
        if self.loss in LOSSES:
            return LOSSES[self.loss]()
        if self.loss not in ("huber", "biweight"):
            names = ", ".join(map(repr, (*LOSSES, "huber", "biweight", "quantile")))
            raise ValueError(f"`loss` must be one of {names} or a Loss, got {shown(self.loss)}.")
        if isinstance(rows.X, Data):
            raise ValueError(
                f"`loss={self.loss!r}` takes its scale from single residuals, which {type(rows.X).__name__} does "
                "not show; give the loss with a scale, e.g. `Huber(1.0)`."
            )
        scale = robust_scale(rows.y, rows.weight)
        return Huber(HUBER * scale) if self.loss == "huber" else BiWeight(BIWEIGHT * scale)

    def _path_loss(self, rows: TrainingSet) -> Loss:
        """Return the loss of paths: with the scale of a penalised fit if it is robust, smoothed if it is a quantile."""
        if self.loss in ("huber", "biweight"):
            return clone(self).set_params(radius=None, callbacks=(), verbose=0)._fit(rows).loss_  # type: ignore[no-any-return]
        loss = self._loss(rows)
        if self.loss == "quantile" and isinstance(loss, Quantile):
            f = self._problem(rows, loss).objective
            excess = PATH_SMOOTHING * float(f.reported(f.point(np.zeros(f.shape))))
            return replace(loss, delta=loss.delta / f.structure.smoothing_error * excess) if excess > 0.0 else loss
        return loss

    def _to_coef(self, coef: Array, intercept: Any) -> tuple[Array, Any]:
        return coef.T.copy(), float(intercept) if np.ndim(intercept) == 0 else intercept

    def _score_predictions(self, loss: Loss, y: Array, u: Array, weight: Array | None) -> Array:
        scores = d2_score(loss, y, u, weight)
        return scores if len(y) > 1 or has_deviance(loss) else np.full(scores.shape, np.nan)

    def _score_arrays(self, X: Any, y: Any, sample_weight: Any) -> float:
        if not has_deviance(self.loss_):
            return super()._score_arrays(X, y, sample_weight)
        y = np.asarray(y, dtype=np.float64)
        y = self.loss_.targets(y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y)
        return float(
            d2_score(self.loss_, y, self._linear_predictor(X)[:, None], check_sample_weight(sample_weight, y))[0]
        )

    def _score_data(self, data: Data) -> float:
        step = DevianceSums(self.loss_, np.asarray(self.intercept_), data.mean_target())
        return float(explained_fraction(*prediction_sums(data, step, self.coef_).reshape(3, -1)).mean())

    @dask_aware
    def predict(self, X: Any) -> Array:
        """Predict targets, of shape (n,) or (n, k). ``X`` may be a path, as in `fit`, which is read in chunks."""
        scores = self._linear_predictor(X)  # raises NotFittedError before `loss_` is needed
        return self.loss_.mean(scores)


@dataclass(eq=False, repr=False, kw_only=True)
class ConstrainedRegressor(Regression, SingleFit):
    r"""Linear regression whose coefficients lie in a ball, with a certificate.

    .. math:: \min_{w, b}\ \frac{1}{\sum_i s_i} \sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i)
              \quad\text{subject to}\quad \|w\| \le r

    Parameters
    ----------
    loss : {"squared", "huber", "biweight", "poisson", "gamma", "quantile"} or Loss
        The scale of ``"huber"`` and ``"biweight"`` is estimated: 1.345 and 3.787 times a robust standard deviation
        (1.4826 times the median absolute deviation) of the residuals of a first Huber fit with the same ball or
        penalty, whose own scale comes from the targets. It is at least a thousandth of the scale of the targets.
        With these factors the losses have an efficiency of 95 % for Gaussian residuals. Use ``Huber(delta)`` or
        ``BiWeight(scale)`` for a fixed scale. The bi-weight loss is not convex: its fit starts from the Huber fit,
        uses the ball of that fit if there is no radius, and ends at a stationary point. ``"poisson"`` (targets of
        at least 0) and ``"gamma"`` (positive targets) are half the deviances of models whose mean is the
        exponential of the linear prediction: `predict` returns means, and `score` the fraction of deviance
        explained. ``"quantile"`` is the pinball loss of the parameter ``quantile``. It is smoothed, and the
        smoothing is reduced until it contributes at most half of ``tol``; the gap refers to the quantile loss
        itself.
    quantile : float
        The quantile that ``loss="quantile"`` estimates, between 0 and 1; the median by default.
    norm : {"lp", "group", "schatten", "l1", "l2", "nuclear"} or ConstraintSet
        The norm of the ball; ``"l1"`` and ``"l2"`` are ``"lp"`` with p = 1 and 2, ``"nuclear"`` is ``"schatten"`` with
        p = 1. With 2-D ``y`` the coefficients are a matrix, features x outputs: ``"group"`` groups its rows, and
        ``"schatten"`` is a norm of its singular values. A `ConstraintSet` is used as it is; ``p``, ``q``, ``radius``
        and ``alpha`` are then ignored.
    p, q : float
        The exponent of the norm, by default 2, and 1 for ``"schatten"``. For ``"group"``, p is the exponent within
        groups and q (default 1) the exponent across groups.
    radius : float, optional
        The radius of the ball. If it is given, ``alpha`` is ignored.
    alpha : float
        The weight of the penalty of a fit without a radius, which minimises

        .. math:: \sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i) + \frac{2\alpha}{k} \|w\|^k , \qquad
                  k = \min(p, 2) ,

        with q in place of p for groups. ``radius_`` is then the norm of the coefficients, and the certificate is about
        the ball of this radius. With n the sum of the weights, the squared loss gives `Ridge(alpha)` of scikit-learn
        for p = 2, `Lasso(alpha / n)` for p = 1 and `MultiTaskLasso(alpha / n)` for ``norm="group"``; the Poisson and
        Gamma losses give `PoissonRegressor(2 alpha / n)` and `GammaRegressor(2 alpha / n)`. A good ``alpha`` depends on
        the unit of ``y``, unless the loss is squared, ``"huber"`` or ``"biweight"`` and k = 2, or the loss is
        ``"gamma"``. The default of 1 is that of scikit-learn; choose ``alpha`` or the radius by cross-validation.
    fit_intercept : bool
        Whether to fit an intercept. The intercept is not constrained.
    solver : "auto" or Solver
        ``"auto"`` chooses one from the loss, the set and the shape of the data; `explain` returns the choice.
    tol : float
        The fit ends at this relative gap, which is certified for convex losses.
    max_iter, time_limit : int and float
        Limits on the iterations and the seconds of a fit. The time includes the preceding fits that solve a penalised
        problem or estimate the scale of a loss.
    standardize : bool
        Whether to centre features (with an intercept, unless ``X`` is sparse) and divide them by their standard
        deviations, without a copy. The radius then bounds the scaled coefficients; ``coef_`` is in the units of ``X``.
    warm_start : bool
        Whether to start from the coefficients of the previous fit, projected onto the ball.
    random_state : int, RandomState or None
        Seed of solvers that sample rows.
    positive : bool
        Whether to constrain the coefficients to be nonnegative (l_p and group balls).
    feature_groups : sequence, optional
        For ``norm="group"``: a label for each feature, or a list of lists of column numbers.
    free : sequence, optional
        Unpenalised columns, whose coefficients are not in the ball, by number, name or mask. With the squared loss they
        are eliminated exactly; a column that the others explain up to a relative residual of 1e-12 counts as collinear.
        With other losses, their coefficients are bounded by 10,000 times the range of the targets (or 1) over the
        standard deviation of the column, and the certificate is subject to this bound; with constraints that holds for
        all losses, and for a bound of a tenth of it.
    task : int or str, optional
        The column of ``X`` with the task of each row, which is not a feature. Each task has its own coefficients, a
        column of the matrix in the ball, and its own intercept.
    verbose : int
        0 is silent, 1 shows a progress bar with the certified gap and the remaining time on a terminal, 2 prints a line
        for each iteration; both write to the standard error stream.
    callbacks : callable or sequence of callables
        Called with the `Run` after each iteration; the fit ends if one returns True. Clones of the estimator have
        copies of the callbacks.
    signs : dict, optional
        Sign of the coefficients of columns, by name or number: 1 for at least zero, -1 for at most zero.
    order : list of lists, optional
        Lists of columns whose coefficients must be nondecreasing, such as those of the levels of a tariff.
    bounds : dict, optional
        Lower and upper bounds of coefficients, a pair for each column, with None for no bound.
    constraints : Rows or sequence of Rows, optional
        Further linear constraints, such as `projfree.sets.sums_to` and `projfree.sets.covariance`, on the coefficients
        in the units of ``X``. Constraints need a radius and a single output; they hold in floating-point arithmetic.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), (n_outputs, n_features) or (n_tasks, n_features)
    intercept_ : float or ndarray
    n_iter_ : int
    result_ : Result
        Value, bound, gap, status and trace of the run; its size does not depend on the number of rows. It refers to the
        rows after scaling if ``standardize_`` is True.
    multiplier_ : float or None
        The Lagrange multiplier of the radius: ``coef_`` also minimises the mean loss plus this times the norm.
    multipliers_ : dict
        Lagrange multipliers of the active constraints by name: the rate at which the mean loss falls if the bound is
        relaxed, positive for upper bounds and negative for lower bounds.
    radius_ : float or None
        The radius used.
    standardize_ : bool
        Whether columns were scaled.
    ball_, loss_ : ConstraintSet and Loss
        The set and the loss of the fit. If ``radius_`` is 0, the radius of ``ball_`` is the smallest normal float,
        2e-308.
    tasks_ : ndarray
        The labels of the tasks, if ``task`` is given.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where ``X`` has names.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import ConstrainedRegressor
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> model = ConstrainedRegressor(p=1.5, radius=1.0, fit_intercept=False).fit(X, y)
    >>> model.coef_.round(3), model.result_.relative_gap <= 1e-6, model.verify(X, y).ok
    (array([0.499, 0.748]), True, True)
    """

    alpha: float = 1.0

    #: The moments of the rows of `partial_fit`.
    _gram = cast("Gram | None", None)

    def _penalty_weight(self, n: float) -> float:
        return 2.0 * positive("alpha", self.alpha) / n

    def _setup(self, rows: TrainingSet, start: Array | None, time_left: Callable[[], float | None]) -> FitSetup:
        if self.loss == "quantile":
            return setup_quantile(self, rows, start, time_left)
        if self.loss in ("huber", "biweight") or isinstance(self.loss, BiWeight):
            return setup_robust(self, rows, start, time_left)
        return super()._setup(rows, start, time_left)

    @available_if(_supports_partial_fit)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConstrainedRegressor:
        """Add rows to those of earlier calls, and fit all of them; for the squared loss only.

        The model keeps the second moments of the rows, so that a call costs one read of the new rows and a solve with a
        d x d matrix. The result equals that of `fit` on all rows up to rounding. The first call after `fit` starts
        anew, with a log message, because `fit` keeps no moments. After Ctrl-C the model is unchanged, and the call can
        be repeated.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d)
        y : array of shape (n,) or (n, k)
        sample_weight : array of shape (n,), optional
        """
        if self._gram is None and hasattr(self, "coef_"):
            log.warning("`partial_fit` begins anew: the rows of `fit` are not kept, nor the moments of a loaded model.")
        gram = _add_to_moments(self, self._gram, X, y, sample_weight)
        _fit_moments(self, gram)
        self._gram = gram
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class ConstrainedRegressorCV(Regression, CrossValidated):
    """ConstrainedRegressor with radius and exponent chosen by cross-validation along warm-started paths.

    Parameters
    ----------
    loss, quantile, norm, q, fit_intercept, solver, tol, max_iter, time_limit, standardize
        As in `ConstrainedRegressor`.
    p : float or sequence of float
        The exponent of the norm, or several to choose from.
    radii : int or array
        The number of radii to try, or the radii. A number gives a grid of penalties as in `LassoCV`, for each p: from
        the smallest multiplier for which all coefficients are zero down to a thousandth of it. While the last one is
        best, the grid is extended by a decade, at most three times. All folds use the same multipliers; ``radii_`` are
        the norms of the coefficients that they give on all rows. If radii are given, the grid is not extended, and a
        warning is issued if the best radius is the smallest or the largest.
        end, a warning says so.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default.
    scoring : str or callable, optional
        The score to maximise, by default R2. Sample weights are passed to it if it accepts them.
    rule : {"best", "one_standard_error"}
        Choose the radius with the best mean score, or the smallest radius within one standard error of it (for the best
        p).
    random_state, positive, feature_groups, free, task
        As in `ConstrainedRegressor`.
    n_jobs : int, optional
        Number of joblib processes over exponents and folds.
    verbose : int
        0 is silent; 1 shows a progress bar over exponents and folds on a terminal, and one for the final fit; 2 prints
        a line for each iteration of the final fit.
    callbacks : callable or sequence of callables
        As in `ConstrainedRegressor`, for the final fit.

    Attributes
    ----------
    radius_, p_ : float
        The chosen radius and exponent.
    radii_ : ndarray of shape (n_p, n_radii)
        The radii tried for each p; shorter rows are padded with NaN, as in ``scores_``.
    scores_ : ndarray of shape (n_p, n_radii, n_folds)
        Scores of each fold. The path of a fold ends when its score has been below the best one for ten radii.
    cv_results_ : dict
        As in scikit-learn's ``GridSearchCV``, with an entry for each p and radius; ``mean_fit_time`` is the time of a
        path divided by its number of radii.
    best_index_, best_params_ : int and dict
        The chosen entry of ``cv_results_``.
    extended_ : int
        The number of radii by which an automatic grid was extended.
    best_score_ : float
        The mean score of the chosen radius and exponent.
    path_ : RadiusPath
        Coefficients and multipliers over all radii for the chosen p, from all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where ``X`` has names.

    All other attributes are those of `ConstrainedRegressor` for the chosen radius, fitted on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import ConstrainedRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 10))
    >>> y = X[:, 0] - X[:, 1] + rng.standard_normal(100)
    >>> model = ConstrainedRegressorCV(p=[1, 2], radii=8).fit(X, y)
    >>> model.p_, model.scores_.shape, model.path_.coefs.shape
    (1.0, (2, 8, 5), (8, 10))
    """

    _estimator_class = ConstrainedRegressor


# ---------------------------------------------------------------------- partial_fit: least squares from moments


def _add_to_moments(model: Any, gram: Gram | None, X: Any, y: Any, sample_weight: Any) -> Gram:
    """Return a copy of the moments with these rows added, so that an error leaves the model unchanged."""
    if isinstance(X, Data) or is_dask(X):
        raise TypeError("`partial_fit` takes arrays, part by part; give Data to `fit`, which reads it chunk by chunk.")
    for name in ("task", "free"):
        if getattr(model, name) is not None:
            raise ValueError(
                f"`partial_fit` keeps no rows, and `{name}` needs them, got {shown(getattr(model, name))}; use `fit`."
            )
    if gram is not None:
        model._linear_predictor(X)  # raises if the columns differ from those of earlier calls
    rows = model._training_set(X, y, sample_weight)
    if rows.weight is not None and rows.weight.any():  # leave out rows of weight zero
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


def _fit_moments(model: Any, gram: Gram) -> None:
    """Minimise the mean squared error of all rows so far, and set the fitted attributes."""
    time_left, intercept = model._start_countdown(), flag("fit_intercept", model.fit_intercept)
    scaling, scaled = None, gram
    if flag("standardize", model.standardize):
        about = np.diag(gram.moment(gram.mean))
        if np.any(about <= MIN_VARIATION * np.diag(gram.moment(gram.shift[: gram.d]))):
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
    setup = model._setup_on_ball(rows, problem, start, time_left)
    # After Ctrl-C the model is unchanged, so that the call can be repeated.
    settings = {**model._minimize_options(setup, time_left), "callbacks": ()}
    result = raise_if_interrupted(minimize(form, setup.ball, **settings))

    def at(w: Array) -> Any:
        return scaled.intercept(w) if intercept else None

    own = result.certificate  # of the quadratic form; `verify` checks that of the rows, which has intercepts
    proof = replace(own, loss=Squared(), intercept=at(own.w), witness_intercept=at(own.witness))
    result = replace(result, intercept=at(result.w), certificate=proof)
    model._set_attributes(setup.problem, setup.ball, result, Squared())
    warn_if_not_converged(model, result, model.tol, failure=setup.failure)
