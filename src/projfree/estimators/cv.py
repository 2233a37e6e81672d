"""Radius and exponent by cross-validation: what both CV estimators share."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, indexable

from projfree.checks import Array, shown
from projfree.data import Data
from projfree.data.convert import is_dask
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.data_folds import data_folds
from projfree.estimators.data_scores import scorer_of
from projfree.estimators.fold_grams import FoldRows
from projfree.estimators.folds import PathFolds, Scoring, TooCoarseError, moment_folds
from projfree.estimators.given_data import from_outside, on_cluster, scored_columns
from projfree.estimators.paths import FitInterrupted, RadiusPath, grid
from projfree.estimators.plots import plot_path, plot_scores
from projfree.estimators.search_results import (
    MOST_EXTENSIONS,
    checked_radii,
    end_of,
    more_radii,
    say_extended,
)
from projfree.estimators.searching import Search
from projfree.estimators.sklearn_callbacks import context_of
from projfree.estimators.solving import warn_if_short
from projfree.estimators.watching import PartsBar, given_callbacks, shown_by


class SearchMixin(Search, ConstrainedModel):
    """Fits a path for each exponent and fold, scores it, and fits all rows with the best radius."""

    def _single(self, p: float | None = None) -> ConstrainedModel:
        """The estimator of one exponent, with the parameters of this one."""
        model: ConstrainedModel = self._kind(**self._parameters(p), radius=1.0)
        for name in ("classes_", "tasks_", "feature_names_in_", "n_features_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _search(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], client: Any) -> Any:
        self._check_rule()
        X, y, sample_weight = from_outside(*on_cluster(client, X, y, sample_weight))
        if isinstance(X, Data):
            return self._search_data(X, y, sample_weight, params)
        wanted, shown_along = checked_radii(self.radii), shown_by(self.verbose, label="final fit", transient=True)
        watchers = [*shown_along, *given_callbacks(self.callbacks)]
        table = self._table(X, y, sample_weight)
        X, y = indexable(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        split, score = self._routed(sample_weight, params)
        folds = self._fold_rows(X, y, split)
        models = [self._single(p) for p in self._exponents()]
        context = context_of(self, len(models) * len(folds) + 1)
        given = {"X": X, "y": y}
        if context is not None:
            context.call_on_fit_task_begin(estimator=self, **given)
        judge = Scoring(check_scoring(models[0], scoring=self.scoring), self.scoring, X, y, score)
        by_runs = PathFolds(table, folds, judge, seed, self.n_jobs)
        grids = np.stack([grid(model, table, wanted) for model in models])
        parts = range(len(models) * len(folds))
        bar, left = PartsBar(len(parts) if self.verbose == 1 else None), iter(parts)

        def tell() -> None:
            if next(left, None) is not None:  # folds that another way begins again are told once
                bar()
                _tell(self, context, "fold", given)

        with closing(bar):
            try:
                ways: Any = moment_folds(models, table, folds, judge) or by_runs
                self._score_grids(ways, models, grids, tell)
            except TooCoarseError:
                ways = by_runs
                self._score_grids(ways, models, grids, tell)
        try:
            self._settle(models, ways, seed, watchers)
        except TooCoarseError:
            self._score_grids(by_runs, models, grids, tell)
            self._settle(models, by_runs, seed, watchers)
        _tell(self, context, "refit", given)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, **given)
        return self

    def _fold_rows(self, X: Any, y: Any, split: dict[str, Any]) -> list[FoldRows]:
        """The rows to fit and those to score of each fold."""
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        if self.cv is None or isinstance(self.cv, int | np.integer):
            _refuse_few_rows(type(self).__name__, splitter.get_n_splits(), len(y))
        folds = list(splitter.split(X, y, **split))
        if is_classifier(self) and self.fit_intercept:
            _refuse_lost_classes(type(self).__name__, np.asarray(y), folds)
        return folds

    def _search_data(self, data: Data, y: Any, sample_weight: Any, params: dict[str, Any]) -> Any:
        """The search on a data class, whose folds are views of its rows."""
        table = self._table(data, y, sample_weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        models = [self._single(p) for p in self._exponents()]
        split = self._routed(None, params)[0]
        # Without a seed the folds are the same in every fit, as they are in memory.
        ways = data_folds(self, data, table, 0 if self.random_state is None else seed, split)
        grids = np.stack([grid(model, table, checked_radii(self.radii)) for model in models])
        with closing(PartsBar(len(models) * len(ways.folds) if self.verbose == 1 else None)) as bar:
            self._score_grids(ways, models, grids, bar)
        shown_along = shown_by(self.verbose, label="final fit", transient=True)
        self._settle(models, ways, seed, [*shown_along, *given_callbacks(self.callbacks)])
        return self

    def _score_grids(self, ways: Any, models: list[ConstrainedModel], radii: Array, tell: Any) -> None:
        """Score the radii; where the best one is at an end of an automatic grid, go on beyond it."""
        scores, seconds = ways.scores(models, radii, tell)
        given, added = not isinstance(self.radii, int | np.integer), [0, 0]
        for _ in range(0 if given else MOST_EXTENSIONS):
            side = end_of(scores)
            if not side:
                break
            new = more_radii(radii, side)
            more, took = ways.scores(models, new, lambda: None)
            added[side > 0] += new.shape[1]
            radii = np.concatenate((new, radii) if side < 0 else (radii, new), axis=1)
            scores = np.concatenate((more, scores) if side < 0 else (scores, more), axis=1)
            seconds = seconds + took
        self.extended_ = (added[0], added[1])
        say_extended(type(self).__name__, self.extended_)
        self._keep_scores([float(model.p) for model in models], radii, scores, seconds, given)

    def _settle(self, models: list[ConstrainedModel], ways: Any, seed: int, watchers: list[Any]) -> None:
        """Take over the model of the chosen radius and exponent, fitted on all rows, and the path that it lies on."""
        best, at = self._keep_choice()
        model, radii = models[best], self.radii_[best]
        try:
            fitted, self.path_ = ways.refit(model, radii, at, seed, watchers)
        except FitInterrupted as stop:
            # The largest radius up to the chosen one that was solved for: its point lies in the chosen ball too.
            solved = np.array([one.radius for one in stop.found])
            self.path_ = RadiusPath.of(float(model.p), solved, stop.found)
            at = int(np.searchsorted(solved, radii[at], side="right")) - 1
            self._take_over(stop.found[at], float(solved[at]))
            raise
        self._take_over(fitted, float(radii[at]))
        warn_if_short(self, self.result_, self.tol, expected=self.result_.status.name == "CALLBACK")

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
            scorer_of(self, self.scoring)  # a sentence where that would need single rows
            return float(super().score(X, y, sample_weight))
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        return self._scored(X, *scored_columns(self, X, y, sample_weight), params)

    # ------------------------------------------------------------------ pictures

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


def _refuse_few_rows(name: str, folds: int, rows: int) -> None:
    if folds > rows:
        raise ValueError(
            f"`cv` must be at most the number of rows, n_samples={rows}, got {folds} folds; give fewer, or fit "
            f"{name.removesuffix('CV')} with a radius."
        )


def _refuse_lost_classes(name: str, y: Array, folds: list[Any]) -> None:
    """Raise where the rows of a fold lack a class, whose intercept then has no finite minimum."""
    classes, counts = np.unique(y, return_counts=True)
    for k, (train, _) in enumerate(folds):
        lost = np.flatnonzero(~np.isin(classes, y[train]))
        if len(lost):
            label, rows = classes[lost[0]], counts[lost[0]]
            raise ValueError(
                f"`cv` must leave rows of every class to fit, got none of {shown(label)}, which has {rows} in all, in "
                f"fold {k}; give other folds, leave the class out, or fit {name.removesuffix('CV')} with a "
                "radius."
            )


def _tell(model: Any, context: Any, name: str, given: dict[str, Any]) -> None:
    """Tell the callbacks of scikit-learn that a part of the search is done."""
    if context is not None:
        step = context.subcontext(task_name=name)
        step.call_on_fit_task_begin(estimator=model, **given)
        step.call_on_fit_task_end(estimator=model, **given)
