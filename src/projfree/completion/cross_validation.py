"""`MatrixCompletionCV`: choose the penalty and the exponent by cross-validation along warm-started paths."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.parallel import Parallel, delayed

from projfree.checks import Array, shown
from projfree.completion.estimator import MatrixCompletion
from projfree.completion.model import Factors
from projfree.completion.ratings import RatingTriples, read_ratings
from projfree.completion.selection import PathSearch, strength_path
from projfree.deadline import countdown, deadline, remaining
from projfree.losses.base import Loss

RULES = ("best", "one_standard_error")


class MatrixCompletionCV(MatrixCompletion):
    """`MatrixCompletion` with the exponent and the penalty chosen by cross-validation.

    For each exponent and fold, a warm-started path of penalties, from strong to weak, is fitted to the training ratings
    and scored on the test ratings. A path ends when its score has not improved for two points. Users whose ratings are
    all in the test part count as new users. The final fit uses all ratings with the best exponent and penalty. To
    choose from a list of radii, use ``GridSearchCV(MatrixCompletion(), {"radius": radii})`` of scikit-learn.

    Parameters
    ----------
    p : float or sequence of float
        The exponent, or several to choose from.
    cv : int, splitter or iterable, optional
        How to split the ratings, as in scikit-learn; 5 folds by default. With a number of folds the ratings are
        shuffled, because files are often sorted by user.
    scoring : str or callable, optional
        The score to maximise, a function of pairs and their ratings; by default `score`.
    rule : {"best", "one_standard_error"}
        Choose the penalty with the best mean score, or the strongest one within one standard error of it (for the best
        p).
    n_jobs : int, optional
        Number of joblib processes over exponents and folds.
    time_limit : float, optional
        As in `MatrixCompletion`, for all fits together. The folds get half of it; their paths are scored as far as they
        come.
    implicit : "auto" or float
        As in `MatrixCompletion`; by default it is chosen once, before the folds.
    loss, offsets, ridge, user_features, item_features, rank, max_sweeps, certify, columns, callbacks, verbose, \
random_state
        As in `MatrixCompletion`; ``max_sweeps``, ``certify`` and ``callbacks`` apply to the final fit.

    Attributes
    ----------
    p_ : float
        The chosen exponent.
    scores_ : ndarray of shape (n_p, n_points, n_folds)
        Scores of each fold; NaN at points that its path did not reach. Such points are not chosen.
    cv_results_ : dict
        As in scikit-learn's ``GridSearchCV``, with an entry for each p and strength of the penalty.
    best_index_, best_params_, best_score_ : int, dict and float
        The chosen entry of ``cv_results_``, its parameters and its mean score.

    All other attributes and methods are those of `MatrixCompletion` with the chosen penalty, fitted to all ratings.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import MatrixCompletionCV
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 20, 200), rng.integers(0, 15, 200)
    >>> search = MatrixCompletionCV(p=(1.0, 1.2), cv=3, rank=3, max_sweeps=5)
    >>> search = search.fit((users, items, rng.standard_normal(200)))
    >>> search.p_ in (1.0, 1.2), sorted(search.best_params_)
    (True, ['p', 'strength'])
    """

    def __init__(
        self,
        p: Any = (1.0, 1.1, 1.2),
        *,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        loss: Any = "squared",
        offsets: Any = True,
        ridge: float = 3.0,
        implicit: Any = "auto",
        user_features: Any = None,
        item_features: Any = None,
        rank: int = 40,
        max_sweeps: int | None = None,
        certify: Any = True,
        time_limit: float | None = None,
        columns: tuple[str | int, ...] = ("user", "item", "rating"),
        callbacks: Any = (),
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.p, self.cv, self.scoring, self.rule, self.n_jobs = p, cv, scoring, rule, n_jobs
        self.loss, self.offsets, self.ridge, self.implicit = loss, offsets, ridge, implicit
        self.user_features, self.item_features = user_features, item_features
        self.rank, self.max_sweeps, self.certify, self.time_limit = rank, max_sweeps, certify, time_limit
        self.columns, self.callbacks, self.verbose, self.random_state = columns, callbacks, verbose, random_state

    #: The chosen penalty determines the radius, also in `partial_fit`.
    radius = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose exponent and penalty by cross-validation, and fit all ratings with them.

        Parameters
        ----------
        X, y, sample_weight
            As in `MatrixCompletion.fit`.
        groups : array, optional
            Groups for the splitter, such as ``GroupKFold``, one for each row of ``X``.
        """
        self._check_params()
        time_left, exponents = countdown(self.time_limit), np.atleast_1d(self.p).astype(float).tolist()
        seed = self._draw_seed()
        triples = read_ratings(X, y, self.columns, sample_weight)
        with self._run_context() as callbacks:
            models = [self._single_fit_model(p, random_state=seed)._setup(triples) for p in exponents]
            implicit = models[0]._weights[0]
            if len(models[0]._weights) > 1:
                implicit = models[0]._select_penalty([])[1]  # the same weight for all exponents
            for model in models:
                model.implicit = implicit
            paths = [strength_path(model._problem(model.ratings_)) for model in models]
            folds = self._folds(triples, groups, seed)
            seconds = 0.5 * remaining() * effective_n_jobs(self.n_jobs) / (len(models) * len(folds))
            scores = Parallel(n_jobs=self.n_jobs)(
                delayed(_score_path)(model, triples, fold, path, self.scoring, seconds)
                for model, path in zip(models, paths, strict=True)
                for fold in folds
            )
            best = self._select(exponents, paths, scores, len(folds))
            limits = {"time_limit": time_left(), "certify": self.certify, "max_sweeps": self.max_sweeps}
            final = self._single_fit_model(best["p"], random_state=seed, implicit=implicit, **limits)
            final._setup(triples)._fit(callbacks, into=self, strength=best["strength"])
            self.p_ = best["p"]
        return self

    def _single_fit_model(self, p: float, **changes: Any) -> MatrixCompletion:
        """Return the estimator of a single fit."""
        names = set(MatrixCompletion._get_param_names()) - {"p", "radius", "callbacks", "verbose", "time_limit"}
        return MatrixCompletion(**{name: getattr(self, name) for name in names} | {"p": p} | changes)

    def _check_params(self) -> Loss:
        if not np.size(self.p):
            raise ValueError("`MatrixCompletionCV(p=...)` must name at least one exponent, got none.")
        if self.rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {shown(self.rule)}.")
        exponents, rest = np.atleast_1d(self.p).tolist(), {"time_limit": self.time_limit, "verbose": self.verbose}
        losses = [self._single_fit_model(p, **rest)._check_params() for p in exponents]
        return losses[0]

    def _folds(self, triples: RatingTriples, groups: Any, seed: int) -> list[tuple[Array, Array]]:
        """Return the training and test ratings of each fold, without repeated or zero-weight ratings."""
        shuffle = self.cv is None or isinstance(self.cv, int | np.integer)
        splitter = KFold(self.cv or 5, shuffle=True, random_state=seed) if shuffle else check_cv(self.cv)
        last, parts = triples.latest(), splitter.split(np.zeros(len(triples.values)), triples.values, groups)
        return [(last[np.isin(last, rows)], last[np.isin(last, held)]) for rows, held in parts]

    def _select(
        self, exponents: list[float], paths: list[Array], scores: list[list[float]], folds: int
    ) -> dict[str, float]:
        """Set the attributes of the search, and return the chosen exponent and strength."""
        most = max(map(len, scores))
        padded = np.array([[*fold_scores, *[np.nan] * (most - len(fold_scores))] for fold_scores in scores])
        self.scores_ = np.swapaxes(padded.reshape(len(exponents), folds, most), 1, 2)
        mean, flat = self.scores_.mean(axis=2), self.scores_.reshape(-1, folds)
        usable = np.where(np.isfinite(mean), mean, -np.inf)
        if not np.isfinite(usable).any():
            raise ValueError(
                f"`scoring` gave no finite score in {folds} folds; use one that is defined on the rows of each fold, "
                "e.g. `scoring='neg_mean_squared_error'`."
            )
        strengths, repeated = np.concatenate([path[:most] for path in paths]), np.repeat(exponents, most)
        params = [{"p": p, "strength": s} for p, s in zip(repeated.tolist(), strengths.tolist(), strict=True)]
        self.cv_results_ = {
            "params": params,
            "param_p": repeated,
            "param_strength": strengths,
            **{f"split{k}_test_score": column for k, column in enumerate(flat.T)},
            "mean_test_score": mean.ravel(),
            "std_test_score": flat.std(axis=1),
            "rank_test_score": 1 + (usable.ravel()[None, :] > usable.ravel()[:, None]).sum(axis=1),
        }
        best, at = np.unravel_index(int(usable.argmax()), usable.shape)
        if self.rule == "one_standard_error" and folds > 1:  # the path begins with strong penalties
            error = self.scores_[best, at].std(ddof=1) / math.sqrt(folds)
            at = np.argmax(usable[best] >= mean[best, at] - error)
        self.best_index_ = int(best * most + at)
        self.best_params_, self.best_score_ = params[self.best_index_], float(mean[best, at])
        return self.best_params_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score given by ``scoring``, by default that of `MatrixCompletion`."""
        if self.scoring is None:
            return super().score(X, y, sample_weight)
        triples, weights = read_ratings(X, y, self.columns), {}
        if sample_weight is not None:
            weights["sample_weight"] = sample_weight
        pairs = (triples.users, triples.items)
        return float(check_scoring(self, scoring=self.scoring)(self, pairs, triples.values, **weights))


def _score_path(
    model: MatrixCompletion,
    triples: RatingTriples,
    fold: tuple[Array, Array],
    strengths: Array,
    scoring: Any,
    seconds: float,
) -> list[float]:
    """Return the scores along the path of a fold, at least one."""
    fitted, test_part = model._setup(triples.subset(fold[0])), triples.subset(fold[1])
    scorer = check_scoring(fitted, scoring=scoring)
    weights = {} if test_part.weight is None or callable(scoring) else {"sample_weight": test_part.weight}

    def score(factors: Factors) -> float:
        fitted.factors_ = factors
        return float(scorer(fitted, (test_part.users, test_part.items), test_part.values, **weights))

    share = len(fitted.ratings_) / len(model.ratings_)
    with deadline(seconds):  # the strength is proportional to the square root of the number of ratings
        path = fitted._problem(fitted.ratings_), strengths * math.sqrt(share)
        return PathSearch(fitted.rank, fitted._seed, score).path(*path)
