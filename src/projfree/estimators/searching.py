"""What searches over radii and exponents share, whatever they fit: their parameters, results, scores and metadata."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from projfree.checks import Array, shown
from projfree.estimators.search_results import RULES, choose, end_of, results_table, warn_at_end

#: What goes along with the final fit alone.
ALONG = {"verbose", "callbacks"}


class Search:
    """Tries radii and exponents in folds, and fits everything with the best ones."""

    p: Any
    radii: Any
    cv: Any
    scoring: Any
    rule: str
    n_jobs: int | None
    get_params: Any
    radius_: Any

    #: The estimator that a fold fits.
    _kind: Any
    #: What to do, besides giving others, where the largest of automatic radii is the best.
    _beyond = "scale the features"

    def _single(self, p: float | None = None) -> Any:
        """One of it, for an exponent or the first."""
        raise NotImplementedError

    def _exponents(self) -> list[float]:
        return [float(p) for p in np.atleast_1d(self.p)]

    def _parameters(self, p: float | None = None) -> dict[str, Any]:
        """The parameters of this search that the estimator of a fold has, with one exponent."""
        names = set(inspect.signature(self._kind).parameters)
        shared = {name: value for name, value in self.get_params(deep=False).items() if name in names - ALONG}
        exponent = p if p is not None else getattr(self, "p_", None)
        return {**shared, "p": self._exponents()[0] if exponent is None else exponent}

    # ------------------------------------------------------------------ results

    def _check_rule(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {shown(self.rule)}.")

    def _keep_scores(self, exponents: list[float], radii: Array, scores: Array, seconds: Array, given: bool) -> None:
        """Keep what was tried, and say where a better radius may lie outside of it."""
        self.radii_, self.scores_ = radii, scores
        self.cv_results_ = results_table(exponents, radii, scores, seconds)
        best, at = choose(scores, "best")
        side = end_of(scores[best : best + 1])
        if side and radii.shape[1] > 2:  # of two radii the better one is always at an end
            other = "leave `radii` out" if given else self._beyond
            warn_at_end(type(self).__name__, float(radii[best, at]), side, other, given)

    def _keep_choice(self) -> tuple[int, int]:
        """Keep the choice, and return the places of its exponent and radius."""
        best, at = choose(self.scores_, self.rule)
        self.best_index_ = best * self.radii_.shape[1] + at
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.scores_[best, at].mean())
        return best, at

    def _take_over(self, chosen: Any, radius: float) -> None:
        """The attributes of a fitted model."""
        for name, value in vars(chosen).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        self.p_, self.radius_ = float(chosen.p), radius

    def _scored(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> float:
        """The score by ``scoring``."""
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


def _takes_weights(scorer: Any) -> bool:
    if hasattr(scorer, "_score_func") or not callable(scorer):
        return True  # made by scikit-learn
    names = inspect.signature(scorer).parameters
    return "sample_weight" in names or any(p.kind is p.VAR_KEYWORD for p in names.values())
