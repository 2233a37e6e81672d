"""Cross-validation of radius and exponent along warm-started paths, as in `LassoCV`."""

from __future__ import annotations

import copy
import inspect
import logging
import time
import warnings
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

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
from projfree.estimators.base import LinearModel
from projfree.estimators.constraints import is_constrained
from projfree.estimators.inputs import TrainingSet, convert_external, linear_predictions, read_score_targets
from projfree.estimators.paths import PathSolver, RadiusPath, Solution, radius_grid
from projfree.estimators.plots import plot_path, plot_scores
from projfree.estimators.problem import ZERO_RADIUS, Problem, ball_norm, norm_and_exponent
from projfree.losses.base import Loss
from projfree.run import ProgressBar

log = logging.getLogger(__name__)

RULES = ("best", "one_standard_error")
#: Relative difference below which scores count as equal: solutions are no more precise.
SCORE_TOL = 1e-6
#: Default number of folds, as in scikit-learn.
FOLDS = 5
#: A path ends when its scores have been below the best one for this many consecutive levels.
PATIENCE = 10
#: Maximum number of decades by which a grid is extended if its last score is best.
MAX_EXTENSIONS = 3


@dataclass(frozen=True, eq=False)
class Fold:
    """Training and test rows of a fold, with the scores of the levels so far and the last solution.

    A ``scorer`` is called with ``scorer_args``: the features and targets of the rows to score, and other parameters.
    """

    train: TrainingSet
    test: TrainingSet
    scorer: Any = None
    scorer_args: tuple[Any, Any, dict[str, Any]] = (None, None, {})
    scores: list[float] = field(default_factory=list)
    w: Array | None = None
    seconds: float = 0.0

    def extend_path(self, model: Any, loss: Loss, levels: Array, *, by_radius: bool) -> Fold:
        """Continue the path; without given radii, stop when the scores have fallen for `PATIENCE` levels."""
        begun, scores = time.perf_counter(), list(self.scores)
        problem = model._problem(self.train, loss)
        solver = PathSolver(model, self.train, problem, by_radius=by_radius, start=self.w)
        while len(scores) < len(levels):
            solutions = solver.solve(levels[len(scores) : len(scores) + PATIENCE])
            scores += self.compute_scores(model, loss, *_stack_models(model, problem, solutions))
            best = np.nanmax(scores) if np.isfinite(scores).any() else -np.inf
            if not by_radius and np.all(np.array(scores[-PATIENCE:]) < best - SCORE_TOL * abs(best)):
                break
        seconds = self.seconds + time.perf_counter() - begun
        return Fold(self.train, self.test, self.scorer, self.scorer_args, scores, solver.w, seconds)

    def compute_scores(self, model: Any, loss: Loss, coefs: Array, intercepts: Array) -> list[float]:
        """Return the scores of several models on the test rows."""
        (X, y, params), test = self.scorer_args, self.test
        if self.scorer is None and not isinstance(test.X, Data):
            u = linear_predictions(test.X, coefs, intercepts, test.task)
            scores: list[float] = model._score_predictions(loss, test.y, u, params.get("sample_weight")).tolist()
            return scores
        model, scores = copy.copy(model), []
        model.loss_ = loss
        for model.coef_, model.intercept_ in zip(coefs, intercepts, strict=True):
            score = model._score_data(test.X) if self.scorer is None else self.scorer(model, X, y, **params)
            scores.append(float(score))
        return scores


def _stack_models(model: Any, problem: Problem, solutions: list[Solution]) -> tuple[Array, Array]:
    """Return ``coef_`` and ``intercept_`` of several solutions, stacked along the first axis."""
    each = [model._to_coef(*problem.raw(w, 0.0 if b is None else b)) for w, b in solutions]
    # Without an intercept, a single zero stands for all outputs.
    return np.stack([w for w, _ in each]), np.stack([np.broadcast_to(b, w.shape[:-1]) for w, b in each])


@dataclass(frozen=True, eq=False)
class PathScores:
    """The path of one exponent on all rows, with its scores of shape (levels, folds)."""

    model: Any
    solver: PathSolver
    levels: Array
    radii: Array
    scores: Array
    seconds: Array
    extended: int


@dataclass(eq=False, repr=False, kw_only=True)
class CrossValidated(LinearModel):
    """Base class of estimators that choose the radius and the exponent by cross-validation."""

    radii: Any = 50
    cv: Any = None
    scoring: Any = None
    rule: str = "best"
    n_jobs: int | None = None

    #: The estimator of a single fit.
    _estimator_class: ClassVar[Any]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None, **params: Any) -> Any:
        """Choose radius and exponent by cross-validation, and fit all rows with them.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
        y : array of shape (n,), or (n, k) for regressors, or the names of one or several Parquet columns
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            The cluster that stores a Dask collection or reads a Parquet folder; for collections, the active one by
            default.
        **params
            ``groups`` for the splitter; with metadata routing, any metadata that the splitter and the scorer request.
        """
        if self.rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {shown(self.rule)}.")
        wanted = check_radii(self.radii)
        X, y, sample_weight = convert_external(X, y, sample_weight, client)
        rows = self._training_set(X, y, sample_weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = self._folds(X, y, sample_weight, rows, params, seed)
        paths: list[PathScores] = []
        bar = ProgressBar(label="cross-validation", transient=True)
        for p in self._exponents():
            model = self._single_fit_model(p).set_params(random_state=seed)
            paths.append(self._score_path(model, rows, folds, wanted, bar, len(paths)))
        bar.close()
        best, at = self._select(paths, given=not isinstance(wanted, int))
        self._refit(rows, paths[best], at)
        return self

    def _exponents(self) -> list[float]:
        exponents = [float(norm_and_exponent(self.norm, p)[1]) for p in np.atleast_1d(self.p)]
        if not exponents:
            raise ValueError(
                "`p` must be a number, or several to choose from, got none; leave it out for that of the norm."
            )
        return exponents

    def _single_fit_model(self, p: float | None = None) -> Any:
        """Return the estimator of a single fit with exponent ``p``."""
        names = {each.name for each in fields(self._estimator_class)} - {"verbose", "callbacks"}
        shared = {name: value for name, value in vars(self).items() if name in names}
        p = getattr(self, "p_", self._exponents()[0]) if p is None else p
        norm = norm_and_exponent(self.norm, None)[0] if isinstance(self.norm, str) else self.norm
        model = self._estimator_class(**{**shared, "norm": norm, "p": p, "radius": 1.0})
        for name in ("classes_", "tasks_", "feature_names_in_", "n_features_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _folds(
        self, X: Any, y: Any, sample_weight: Any, rows: TrainingSet, params: dict[str, Any], seed: int
    ) -> list[Fold]:
        """Return the folds; files are split like arrays, and Dask collections on their workers."""
        split, given = self._route_params(sample_weight, params)
        if not isinstance(X, Data):
            X, y = indexable(X, y)
            scorer = None if self.scoring is None else check_scoring(self._single_fit_model(), scoring=self.scoring)
            return [
                Fold(rows.part(train), rows.part(test), scorer, _select_rows(X, y, given, test))
                for train, test in self._fold_rows(X, y, split)
            ]
        self._refuse_scorer()
        if isinstance(X, ChunkedData):  # its targets are in memory
            parts: list[Any] = self._fold_rows(np.zeros((X.n, 1)), X.y, split)
        else:  # without `random_state`, the folds are the same in each fit, as they are for arrays
            seed = 0 if self.random_state is None else seed
            folds = FOLDS if self.cv is None else count("cv", self.cv, lowest=2)
            parts = [tuple(FoldRows(seed, folds, k, inside=side) for side in (False, True)) for k in range(folds)]
        return [
            Fold(TrainingSet(rows.X.subset(train), rows.y), TrainingSet(X.subset(test), rows.y))
            for train, test in parts
        ]

    def _fold_rows(self, X: Any, y: Any, split: dict[str, Any]) -> list[tuple[Array, Array]]:
        """Return the training and test indices of each fold."""
        splitter, name = check_cv(self.cv, y, classifier=is_classifier(self)), type(self).__name__.removesuffix("CV")
        if (self.cv is None or isinstance(self.cv, int | np.integer)) and splitter.get_n_splits() > len(y):
            raise ValueError(
                f"`cv` must be at most the number of rows, n_samples={len(y)}, got {splitter.get_n_splits()} folds; "
                f"give fewer, or fit {name} with a radius."
            )
        folds = list(splitter.split(X, y, **split))
        for k, (train, _) in enumerate(folds if is_classifier(self) and self.fit_intercept else ()):
            lost = np.setdiff1d(y, np.asarray(y)[train])  # the intercept of a class without rows would be infinite
            if len(lost):
                raise ValueError(
                    f"`cv` must leave rows of every class to fit, got none of {shown(lost[0])}, which has "
                    f"{np.sum(np.asarray(y) == lost[0])} in all, in fold {k}; give other folds, leave the class out, "
                    f"or fit {name} with a radius."
                )
        return folds

    def _score_path(
        self, model: Any, rows: TrainingSet, folds: list[Fold], radii: Any, bar: ProgressBar, before: int
    ) -> PathScores:
        """Score a path in each fold, and extend an automatic grid while its last level is best."""
        loss, extended = model._path_loss(rows), 0
        if is_constrained(self) and isinstance(radii, int):
            radii = radius_grid(model, [rows, *(fold.train for fold in folds)], loss, radii)
        given = not isinstance(radii, int)
        full_path = PathSolver(model, rows, model._problem(rows, loss), by_radius=given)
        levels, total = radii if given else full_path.grid(radii), len(self._exponents()) * len(folds)
        for extension in range(1 + MAX_EXTENSIONS):
            jobs, done = (delayed(fold.extend_path)(model, loss, levels, by_radius=given) for fold in folds), []
            for k, fold in enumerate(Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)):
                done.append(fold)
                if self.verbose == 1:
                    ready = before * len(folds) + k + 1
                    bar.draw(ready / total, f"{ready} of {total} fits")
            folds, m = done, min(len(fold.scores) for fold in done)
            scores = np.stack([fold.scores[:m] for fold in folds], axis=1)
            if given or extension == MAX_EXTENSIONS or best_end(scores) < 1:
                break
            if m == len(levels):
                new_levels = full_path.extend_grid(max(1, radii // 3))
                if not len(new_levels):
                    break
                levels, extended = np.append(levels, new_levels), extended + len(new_levels)
        if extended:
            log.info(
                "%s extended its grid by %d radii, as the largest one was the best.", type(self).__name__, extended
            )
        levels = levels[:m]
        radii = radii if given else np.array([ball_norm(full_path.ball, w) for w, _ in full_path.solve(levels)])
        return PathScores(model, full_path, levels, radii, scores, np.array([fold.seconds for fold in folds]), extended)

    def _select(self, paths: list[PathScores], *, given: bool) -> tuple[int, int]:
        """Set the attributes of the search, warn if the best radius is at the end of its grid, and choose one."""
        shape = len(paths), max(len(one.levels) for one in paths)
        radii, scores = np.full(shape, np.nan), np.full((*shape, paths[0].scores.shape[1]), np.nan)
        for i, one in enumerate(paths):
            radii[i, : len(one.levels)], scores[i, : len(one.levels)] = one.radii, one.scores
        self.radii_, self.scores_, self.extended_ = radii, scores, max(one.extended for one in paths)
        exponents = [float(one.model.p) for one in paths]
        self.cv_results_ = make_cv_results(exponents, radii, scores, np.stack([one.seconds for one in paths]))
        best, at = select_best(scores, "best")
        side = best_end(scores[best])
        if side and radii.shape[1] > 2 and (given or side > 0):  # with two radii, the best is always at an end
            where, way = ("largest", "larger") if side > 0 else ("smallest", "smaller")
            warnings.warn(
                f"{type(self).__name__}: the best radius, {radii[best, at]:.4g}, is the {where} that was tried, and "
                f"{way} ones may score better; give {way} `radii`, or "
                f"{'leave them out' if given else 'scale the features'}.",
                UserWarning,
                stacklevel=stacklevel(),
            )
        best, at = select_best(scores, self.rule)
        self.best_index_ = int(np.isfinite(radii[:best]).sum()) + at
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(scores[best, at].mean())
        return best, at

    def _refit(self, rows: TrainingSet, path: PathScores, at: int) -> None:
        """Fit all rows with the chosen radius, starting from the solution on the path."""
        model, solver, radius = path.model, path.solver, float(path.radii[at])
        solutions = solver.solve(path.levels)
        model.set_params(radius=radius or ZERO_RADIUS, verbose=self.verbose, callbacks=self.callbacks)
        coefs, intercepts = _stack_models(model, solver.problem, solutions)
        multipliers = np.array([solver.multiplier(level) for level in path.levels.tolist()])
        try:
            model._fit(rows, start=solutions[at][0])
            coefs[at], intercepts[at] = model.coef_, model.intercept_
        finally:  # also after an interrupt
            if hasattr(model, "result_"):
                self.path_ = RadiusPath(float(model.p), path.radii, coefs, intercepts, multipliers)
                for name, value in vars(model).items():
                    if name.endswith("_") and not name.startswith("_"):
                        setattr(self, name, value)
                self.p_, self.radius_ = float(model.p), radius

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None, **params: Any) -> float:
        """Return the score given by ``scoring``, by default R2 for regressors and the accuracy for classifiers.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
        y : array of shape (n,) or (n, k), or the name of a Parquet column
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            As in `fit`.
        **params
            With metadata routing, the metadata that the scorer requests.
        """
        if client is not None or isinstance(X, Data) or is_dask(X):
            self._refuse_scorer()
        elif self.scoring is not None:
            y, sample_weight = read_score_targets(self, X, y, sample_weight)
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
            if get_config()["enable_metadata_routing"]:
                given = process_routing(self, "score", **given, **params).scorer.score
            return float(check_scoring(self, scoring=self.scoring)(self, X, y, **given))
        return super().score(X, y, sample_weight, client=client)

    plot_path, plot_scores = plot_path, plot_scores

    # ------------------------------------------------------------------ scorers and metadata

    def _refuse_scorer(self) -> None:
        """Raise ValueError if ``scoring`` needs single rows of data that are not in memory."""
        own = "accuracy" if is_classifier(self) else "r2"
        if self.scoring not in (None, own):
            raise ValueError(
                f"`scoring` must be None or {own!r} where rows are not at hand, got {shown(self.scoring)}; give arrays."
            )

    def _route_params(self, sample_weight: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the keyword arguments of the splitter and of the scorer."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return routed.splitter.split, routed.scorer.score
        unknown = set(params) - {"groups"}
        if unknown:
            raise TypeError(
                f"`fit` got {sorted(unknown)[0]!r}, which it can pass on only with metadata routing; switch it on with "
                "`sklearn.set_config(enable_metadata_routing=True)`."
            )
        scorer = check_scoring(self._single_fit_model(), scoring=self.scoring)
        takes = sample_weight is not None and _accepts_weights(scorer)
        return params, {"sample_weight": np.asarray(sample_weight)} if takes else {}

    def get_metadata_routing(self) -> Any:
        """Return the metadata router: `fit` passes metadata to itself, the splitter and the scorer."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(
            splitter=check_cv(self.cv, classifier=is_classifier(self)),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        router.add(
            scorer=check_scoring(self._single_fit_model(), scoring=self.scoring),
            method_mapping=MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score"),
        )
        return router


def _select_rows(X: Any, y: Any, given: dict[str, Any], rows: Array) -> tuple[Any, Any, dict[str, Any]]:
    """Select rows of features, targets and further scorer arguments."""
    own = {name: value if value is None else _safe_indexing(value, rows) for name, value in given.items()}
    return _safe_indexing(X, rows), _safe_indexing(y, rows), own


def _accepts_weights(scorer: Any) -> bool:
    if hasattr(scorer, "_score_func") or not callable(scorer):
        return True  # made by scikit-learn
    names = inspect.signature(scorer).parameters
    return "sample_weight" in names or any(p.kind is p.VAR_KEYWORD for p in names.values())


def check_radii(radii: Any) -> Any:
    """Check ``radii``, and return their number or their values in increasing order."""
    if isinstance(radii, int | np.integer):
        return count("radii", radii, lowest=2)  # type: ignore[arg-type]  # NumPy has whole numbers too
    wanted = np.unique(all_finite("radii", real_array("radii", radii)).astype(np.float64))
    if not wanted.size or wanted[0] <= 0.0:
        given = shown(float(wanted[0])) if wanted.size else "none"
        raise ValueError(
            f"`radii` must be positive numbers, or how many to try, got {given}; leave it out for an automatic grid."
        )
    return wanted


def select_best(scores: Array, rule: str) -> tuple[int, int]:
    """Return the indices of the chosen exponent and radius; ties go to the first exponent and the smallest radius."""
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


def best_end(scores: Array) -> int:
    """Return -1 or 1 if the scores (levels, folds) are best at the first or the last level, else 0.

    Ties count as the smallest level: radii beyond the norm of the unconstrained minimiser have equal scores.
    """
    mean = scores[np.isfinite(scores).all(axis=1)].mean(axis=1)
    if len(mean) < 2:
        return 0
    if mean[0] >= mean.max() - SCORE_TOL * abs(mean.max()):
        return -1
    return int(mean[-1] > mean[:-1].max() + SCORE_TOL * abs(mean[-1]))


def make_cv_results(exponents: list[float], radii: Array, scores: Array, seconds: Array) -> dict[str, Any]:
    """Return ``cv_results_`` as in scikit-learn's searches, with one entry for each exponent and radius.

    ``mean_fit_time`` is the time of a path divided by its number of radii.
    """
    tried = np.isfinite(radii)
    p, r, flat = np.broadcast_to(np.array(exponents)[:, None], radii.shape)[tried], radii[tried], scores[tried]
    times = np.broadcast_to(seconds[:, None] / radii.shape[1], scores.shape)[tried]
    mean = flat.mean(axis=1)
    usable = np.where(np.isfinite(mean), mean, -np.inf)
    rank = 1 + (usable > usable[:, None]).sum(axis=1)
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
