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

#: Quantiles are smoothed by this part of the loss at zero where they are scored and nothing else.
PATH_SMOOTHING = 1e-4
#: Squares of smaller targets are lost to underflow.
MIN_TARGET = 1e-150
#: Moments about the mean that are a smaller part than this of those about the centre of the sums are too inexact.
MIN_VARIATION = 1e-8
#: Losses that are made without a look at the data.
LOSSES: dict[str, type[Loss]] = {"squared": Squared, "poisson": Poisson, "gamma": Gamma}


def _supports_partial_fit(model: Any) -> bool:
    """Whether rows can be added: moments serve squares alone."""
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
        """The scale of a robust loss is that of a fit with the default penalty, and quantiles are smoothed a little."""
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
        """The predictions, of shape (n,) or (n, k); ``X`` may be a path, as for `fit`, and is then read in chunks."""
        scores = self._linear_predictor(X)  # says so if there was no fit
        return self.loss_.mean(scores)


@dataclass(eq=False, repr=False, kw_only=True)
class ConstrainedRegressor(Regression, SingleFit):
    r"""Linear regression whose coefficients lie in a ball, with a certificate.

    .. math:: \min_{w, b}\ \frac{1}{\sum_i s_i} \sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i)
              \quad\text{subject to}\quad \|w\| \le r

    Parameters
    ----------
    loss : {"squared", "huber", "biweight", "poisson", "gamma", "quantile"} or Loss
        ``"huber"`` and ``"biweight"`` take their scale from the data: 1.345 and 3.787 times a robust standard
        deviation (1.4826 times the median absolute deviation) of the residuals of a first Huber fit, scaled by the
        targets, over the same ball or with the same penalty, and at least a thousandth of what the targets alone would
        give. At these multiples they lose 5 % of efficiency on Gaussian residuals. Give ``Huber(delta)`` or
        ``BiWeight(scale)`` to fix it. The bi-weight is not convex: its fit starts at that of Huber's loss, whose ball
        it takes where there is no radius, and ends at a stationary point. ``"poisson"`` (targets of at least 0) and
        ``"gamma"`` (positive ones) are half the deviances of models whose mean is the exponential of the linear
        prediction: `predict` gives means, and `score` the part of the deviance that is explained. ``"quantile"`` is
        the loss of ``quantile``. It is smoothed, less and less until that accounts for half of ``tol``; the gap is that
        of the quantile loss itself.
    quantile : float
        The quantile that ``loss="quantile"`` predicts, between 0 and 1; the median by default.
    norm : {"lp", "group", "schatten", "l1", "l2", "nuclear"} or ConstraintSet
        The norm of the ball; ``"l1"`` and ``"l2"`` are ``"lp"`` with that p, ``"nuclear"`` is ``"schatten"`` with 1.
        With 2-D ``y`` the coefficients are a matrix, features x outputs: its rows are the groups of ``"group"``, and
        ``"schatten"`` acts on its singular values. A set is taken as it is, with its own radius; ``p``, ``q``,
        ``radius`` and ``alpha`` play no part then.
    p, q : float
        The exponent of the norm, by default 2, or 1 for ``"schatten"``; for ``"group"`` the one within groups, and q (1
        by default) the one across them.
    radius : float, optional
        The radius of the ball. It is used in place of ``alpha`` where it is given.
    alpha : float
        Without a radius, the weight of a penalty: the fit minimises

        .. math:: \sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i) + \frac{2\alpha}{k} \|w\|^k , \qquad
                  k = \min(p, 2) ,

        with q in place of p for groups, and ``radius_`` is the norm of its coefficients, over whose ball the
        certificate is. With n the sum of the weights, squares give `Ridge(alpha)` of scikit-learn for p = 2,
        `Lasso(alpha / n)` for p = 1 and `MultiTaskLasso(alpha / n)` for ``norm="group"``; the Poisson and Gamma losses
        give `PoissonRegressor(2 alpha / n)` and `GammaRegressor(2 alpha / n)`. ``alpha`` depends on the
        unit of ``y``, unless the loss is squared, ``"huber"`` or ``"biweight"`` and k = 2, or the loss is ``"gamma"``.
        The default of 1 is scikit-learn's, and no better: choose it, or the radius, by cross-validation.
    fit_intercept : bool
        Whether to fit an intercept. The intercept is not constrained.
    solver : "auto" or Solver
        ``"auto"`` chooses one by the loss, the set and the shape of the data.
    tol : float
        The relative gap at which the fit ends, proven for convex losses.
    max_iter, time_limit : int and float
        The most iterations of a fit, and seconds of it and of those before it, which solve a penalised problem or find
        the scale of a loss.
    standardize : bool
        Whether features are centred (with an intercept, unless ``X`` is sparse) and divided by their standard
        deviations, as a view. The radius is then one on the scaled coefficients; ``coef_`` is in the units of ``X``.
    warm_start : bool
        Whether to start from the coefficients of the previous fit, or the nearest ones inside the ball.
    random_state : int, RandomState or None
        For solvers that draw rows.
    positive : bool
        Whether coefficients must not be negative (l_p and group balls).
    feature_groups : sequence, optional
        For ``norm="group"``: a label for each feature, or a list of lists of column numbers.
    free : sequence, optional
        Columns outside the ball, by number, name or mask. For squares they are minimised out beforehand; one that the
        others explain up to 1e-12 of it counts as a combination of them. With other losses they may go up to 10,000
        times the range of the targets (or 1), and the certificate is for that.
    task : int or str, optional
        The column of ``X`` that holds the task of each row. Each task then has its own coefficients (and its own
        intercept), a column of the matrix that the ball holds; the column is no feature.
    verbose : int
        0 is silent, 1 shows a progress bar with the certified gap and the time left on a terminal, 2 writes a line for
        each iteration; both to the standard error stream.
    callbacks : callable or sequence of callables
        Each is called with the `Run` after every iteration; one that returns True ends it. Copies of the estimator
        have copies of them.
    signs : dict, optional
        1 or -1 for columns, by name or number: their coefficients are at least or at most zero.
    order : list of lists, optional
        Columns whose coefficients increase in the order given, as those of the levels of a tariff.
    bounds : dict, optional
        A pair of numbers, None where there is no bound, for columns: the range of their coefficients.
    constraints : Rows or sequence of Rows, optional
        More linear constraints, from `projfree.sets.sums_to`, `projfree.sets.covariance` and the like, on coefficients
        in the units of ``X``. All constraints need a radius and one output, and hold in computed arithmetic.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), (n_outputs, n_features) or (n_tasks, n_features)
    intercept_ : float or ndarray
    n_iter_ : int
    result_ : Result
        Value, bound, gap, status and trace of the run, without anything of the size of the data. It is about the rows
        as the fit prepared them, scaled ones where ``standardize_`` is true.
    multiplier_ : float or None
        The penalty that the radius amounts to: ``coef_`` also minimises the mean loss plus this times the norm.
    multipliers_ : dict
        The active constraints by what they say, with their multipliers: by how much the mean loss would fall where the
        bound is relaxed, positive for upper bounds and negative for lower ones.
    radius_ : float or None
        The radius used.
    standardize_ : bool
        Whether columns were scaled.
    ball_, loss_ : ConstraintSet and Loss
        As used. Balls have positive radii: where ``radius_`` is 0, that of ``ball_`` is the smallest float, 2e-308.
    tasks_ : ndarray
        The labels of the tasks, where there are some.
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
        """Add rows to those of earlier calls, and fit all of them: squares need no more than sums of products.

        The answer is that of one `fit` on all rows up to rounding, at the cost of the new ones and of a solve with
        their d x d moments. The rows of `fit` are not kept: the first call after it begins anew, with a log record.
        Ctrl-C leaves the model as it was before the call, without the new rows.

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
        How many values of the penalty to try, or the radii to try. A number makes a grid as `LassoCV` does: from the
        multiplier at which all coefficients are zero down to a thousandth of it, for each p; where the last one is the
        best, the grid goes on, at most three times by a decade. Each multiplier is fitted in all folds, and stands for
        the radius that it has on all rows. Radii that are given are all that is tried; where the best one is at an
        end, a warning says so.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default.
    scoring : str or callable, optional
        What is maximised; by default the coefficient of determination. Sample weights reach it where it takes some.
    rule : {"best", "one_standard_error"}
        The radius with the best mean score, or the smallest one within a standard error of it (for the best p).
    random_state, positive, feature_groups, free, task
        As in `ConstrainedRegressor`.
    n_jobs : int, optional
        Processes of joblib over exponents and folds.
    verbose : int
        0 is silent; 1 shows a progress bar over exponents and folds on a terminal, and one for the final fit; 2 writes
        a line for each iteration of the final fit.
    callbacks : callable or sequence of callables
        As in `ConstrainedRegressor`, for the final fit.

    Attributes
    ----------
    radius_, p_ : float
        The choice.
    radii_ : ndarray of shape (n_p, n_radii)
        What was tried; rows that are shorter than others end with NaN, and so do those of ``scores_``.
    scores_ : ndarray of shape (n_p, n_radii, n_folds)
        The path of a fold ends when its score has fallen for ten values.
    cv_results_ : dict
        As in scikit-learn's ``GridSearchCV``, an entry for each p and radius; ``mean_fit_time`` is that of a path
        divided by its radii.
    best_index_, best_params_ : int and dict
        The place of the choice in ``cv_results_``.
    extended_ : int
        How many radii were added to an automatic grid; a log record says so too.
    best_score_ : float
        The mean score of the choice.
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


# ---------------------------------------------------------------------- squares from moments


def _add_to_moments(model: Any, gram: Gram | None, X: Any, y: Any, sample_weight: Any) -> Gram:
    """The moments with these rows added to a copy, so that a failure changes nothing."""
    if isinstance(X, Data) or is_dask(X):
        raise TypeError("`partial_fit` takes arrays, part by part; give Data to `fit`, which reads it chunk by chunk.")
    for name in ("task", "free"):
        if getattr(model, name) is not None:
            raise ValueError(
                f"`partial_fit` keeps no rows, and `{name}` needs them, got {shown(getattr(model, name))}; use `fit`."
            )
    if gram is not None:
        model._linear_predictor(X)  # which refuses other columns
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


def _fit_moments(model: Any, gram: Gram) -> None:
    """Minimise the mean squared error of all rows so far, and take over what is found."""
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
    # Ctrl-C leaves the model as it was, without the new rows, so that the call can be repeated.
    settings = {**model._minimize_options(setup, time_left), "callbacks": ()}
    result = raise_if_interrupted(minimize(form, setup.ball, **settings))

    def at(w: Array) -> Any:
        return scaled.intercept(w) if intercept else None

    own = result.certificate  # on the form; that of the rows, which `verify` checks, has intercepts
    proof = replace(own, loss=Squared(), intercept=at(own.w), witness_intercept=at(own.witness))
    result = replace(result, intercept=at(result.w), certificate=proof)
    model._set_attributes(setup.problem, setup.ball, result, Squared())
    warn_if_not_converged(model, result, model.tol, failure=setup.failure)
