"""What searches over radii and exponents share, whatever they fit: their parameters, results, scores and metadata."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from projfree.checks import Array, all_finite, count, real_array, shown, stacklevel

RULES = ("best", "one_standard_error")
#: Parameters that are for the final fit alone.
FINAL_FIT = {"verbose", "callbacks"}
#: Scores that differ by less than this part count as equal: solutions are no more precise.
EQUAL = 1e-6


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
        """The estimator of one exponent, by default the chosen or the first one, with the parameters of this one."""
        raise NotImplementedError

    def _exponents(self) -> list[float]:
        return [float(p) for p in np.atleast_1d(self.p)]

    def _parameters(self, p: float | None = None) -> dict[str, Any]:
        """The parameters of this search that the estimator of a fold has, with one exponent."""
        names = set(inspect.signature(self._kind).parameters)
        shared = {name: value for name, value in self.get_params(deep=False).items() if name in names - FINAL_FIT}
        exponent = p if p is not None else getattr(self, "p_", None)
        return {**shared, "p": self._exponents()[0] if exponent is None else exponent}

    # ------------------------------------------------------------------ results

    def _check_rule(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {shown(self.rule)}.")

    def _keep_scores(self, exponents: list[float], radii: Array, scores: Array, seconds: Array, given: bool) -> None:
        """Keep what was tried, and warn where a better radius may lie outside of it.

        ``radii`` has a row for each exponent, which ends with NaN where it is shorter than others.
        """
        self.radii_, self.scores_ = radii, scores
        self.cv_results_ = results_training_set(exponents, radii, scores, seconds)
        best, at = choose(scores, "best")
        side = end_of(scores[best : best + 1])
        if side and radii.shape[1] > 2 and (given or side > 0):  # of two radii the better one is always at an end
            where, way = ("largest", "larger") if side > 0 else ("smallest", "smaller")
            warnings.warn(
                f"{type(self).__name__}: the best radius, {radii[best, at]:.4g}, is the {where} that was tried, and "
                f"{way} ones may score better; give {way} `radii`, or {'leave them out' if given else self._beyond}.",
                UserWarning,
                stacklevel=stacklevel(),
            )

    def _keep_choice(self) -> tuple[int, int]:
        """Keep the choice, and return the indices of its exponent and radius."""
        best, at = choose(self.scores_, self.rule)
        self.best_index_ = int(np.isfinite(self.radii_[:best]).sum()) + at
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


def checked_radii(radii: Any) -> Any:
    """The radii of a search: how many, or which ones, in increasing order."""
    if isinstance(radii, bool):
        raise TypeError(f"`radii` must be a number of radii or a sequence of positive radii, got {shown(radii)}.")
    if isinstance(radii, int | np.integer):
        return count("radii", int(radii), lowest=2)
    wanted = np.unique(all_finite("radii", real_array("radii", radii)).astype(np.float64))
    if not wanted.size or wanted[0] <= 0.0:
        given = shown(float(wanted[0])) if wanted.size else "none"
        raise ValueError(
            f"`radii` must be positive numbers, or how many to try, got {given}; leave it out for an automatic grid."
        )
    return wanted


def choose(scores: Array, rule: str) -> tuple[int, int]:
    """The indices of the chosen exponent and radius: ties go to the first exponent and the smallest radius."""
    mean, folds = scores.mean(axis=2), scores.shape[2]
    usable = np.where(np.isfinite(mean), mean, -np.inf)
    if not np.isfinite(usable).any():
        raise ValueError(
            f"`scoring` gave no finite score in {folds} folds, so that no radius is the best; use a score that is "
            "defined on the rows of each fold, e.g. `scoring='neg_mean_squared_error'` where a fold has one row."
        )
    best, at = (int(i) for i in np.unravel_index(int(usable.argmax()), mean.shape))
    if rule == "one_standard_error" and folds > 1:
        error = scores[best, at].std(ddof=1) / np.sqrt(folds)
        at = int(np.flatnonzero(usable[best] >= mean[best, at] - error)[0])
    return best, at


def end_of(scores: Array) -> int:
    """-1 or 1 where some exponent scores best at the smallest or the largest radius, 0 where none does.

    Radii so large that no ball holds anything back score alike, and then the smallest of them counts as the best.
    """
    mean = scores.mean(axis=2)
    if mean.shape[1] < 2:
        return 0
    usable = np.where(np.isfinite(mean), mean, -np.inf)
    top = usable.max(axis=1)
    if np.any(usable[:, 0] >= top - EQUAL * np.abs(top)):
        return -1
    last = usable.shape[1] - 1 - np.argmax(np.isfinite(usable[:, ::-1]), axis=1)
    own = np.take_along_axis(usable, last[:, None], axis=1)[:, 0]
    ahead = own - np.array([row[:k].max(initial=-np.inf) for row, k in zip(usable, last, strict=True)])
    return int(np.any(ahead > EQUAL * np.abs(own)))


def results_training_set(exponents: list[float], radii: Array, scores: Array, seconds: Array) -> dict[str, Any]:
    """``cv_results_`` as in scikit-learn's searches, one entry for each exponent and radius.

    ``mean_fit_time`` is the time of a path divided by its radii.
    """
    tried, m = np.isfinite(radii).ravel(), radii.shape[1]
    flat = scores.reshape(-1, scores.shape[2])[tried]
    p, r = np.repeat(exponents, m)[tried], radii.ravel()[tried]
    mean = flat.mean(axis=1)
    usable = np.where(np.isfinite(mean), mean, -np.inf)
    rank = 1 + (usable[None, :] > usable[:, None]).sum(axis=1)
    times = np.repeat(seconds / m, m, axis=0)[tried]
    return {
        "mean_fit_time": times.mean(axis=1),
        "std_fit_time": times.std(axis=1),
        "param_p": p,
        "param_radius": r,
        "params": [{"p": float(a), "radius": float(b)} for a, b in zip(p, r, strict=True)],
        **{f"split{k}_test_score": column for k, column in enumerate(flat.T)},
        "mean_test_score": mean,
        "std_test_score": flat.std(axis=1),
        "rank_test_score": rank.astype(np.int32),
    }
