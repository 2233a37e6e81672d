"""Radius and exponent by cross-validation along warm-started paths, as in `LassoCV`."""

from __future__ import annotations

import copy
import inspect
import logging
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from projfree.checks import Array, all_finite, count, real_array, shown, stacklevel
from projfree.data import Data
from projfree.data.base import Fold as FoldRows
from projfree.data.convert import is_dask
from projfree.data.tables import ChunkedData
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.inputs import TrainingSet, from_outside, on_cluster, scored_columns
from projfree.estimators.paths import PathSolver, RadiusPath, Solution, path_solver
from projfree.estimators.plots import plot_path, plot_scores
from projfree.estimators.problem import ZERO_RADIUS, Problem, norm_and_exponent, own_norm
from projfree.estimators.scores import data_score, refuse_scorer
from projfree.losses.base import Loss
from projfree.run import ProgressBar

log = logging.getLogger(__name__)

RULES = ("best", "one_standard_error")
#: Parameters that are for the final fit alone.
FINAL_FIT = {"verbose", "callbacks"}
#: Scores that differ by less than this part count as equal: solutions are no more precise.
EQUAL = 1e-6
#: Folds by default, as in scikit-learn.
FOLDS = 5
#: A path ends when its scores have been below the best one for so many levels.
PATIENCE = 10
#: A grid whose best score is at its end is extended at most so often, each time by a decade.
MOST_EXTENSIONS = 3


class PartsBar:
    """A bar over the parts of a search, its exponents and folds; None for ``total`` draws nothing."""

    def __init__(self, total: int | None, label: str = "cross-validation") -> None:
        self.total, self.done = total, -1
        self._bar = ProgressBar(label=label, transient=True)
        self()

    def __call__(self) -> None:
        """Count a part."""
        self.done += 1
        if self.total is not None:
            self._bar.draw(self.done / self.total, f"{self.done} of {self.total} fits")

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


class CrossValidated(ConstrainedModel):
    """Fits a path for each exponent and fold, scores it, and fits all rows with the best radius."""

    radii: Any
    cv: Any
    scoring: Any
    rule: str
    n_jobs: int | None

    #: The estimator that a fold fits.
    _kind: Any

    def _exponents(self) -> list[float]:
        return [float(norm_and_exponent(self.norm, p)[1]) for p in np.atleast_1d(self.p)]

    def _parameters(self, p: float | None = None) -> dict[str, Any]:
        """The parameters of this search that the estimator of a fold has, with one exponent."""
        names = set(inspect.signature(self._kind).parameters)
        shared = {name: value for name, value in self.get_params(deep=False).items() if name in names - FINAL_FIT}
        exponent = p if p is not None else getattr(self, "p_", None)
        return {**shared, "p": self._exponents()[0] if exponent is None else exponent}

    def _single(self, p: float | None = None) -> ConstrainedModel:
        model: ConstrainedModel = self._kind(**self._parameters(p), radius=1.0)
        for name in ("classes_", "tasks_", "feature_names_in_", "n_features_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _search(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], client: Any) -> Any:
        if self.rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {shown(self.rule)}.")
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
        best, at = choose(scores, self.rule)
        self.best_index_ = int(np.isfinite(radii[:best]).sum()) + at
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(scores[best, at].mean())
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
                for name, value in vars(model).items():
                    if name.endswith("_") and not name.startswith("_"):
                        setattr(self, name, value)
                self.p_, self.radius_ = float(model.p), radius

    def _keep_scores(self, exponents: list[float], radii: Array, scores: Array, seconds: Array, given: bool) -> None:
        """Keep what was tried, and warn where a better radius may lie outside of it.

        ``radii`` has a row for each exponent, which ends with NaN where it is shorter than others.
        """
        self.radii_, self.scores_ = radii, scores
        self.cv_results_ = search_results(exponents, radii, scores, seconds)
        best, at = choose(scores, "best")
        side = end_of(scores[best : best + 1])
        if side and radii.shape[1] > 2 and (given or side > 0):  # of two radii the better one is always at an end
            where, way = ("largest", "larger") if side > 0 else ("smallest", "smaller")
            warnings.warn(
                f"{type(self).__name__}: the best radius, {radii[best, at]:.4g}, is the {where} that was tried, and "
                f"{way} ones may score better; give {way} `radii`, or "
                f"{'leave them out' if given else 'scale the features'}.",
                UserWarning,
                stacklevel=stacklevel(),
            )

    def _scored(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> float:
        """The score by ``scoring``."""
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        if get_config()["enable_metadata_routing"]:
            given = process_routing(self, "score", **given, **params).scorer.score
        return float(check_scoring(self, scoring=self.scoring)(self, X, y, **given))

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


def search_results(exponents: list[float], radii: Array, scores: Array, seconds: Array) -> dict[str, Any]:
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
