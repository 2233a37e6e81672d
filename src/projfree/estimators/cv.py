"""Radius and exponent by cross-validation along warm-started paths, as in `LassoCV`."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed

from projfree.checks import Array, count, shown
from projfree.data import Data
from projfree.data.base import Fold as FoldRows
from projfree.data.convert import is_dask
from projfree.data.tables import ChunkedData
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.classifier import ConstrainedClassifier
from projfree.estimators.inputs import TrainingSet, from_outside, on_cluster, scored_columns
from projfree.estimators.paths import PathSolver, RadiusPath, Solution, path_solver
from projfree.estimators.plots import plot_path, plot_scores
from projfree.estimators.problem import ZERO_RADIUS, Problem, norm_and_exponent, own_norm
from projfree.estimators.regressor import ConstrainedRegressor
from projfree.estimators.scores import data_score, refuse_scorer
from projfree.estimators.search import EQUAL, Search, checked_radii, end_of
from projfree.losses.base import Loss
from projfree.run.callbacks import TextBar

log = logging.getLogger(__name__)

#: Folds by default, as in scikit-learn.
FOLDS = 5
#: A path ends when its scores have been below the best one for so many levels.
PATIENCE = 10
#: A grid whose best score is at its end is extended at most so often, each time by a decade.
MOST_EXTENSIONS = 3


class PartsBar:
    """A bar over the parts of a search, its exponents and folds; None for ``total`` draws nothing."""

    def __init__(self, total: int | None, label: str = "cross-validation") -> None:
        self.total, self.label, self.done = total, label, -1
        self._bar = TextBar(transient=True)
        self()

    def __call__(self) -> None:
        """Count a part."""
        self.done += 1
        if self.total is not None:
            self._bar.draw(self.label, self.done / self.total, f"{self.done} of {self.total} fits")

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


@dataclass(frozen=True, eq=False)
class Held:
    """The rows of a fold that are scored: as they were given, for a scorer, and as a fit takes them."""

    X: Any
    y: Any
    params: dict[str, Any]
    scorer: Any
    table: TrainingSet

    def score(self, model: ConstrainedModel, loss: Loss, fitted: dict[str, Any]) -> float:
        """The score of coefficients."""
        if self.scorer is None:
            u = model._scores_of(self.table.X, self.table.task, fitted)
            return model._own_score(loss, self.table.y, u, self.params.get("sample_weight"))
        return float(self.scorer(_with_attributes(model, fitted, loss), self.X, self.y, **self.params))


@dataclass(frozen=True, eq=False)
class HeldData:
    """The rows of a fold that are scored where they are."""

    data: Data

    def score(self, model: ConstrainedModel, loss: Loss, fitted: dict[str, Any]) -> float:
        """The score of coefficients."""
        return data_score(_with_attributes(model, fitted, loss), self.data)


def _with_attributes(model: ConstrainedModel, fitted: dict[str, Any], loss: Loss) -> ConstrainedModel:
    """A copy of the model that can predict."""
    out = copy.copy(model)
    for name, value in {**fitted, "loss_": loss}.items():
        setattr(out, name, value)
    return out


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to fit and rows to score, with the scores of the first levels and the last solution."""

    train: TrainingSet
    held: Held | HeldData
    scores: list[float] = field(default_factory=list)
    w: Array | None = None
    seconds: float = 0.0

    def run(self, model: ConstrainedModel, loss: Loss, levels: Array, *, by_radius: bool) -> Fold:
        """Go on along the path, until its scores have fallen for ten levels unless radii were given."""
        begun, scores = time.perf_counter(), list(self.scores)
        problem = model._problem(self.train, loss)
        solver = path_solver(model, self.train, problem, by_radius=by_radius, start=self.w)
        while len(scores) < len(levels):
            solutions = solver.solve(levels[len(scores) : len(scores) + PATIENCE])
            scores += [self.held.score(model, loss, one) for one in _shaped(model, problem, solutions)]
            best = np.nanmax(scores) if np.isfinite(scores).any() else -np.inf
            if not by_radius and np.all(np.array(scores[-PATIENCE:]) < best - EQUAL * abs(best)):
                break
        return Fold(self.train, self.held, scores, solver.w, self.seconds + time.perf_counter() - begun)


def _shaped(model: ConstrainedModel, problem: Problem, solutions: list[Solution]) -> list[dict[str, Any]]:
    """Coefficients and intercepts in the units of the table."""
    return [model._shaped(*problem.raw(w, 0.0 if b is None else b)) for w, b in solutions]


@dataclass(frozen=True, eq=False)
class Tried:
    """The path of one exponent on all rows, with the scores (levels, folds) of its levels."""

    solver: PathSolver
    levels: Array
    scores: Array
    seconds: Array
    extended: int
    radii: Array


class CrossValidated(Search, ConstrainedModel):
    """Fits a path for each exponent and fold, scores it, and fits all rows with the best radius."""

    def _exponents(self) -> list[float]:
        return [float(norm_and_exponent(self.norm, p)[1]) for p in np.atleast_1d(self.p)]

    def _single(self, p: float | None = None) -> ConstrainedModel:
        model: ConstrainedModel = self._kind(**self._parameters(p), radius=1.0)
        for name in ("classes_", "tasks_", "feature_names_in_", "n_features_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _search(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], client: Any) -> Any:
        self._check_rule()
        wanted = checked_radii(self.radii)
        X, y, sample_weight = from_outside(*on_cluster(client, X, y, sample_weight))
        table = self._training_set(X, y, sample_weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = self._folds(X, y, sample_weight, table, params, seed)
        models = [self._single(p).set_params(random_state=seed) for p in self._exponents()]
        with closing(PartsBar(len(models) * len(folds) if self.verbose == 1 else None)) as bar:
            tried = [self._try(model, table, folds, wanted, bar) for model in models]
        shape = len(models), max(len(one.levels) for one in tried)
        radii, scores = np.full(shape, np.nan), np.full((*shape, len(folds)), np.nan)
        for i, one in enumerate(tried):
            radii[i, : len(one.levels)], scores[i, : len(one.levels)] = one.radii, one.scores
        seconds, given = np.stack([one.seconds for one in tried]), not isinstance(wanted, int)
        self.extended_ = max(one.extended for one in tried)
        self._keep_scores([float(model.p) for model in models], radii, scores, seconds, given)
        best, at = self._keep_choice()
        self._refit(models[best], table, tried[best], at)
        return self

    def _folds(
        self, X: Any, y: Any, sample_weight: Any, table: TrainingSet, params: dict[str, Any], seed: int
    ) -> list[Fold]:
        """The rows to fit and those to score: of files as of arrays; of Dask collections dealt where they are."""
        split, given = self._routed(sample_weight, params)
        if not isinstance(X, Data):
            X, y = indexable(X, y)
            scorer = None if self.scoring is None else check_scoring(self._single(), scoring=self.scoring)
            return [
                Fold(table.part(train), Held(*_part(X, y, given, held), scorer, table.part(held)))
                for train, held in self._fold_rows(X, y, split)
            ]
        refuse_scorer(self, self.scoring)
        if isinstance(X, ChunkedData):  # its targets are in memory
            parts: list[Any] = self._fold_rows(np.zeros((X.n, 1)), X.y, split)
        else:  # without a seed the folds are the same in every fit, as they are in memory
            seed = 0 if self.random_state is None else seed
            folds = FOLDS if self.cv is None else count("cv", self.cv, lowest=2)
            parts = [tuple(FoldRows(seed, folds, k, inside=side) for side in (False, True)) for k in range(folds)]
        return [Fold(TrainingSet(table.X.subset(train), table.y), HeldData(X.subset(held))) for train, held in parts]

    def _fold_rows(self, X: Any, y: Any, split: dict[str, Any]) -> list[tuple[Array, Array]]:
        """The numbers of the rows to fit and of those to score of each fold."""
        splitter, name = check_cv(self.cv, y, classifier=is_classifier(self)), type(self).__name__.removesuffix("CV")
        if (self.cv is None or isinstance(self.cv, int | np.integer)) and splitter.get_n_splits() > len(y):
            raise ValueError(
                f"`cv` must be at most the number of rows, n_samples={len(y)}, got {splitter.get_n_splits()} folds; "
                f"give fewer, or fit {name} with a radius."
            )
        folds = list(splitter.split(X, y, **split))
        if is_classifier(self) and self.fit_intercept:
            _refuse_lost_classes(name, np.asarray(y), folds)
        return folds

    def _try(
        self, model: ConstrainedModel, table: TrainingSet, folds: list[Fold], wanted: Any, tell: Callable[[], None]
    ) -> Tried:
        """Score a path in each fold; where the best level is the last one of an automatic grid, go on beyond it."""
        given, loss, extended = not isinstance(wanted, int), model._path_loss(table), 0
        whole = path_solver(model, table, model._problem(table, loss), by_radius=given)
        levels = wanted if given else whole.grid(wanted)
        for extension in range(1 + MOST_EXTENSIONS):
            jobs = (delayed(fold.run)(model, loss, levels, by_radius=given) for fold in folds)
            done = []
            for fold in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
                done.append(fold)
                if not extension:
                    tell()
            folds, m = done, min(len(fold.scores) for fold in done)
            scores = np.stack([fold.scores[:m] for fold in folds], axis=1)
            if given or extension == MOST_EXTENSIONS or end_of(scores[None]) < 1:
                break
            if m == len(levels):
                more = whole.more(max(1, wanted // 3))
                if not len(more):
                    break
                levels, extended = np.append(levels, more), extended + len(more)
        if extended:
            log.info(
                "%s extended its grid by %d radii, as the largest one was the best.", type(self).__name__, extended
            )
        radii = wanted if given else np.array([own_norm(whole.ball, w) for w, _ in whole.solve(levels[:m])])
        return Tried(whole, levels[:m], scores, np.array([fold.seconds for fold in folds]), extended, radii)

    def _refit(self, model: ConstrainedModel, table: TrainingSet, tried: Tried, at: int) -> None:
        """Fit all rows with the chosen radius, from the solution of the path."""
        solutions, radius = tried.solver.solve(tried.levels), float(tried.radii[at])
        model.set_params(radius=radius or ZERO_RADIUS, verbose=self.verbose, callbacks=self.callbacks)
        shaped = _shaped(model, tried.solver.problem, solutions)
        mus = [tried.solver.multiplier(level, w) for level, (w, _) in zip(tried.levels, solutions, strict=True)]
        try:
            model._fit(table, start=solutions[at][0])
            shaped[at] = {"coef_": model.coef_, "intercept_": model.intercept_}
        finally:  # also what an interrupted fit has left
            if hasattr(model, "result_"):
                coefs, intercepts = (
                    np.stack([np.asarray(one[name]) for one in shaped]) for name in ("coef_", "intercept_")
                )
                self.path_ = RadiusPath(float(model.p), tried.radii, coefs, intercepts, np.array(mus))
                self._take_over(model, radius)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None, **params: Any) -> float:
        """The score by ``scoring``: by default R2 of predictions, or the accuracy of labels.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
        y : array of shape (n,) or (n, k), or with Parquet the name of a column
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            As in `fit`.
        **params
            With metadata routing, what the scorer asks for.
        """
        X, y, sample_weight = on_cluster(client, X, y, sample_weight)
        if isinstance(X, Data) or is_dask(X):
            refuse_scorer(self, self.scoring)
        elif self.scoring is not None:
            return self._scored(X, *scored_columns(self, X, y, sample_weight), params)
        return float(super().score(X, y, sample_weight))

    def plot_path(self, ax: Any = None, *, most: int = 10) -> Any:
        """Draw the coefficients against the radius for the chosen p; returns the axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
        most : int
            How many coefficients, the largest at the chosen radius, are drawn in colour and named.
        """
        return plot_path(self, ax, most)

    def plot_scores(self, ax: Any = None) -> Any:
        """Draw the mean score and its standard error against the radius, for each p; returns the axes."""
        return plot_scores(self, ax)


def _part(X: Any, y: Any, given: dict[str, Any], rows: Array) -> tuple[Any, Any, dict[str, Any]]:
    """Some rows of a table, its targets and what else a scorer is given."""
    own = {name: value if value is None else _safe_indexing(value, rows) for name, value in given.items()}
    return _safe_indexing(X, rows), _safe_indexing(y, rows), own


def _refuse_lost_classes(name: str, y: Array, folds: list[Any]) -> None:
    """Raise where the rows of a fold lack a class, whose intercept then has no finite minimum."""
    classes, counts = np.unique(y, return_counts=True)
    for k, (train, _) in enumerate(folds):
        lost = np.flatnonzero(~np.isin(classes, y[train]))
        if len(lost):
            label, rows = classes[lost[0]], counts[lost[0]]
            raise ValueError(
                f"`cv` must leave rows of every class to fit, got none of {shown(label)}, which has {rows} in all, in "
                f"fold {k}; give other folds, leave the class out, or fit {name} with a radius."
            )


class ConstrainedRegressorCV(CrossValidated, ConstrainedRegressor):
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

    _kind = ConstrainedRegressor
    _searches = True

    def __init__(
        self,
        loss: Any = "squared",
        *,
        norm: Any = "lp",
        p: Any = None,
        q: float | None = None,
        radii: Any = 50,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        fit_intercept: bool = True,
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
        quantile: float = 0.5,
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
        self.quantile = quantile

    warm_start = False

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None, **params: Any
    ) -> ConstrainedRegressorCV:
        """Choose radius and exponent, and fit all rows with them.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
        y : array of shape (n,) or (n, k), or with Parquet the name of a column
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            As in `ConstrainedRegressor.fit`.
        **params
            ``groups`` for the splitter; with metadata routing anything that splitter and scorer ask for.
        """
        self._search(X, y, sample_weight, params, client)
        return self


class ConstrainedClassifierCV(CrossValidated, ConstrainedClassifier):
    """ConstrainedClassifier with radius and exponent chosen by cross-validation along warm-started paths.

    Parameters
    ----------
    loss, norm, q, fit_intercept, class_weight, solver, tol, max_iter, time_limit, standardize
        As in `ConstrainedClassifier`.
    p : float or sequence of float
        The exponent of the norm, or several to choose from.
    radii : int or array
        How many values of the penalty to try, or the radii to try. A number makes a grid as `LassoCV` does: from the
        multiplier at which all coefficients are zero down to a thousandth of it, for each p; where the last one is the
        best, the grid goes on, at most three times by a decade. Each multiplier is fitted in all folds, and stands for
        the radius that it has on all rows. Radii that are given are all that is tried; where the best one is at an
        end, a warning says so.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default, stratified.
    scoring : str or callable, optional
        What is maximised; by default the accuracy. Sample weights reach it where it takes some.
    rule : {"best", "one_standard_error"}
        The radius with the best mean score, or the smallest one within a standard error of it (for the best p).
    random_state, positive, feature_groups, free, task
        As in `ConstrainedClassifier`.
    n_jobs : int, optional
        Processes of joblib over exponents and folds.
    verbose : int
        0 is silent; 1 shows a progress bar over exponents and folds on a terminal, and one for the final fit; 2 writes
        a line for each iteration of the final fit.
    callbacks : callable or sequence of callables
        As in `ConstrainedClassifier`, for the final fit.

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
