"""`MatrixCompletionCV`: the radius and the exponent by cross-validation, along warm-started paths."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array
from projfree.estimators.completion.choice import POINTS, along, strengths_of
from projfree.estimators.completion.estimator import MatrixCompletion
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.problem import Problem
from projfree.estimators.completion.ratings import read_ratings
from projfree.estimators.search_results import checked_radii, choose, results_table

#: Into how many parts ratings are divided by default, of which one is held out.
PARTS = 10


class MatrixCompletionCV(BaseEstimator):
    """`MatrixCompletion` with the exponent and the radius chosen on held-out ratings.

    For each exponent a path of penalties, from strong to weak and each point begun at the last, is fitted to the
    ratings outside a fold and judged on those inside; the exponent and strength with the best mean score are refitted
    to all ratings. Radii that are given are fitted one by one.

    Parameters
    ----------
    p : float or sequence of float
        The exponent, or several to choose from.
    radii : int or array
        How many penalties a path has at most, or the radii to try. A path ends when its score has not improved for two
        points.
    cv : int, splitter or iterable, optional
        How ratings are split, as in scikit-learn; a number of folds is shuffled. By default a tenth of the ratings is
        held out once.
    scoring : str or callable, optional
        What is maximised, given pairs and their ratings; by default minus the root mean squared error (minus the mean
        loss where ratings are labels).
    n_jobs : int, optional
        Processes of joblib over exponents and folds.
    estimator : MatrixCompletion, optional
        Everything else; its ``p`` and ``radius`` are replaced, and a weight of implicit features that is left to choose
        is chosen once, for the first exponent (0 where radii are given).

    Attributes
    ----------
    cv_results_ : dict
        As in scikit-learn's ``GridSearchCV``; ``param_radius`` is replaced by ``param_strength``, the penalty on all
        ratings, where a path was asked for. Points that some fold did not reach have no mean.
    best_index_, best_params_, best_score_ : int, dict and float
        The choice.
    p_, radius_ : float
        The choice; the radius is that of the refitted model.
    model_ : MatrixCompletion
        The refitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.estimators.completion import MatrixCompletion
    >>> from projfree.estimators.completion import MatrixCompletionCV
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 20, 200), rng.integers(0, 15, 200)
    >>> search = MatrixCompletionCV(p=(1.0, 1.2), estimator=MatrixCompletion(rank=3, sweeps=5))
    >>> search.fit((users, items, rng.standard_normal(200))).p_ in (1.0, 1.2)
    True
    """

    def __init__(
        self,
        p: Any = (1.0, 1.1, 1.2),
        *,
        radii: Any = POINTS,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        estimator: MatrixCompletion | None = None,
    ) -> None:
        self.p, self.radii, self.cv, self.scoring, self.n_jobs, self.estimator = (
            p,
            radii,
            cv,
            scoring,
            n_jobs,
            estimator,
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose, and refit to all ratings."""
        exponents, wanted = [float(p) for p in np.atleast_1d(self.p)], checked_radii(self.radii)
        if not exponents:
            raise ValueError("`MatrixCompletionCV(p=...)` must name at least one exponent, got none.")
        base = MatrixCompletion() if self.estimator is None else self.estimator
        if base.checkpoint is not None:
            raise ValueError(
                "`MatrixCompletionCV` fits many models, and a checkpoint holds one; leave `checkpoint` out."
            )
        self._enough(read_ratings(X, y, base.columns).values)
        models = [clone(base).set_params(p=p, radius=None) for p in exponents]
        for model in models:
            model.prepare(X, y, sample_weight)
        if isinstance(base.implicit, str):
            base = self._weighed(base, models, isinstance(wanted, int))
        folds = self._folds(len(models[0].ratings_), models[0]._seed)
        scorer = None if self.scoring is None else check_scoring(base, scoring=self.scoring)
        candidates = [self._candidates(model, wanted) for model in models]
        tasks = (
            delayed(_fold)(model, ways, isinstance(wanted, int), rows, held, scorer)
            for model, ways in zip(models, candidates, strict=True)
            for rows, held in folds
        )
        found = Parallel(n_jobs=self.n_jobs)(tasks)
        shape = (len(models), len(folds), -1)
        scores = np.swapaxes(np.reshape([scores for scores, _ in found], shape), 1, 2)
        seconds = np.reshape([took for _, took in found], shape[:2])
        self._choose(exponents, candidates, scores, seconds, isinstance(wanted, int))
        self._refit(base, X, y, sample_weight, len(models[0].ratings_))
        return self

    @staticmethod
    def _weighed(base: MatrixCompletion, models: list[MatrixCompletion], path: bool) -> MatrixCompletion:
        """The settings with one weight of implicit features for all: that of the first exponent; 0 for given radii."""
        weight = models[0]._chosen()[1] if path else 0.0
        for model in models:
            model.set_params(implicit=weight)
            model.implicit_ = weight
        chosen: MatrixCompletion = clone(base).set_params(implicit=weight)
        return chosen

    def _candidates(self, model: MatrixCompletion, wanted: Any) -> Array:
        given: Array = strengths_of(model._problem(model.ratings_), wanted) if isinstance(wanted, int) else wanted
        return given

    def _choose(self, exponents: list[float], ways: list[Array], scores: Array, seconds: Array, path: bool) -> None:
        results = results_table(exponents, np.stack(ways), scores, seconds)
        if path:
            results["param_strength"] = results.pop("param_radius")
            results["params"] = [{"p": one["p"], "strength": one["radius"]} for one in results["params"]]
        best, at = choose(scores, "best")
        self.cv_results_, self.best_index_ = results, best * scores.shape[1] + at
        self.best_params_, self.best_score_ = results["params"][self.best_index_], float(scores[best, at].mean())

    def _refit(self, base: MatrixCompletion, X: Any, y: Any, sample_weight: Any, n: int) -> None:
        chosen = self.best_params_
        self.model_ = clone(base).set_params(p=chosen["p"], radius=chosen.get("radius"))
        if "strength" in chosen:
            self.model_.fit_with(X, y, sample_weight, chosen["strength"])
        else:
            self.model_.fit(X, y, sample_weight)
        self.p_, self.radius_ = chosen["p"], self.model_.radius_

    def _enough(self, values: Any) -> None:
        least = 2 * PARTS if self.cv is None else 2
        if len(values) < least:
            raise ValueError(
                f"`MatrixCompletionCV` needs at least {least} ratings, got {len(values)}; use fewer folds, or "
                "MatrixCompletion with a radius."
            )

    def _folds(self, n: int, seed: int) -> list[tuple[Array, Array]]:
        if self.cv is None:
            return list(KFold(PARTS, shuffle=True, random_state=seed).split(np.zeros(n)))[:1]
        whole = isinstance(self.cv, int | np.integer)
        splitter = KFold(self.cv, shuffle=True, random_state=seed) if whole else check_cv(self.cv)
        return list(splitter.split(np.zeros(n)))

    def predict(self, X: Any) -> Array:
        """Ratings of pairs, by the refitted model."""
        check_is_fitted(self, "model_")
        predicted: Array = self.model_.predict(X)
        return predicted

    def score(self, X: Any, y: Any = None) -> float:
        """The score of the refitted model by ``scoring``, by default that of `MatrixCompletion`."""
        check_is_fitted(self, "model_")
        if self.scoring is None:
            return float(self.model_.score(X, y))
        return float(check_scoring(self, scoring=self.scoring)(self, X, y))


def _fold(
    model: MatrixCompletion, ways: Array, path: bool, rows: Array, held: Array, scorer: Any
) -> tuple[list[float], float]:
    """Scores of strengths along a path, NaN where it ended before, or of radii one by one; and the seconds it took."""
    begun, every = time.perf_counter(), model.ratings_

    def score(state: Factors) -> float:
        if scorer is None:
            return -model._error(state, held)
        model.factors_ = state
        pairs = (model.user_ids_[every.rows[held]], model.item_ids_[every.cols[held]])
        return float(scorer(model, pairs, every.values[held]))

    problem = model._problem(every.part(rows))
    if path:
        # A penalty on fewer ratings is weaker, as the root of their number.
        own = ways * np.sqrt(len(rows) / len(every))
        scores = [point.score for point in along(problem, model.rank, model._seed, score, own)]
    else:
        scores = [score(_within(model, problem, float(radius))) for radius in ways]
    return scores + [np.nan] * (len(ways) - len(scores)), time.perf_counter() - begun


def _within(model: MatrixCompletion, problem: Problem, radius: float) -> Factors:
    """The answer over the ball of one radius, as `MatrixCompletion.fit` finds it."""
    found = problem.within(model.rank, radius, None, seed=model._seed, max_iter=model.max_sweeps(False))
    return Factors.of(problem.f, found.state).inside(problem.p, radius)
