"""Radius and exponent by cross-validation: what both CV estimators share."""

from __future__ import annotations

import inspect
from contextlib import closing
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from projfree.checks import Array, shown
from projfree.data import Data
from projfree.data.frames import is_dask
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.data_folds import data_folds
from projfree.estimators.data_scores import scorer_of
from projfree.estimators.folds import PathFolds, Scoring, TooCoarseError, moment_folds
from projfree.estimators.given_data import from_outside
from projfree.estimators.paths import FitInterrupted, RadiusPath, grid
from projfree.estimators.plots import plot_path, plot_scores
from projfree.estimators.search_results import (
    MOST_EXTENSIONS,
    RULES,
    checked_radii,
    choose,
    end_of,
    more_radii,
    results_table,
    say_extended,
    warn_at_end,
)
from projfree.estimators.sklearn_callbacks import context_of
from projfree.estimators.solving import warn_if_short
from projfree.estimators.watching import PartsBar, given_callbacks, shown_by

#: What goes along with the final fit alone.
ALONG = {"verbose", "callbacks"}


class SearchMixin(ConstrainedModel):
    """Fits a path for each exponent and fold, scores it, and fits all rows with the best radius."""

    radii: Any
    cv: Any
    scoring: Any
    rule: str
    n_jobs: int | None

    #: The estimator that a fold fits.
    _kind: type[ConstrainedModel]

    def _single(self, p: float | None = None) -> ConstrainedModel:
        """The estimator of one exponent, with the parameters of this one."""
        names = set(inspect.signature(self._kind).parameters)
        shared = {name: value for name, value in self.get_params(deep=False).items() if name in names - ALONG}
        exponent = p if p is not None else getattr(self, "p_", None)
        model = self._kind(**{**shared, "p": self._exponents()[0] if exponent is None else exponent, "radius": 1.0})
        for name in ("classes_", "tasks_", "feature_names_in_", "n_features_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _exponents(self) -> list[float]:
        return [float(p) for p in np.atleast_1d(self.p)]

    def _search(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> Any:
        if self.rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {shown(self.rule)}.")
        if isinstance(X, Data) or is_dask(X):
            return self._search_data(X, y, sample_weight)
        wanted, shown_along = checked_radii(self.radii), shown_by(self.verbose, label="final fit", transient=True)
        watchers = [*shown_along, *given_callbacks(self.callbacks)]
        table = self._table(X, y, sample_weight)
        X, y = indexable(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        split, score = self._routed(sample_weight, params)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        if self.cv is None or isinstance(self.cv, int | np.integer):
            _refuse_few_rows(type(self).__name__, splitter.get_n_splits(), len(y))
        folds = list(splitter.split(X, y, **split))
        models = [self._single(p) for p in self._exponents()]
        for model in models:  # decided once, so that a radius means the same in every fold
            model.standardize = self._standardizes(table)
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
        self._settle(models, ways, seed, watchers)
        _tell(self, context, "refit", given)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, **given)
        return self

    def _search_data(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """The search on a data class, whose folds are views of its rows."""
        data = from_outside(X, y, sample_weight)[0]
        table = self._table(*((data, y, sample_weight) if data is X else (data, None, None)))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        models = [self._single(p) for p in self._exponents()]
        for model in models:
            model.standardize = self._standardizes(table)
        ways = data_folds(self, data, table, seed)
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
        self.radii_, self.scores_, self.extended_ = radii, scores, (added[0], added[1])
        self.cv_results_ = results_table([float(model.p) for model in models], radii, scores, seconds)
        name = type(self).__name__
        say_extended(name, self.extended_)
        best, at = choose(scores, "best")
        side = end_of(scores[best : best + 1])
        if side and radii.shape[1] > 2:  # of two radii the better one is always at an end
            warn_at_end(name, float(radii[best, at]), side, given)

    def _settle(self, models: list[ConstrainedModel], ways: Any, seed: int, watchers: list[Any]) -> None:
        """Take over the model of the chosen radius and exponent, fitted on all rows, and the path that it lies on."""
        best, at = choose(self.scores_, self.rule)
        self.best_index_ = best * self.radii_.shape[1] + at
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.scores_[best, at].mean())
        model, radii = models[best], self.radii_[best]
        try:
            fitted, self.path_ = ways.refit(model, radii, at, seed, watchers)
        except FitInterrupted as stop:
            # The largest radius up to the chosen one that was solved for: its point lies in the chosen ball too.
            solved = np.array([one.radius for one in stop.models])
            self.path_ = RadiusPath.of(float(model.p), solved, stop.models)
            at = int(np.searchsorted(solved, radii[at], side="right")) - 1
            self._take_over(stop.models[at], float(solved[at]))
            raise
        self._take_over(fitted, float(radii[at]))
        warn_if_short(self, self.result_, self.tol, expected=self.result_.status.name == "CALLBACK")

    def _take_over(self, chosen: ConstrainedModel, radius: float) -> None:
        """The attributes of one of the models of a path."""
        for name, value in vars(chosen).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        self.p_, self.radius_ = float(chosen.p), radius
        self.validation_scores_, self.held_out_ = None, None

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """The score by ``scoring``: by default R2 of predictions, or the accuracy of labels.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d)
        y : array of shape (n,) or (n, k)
        sample_weight : array of shape (n,), optional
        **params
            With metadata routing, what the scorer asks for.
        """
        if isinstance(X, Data) or is_dask(X):
            scorer_of(self, self.scoring)  # a sentence where that would need single rows
            return float(super().score(X, y, sample_weight))
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        if get_config()["enable_metadata_routing"]:
            given = process_routing(self, "score", **given, **params).scorer.score
        return float(check_scoring(self, scoring=self.scoring)(self, X, y, **given))

    # ------------------------------------------------------------------ metadata

    def _routed(self, sample_weight: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the splitter and the scorer are given besides rows and targets."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return routed.splitter.split, routed.scorer.score
        unknown = set(params) - {"groups"}
        if unknown:
            raise TypeError(
                f"`fit` got {sorted(unknown)[0]!r}, which it can pass on only with metadata routing; switch it on with "
                "`sklearn.set_config(enable_metadata_routing=True)`."
            )
        scorer = check_scoring(self._single(), scoring=self.scoring)
        takes = sample_weight is not None and _takes_weights(scorer)
        return params, {"sample_weight": np.asarray(sample_weight)} if takes else {}

    def get_metadata_routing(self) -> Any:
        """Where `fit` sends its metadata: to itself, the splitter and the scorer."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(
            splitter=check_cv(self.cv, classifier=is_classifier(self)),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        router.add(
            scorer=check_scoring(self._single(), scoring=self.scoring),
            method_mapping=MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score"),
        )
        return router

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


def _takes_weights(scorer: Any) -> bool:
    if hasattr(scorer, "_score_func") or not callable(scorer):
        return True  # made by scikit-learn
    names = inspect.signature(scorer).parameters
    return "sample_weight" in names or any(p.kind is p.VAR_KEYWORD for p in names.values())


def _refuse_few_rows(name: str, folds: int, rows: int) -> None:
    if folds > rows:
        raise ValueError(
            f"`cv` must be at most the number of rows, {rows}, got {folds} folds; give fewer, or fit "
            f"{name.removesuffix('CV')}, which chooses its radius without any."
        )


def _tell(model: Any, context: Any, name: str, given: dict[str, Any]) -> None:
    """Tell the callbacks of scikit-learn that a part of the search is done."""
    if context is not None:
        step = context.subcontext(task_name=name)
        step.call_on_fit_task_begin(estimator=model, **given)
        step.call_on_fit_task_end(estimator=model, **given)
