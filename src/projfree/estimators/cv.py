"""Radius and exponent by cross-validation: what both CV estimators share."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from projfree.checks import Array, shown
from projfree.data import Data
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.paths import FitInterrupted, RadiusPath, fit_path, grid
from projfree.estimators.plots import plot_path, plot_scores
from projfree.estimators.sklearn_callbacks import context_of
from projfree.estimators.solving import warn_if_short
from projfree.estimators.table import Table

RULES = ("best", "one_standard_error")


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
        names = inspect.signature(self._kind).parameters
        shared = {name: value for name, value in self.get_params(deep=False).items() if name in names}
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
        if isinstance(X, Data):
            raise TypeError(f"{type(self).__name__} splits rows, and Data does not let it; give it arrays.")
        table = self._table(X, y, sample_weight)
        X, y = indexable(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        split, score = self._routed(sample_weight, params)
        folds = list(check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y, **split))
        models = [self._single(p) for p in self._exponents()]
        self.radii_ = np.stack([grid(model, table, self.radii) for model in models])
        jobs = [(model, radii, fold) for model, radii in zip(models, self.radii_, strict=True) for fold in folds]
        context = context_of(self, len(jobs) + 1)
        given = {"X": X, "y": y}
        if context is not None:
            context.call_on_fit_task_begin(estimator=self, **given)
        scorer = check_scoring(models[0], scoring=self.scoring)
        tasks = (
            delayed(_fold_scores)(model, table.part(rows), radii, seed, scorer, *_held(X, y, held, score))
            for model, radii, (rows, held) in jobs
        )
        scores = []
        for done in Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks):
            scores.append(done)
            _tell(self, context, "fold", given)
        shape = (len(models), len(folds), -1)
        self.scores_ = np.swapaxes(np.reshape(scores, shape), 1, 2)
        best, at = choose(self.scores_, self.rule)
        self._settle(models[best], table, best, at, seed)
        _tell(self, context, "refit", given)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, **given)
        return self

    def _settle(self, model: ConstrainedModel, table: Table, best: int, at: int, seed: int) -> None:
        """Fit the path of the chosen exponent on all rows, and take over the model of the chosen radius."""
        self.best_score_ = float(self.scores_[best, at].mean())
        try:
            fitted = fit_path(model, table, self.radii_[best], seed)
        except FitInterrupted as stop:
            # The largest radius up to the chosen one that was solved for: its point lies in the chosen ball too.
            self._take_over(stop.models, self.radii_[best], min(at, len(stop.models) - 1))
            raise
        self._take_over(fitted, self.radii_[best], at)
        warn_if_short(self, self.result_, self.tol)

    def _take_over(self, fitted: list[ConstrainedModel], radii: Array, at: int) -> None:
        """The attributes of one of the models of a path, and the path."""
        chosen = fitted[at]
        for name, value in vars(chosen).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        self.p_, self.radius_ = float(chosen.p), float(radii[at])
        self.path_ = RadiusPath.of(self.p_, radii[: len(fitted)], fitted)
        self.validation_scores_ = None

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


def choose(scores: Array, rule: str) -> tuple[int, int]:
    """The places of the chosen exponent and radius: ties go to the first exponent and the smallest radius."""
    mean, folds = scores.mean(axis=2), scores.shape[2]
    usable = np.where(np.isfinite(mean), mean, -np.inf)
    best, at = (int(i) for i in np.unravel_index(int(usable.argmax()), mean.shape))
    if rule == "one_standard_error" and folds > 1:
        error = scores[best, at].std(ddof=1) / np.sqrt(folds)
        at = int(np.flatnonzero(usable[best] >= mean[best, at] - error)[0])
    return best, at


def _held(X: Any, y: Any, rows: Array, params: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    own = {name: value if value is None else _safe_indexing(value, rows) for name, value in params.items()}
    return _safe_indexing(X, rows), _safe_indexing(y, rows), own


def _fold_scores(
    model: ConstrainedModel, table: Table, radii: Array, seed: int, scorer: Any, X: Any, y: Any, params: dict[str, Any]
) -> list[float]:
    return [float(scorer(fitted, X, y, **params)) for fitted in fit_path(model, table, radii, seed)]


def _takes_weights(scorer: Any) -> bool:
    if hasattr(scorer, "_score_func") or not callable(scorer):
        return True  # made by scikit-learn
    names = inspect.signature(scorer).parameters
    return "sample_weight" in names or any(p.kind is p.VAR_KEYWORD for p in names.values())


def _tell(model: Any, context: Any, name: str, given: dict[str, Any]) -> None:
    """Tell the callbacks of scikit-learn that a part of the search is done."""
    if context is not None:
        step = context.subcontext(task_name=name)
        step.call_on_fit_task_begin(estimator=model, **given)
        step.call_on_fit_task_end(estimator=model, **given)
