"""`MatrixCompletionCV`: the penalty or the radius, and the exponent, by cross-validation along warm-started paths."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.parallel import Parallel, delayed

from projfree.checks import Array, all_finite, real_array, shown, stacklevel
from projfree.completion.als import Alternating
from projfree.completion.estimator import CHOOSING, WHOLE, MatrixCompletion
from projfree.completion.model import Factors
from projfree.completion.ratings import GivenRatings, read_ratings
from projfree.completion.selection import FACTOR, PATIENCE, PathSearch, run_sweeps, strengths_of
from projfree.deadline import countdown, deadline, expired, remaining
from projfree.losses.base import Loss

#: A search has so many strengths at most, and begins so many points of the path above that of a single fit: it does not
#: climb.
POINTS, ABOVE = 20, 3
RULES = ("best", "one_standard_error")


class MatrixCompletionCV(MatrixCompletion):
    """`MatrixCompletion` with the exponent and the penalty, or the radius, chosen by cross-validation.

    For each exponent a path of penalties, from strong to weak and each point begun at the last, is fitted to the
    ratings outside a fold and judged on those inside; a path ends when its score has not improved for two points. Radii
    that are given are fitted one by one. What a fold predicts comes from the ratings outside of it alone, so that users
    of whom it holds all ratings count as new. All ratings are then fitted with the best exponent and penalty.

    Parameters
    ----------
    p : float or sequence of float
        The exponent, or several to choose from.
    radii : array, optional
        The radii to try in place of penalties; if the best of these is at an end, a warning says so.
    cv : int, splitter or iterable, optional
        How ratings are split, as in scikit-learn, by default into 5 folds. A number of folds is shuffled, because
        ratings are often sorted by user.
    scoring : str or callable, optional
        What is maximised, given pairs and their ratings; by default `score`.
    rule : {"best", "one_standard_error"}
        The penalty with the best mean score, or the strongest one within a standard error of it (for the best p).
    n_jobs : int, optional
        Processes of joblib over exponents and folds.
    time_limit : float, optional
        As in `MatrixCompletion`, for all fits together, of which the folds have half. Paths that it cuts short are
        scored as far as they come.
    implicit : "auto" or float
        As in `MatrixCompletion`: by default chosen once, before the folds, and zero if radii are given.
    loss, offsets, ridge, user_features, item_features, rank, max_sweeps, certify, columns, callbacks, verbose, \
random_state
        As in `MatrixCompletion`; what concerns sweeps, certificates and callbacks is for the final fit.

    Attributes
    ----------
    p_ : float
        The chosen exponent.
    scores_ : ndarray of shape (n_p, n_points, n_folds)
        NaN at points that the path of a fold did not reach, of which none is chosen.
    cv_results_ : dict
        As in scikit-learn's ``GridSearchCV``, an entry for each p and strength of the penalty, or radius.
    best_index_, best_params_, best_score_ : int, dict and float
        The choice, and its mean score.

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
        radii: Any = None,
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
        self.p, self.radii, self.cv, self.scoring, self.rule, self.n_jobs = p, radii, cv, scoring, rule, n_jobs
        self.loss, self.offsets, self.ridge, self.implicit = loss, offsets, ridge, implicit
        self.user_features, self.item_features = user_features, item_features
        self.rank, self.max_sweeps, self.certify, self.time_limit = rank, max_sweeps, certify, time_limit
        self.columns, self.callbacks, self.verbose, self.random_state = columns, callbacks, verbose, random_state

    #: Without a radius the penalty that was chosen determines it, in `partial_fit` too.
    radius = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose exponent and penalty, and fit all ratings with them.

        Parameters
        ----------
        X, y, sample_weight
            As in `MatrixCompletion.fit`.
        groups : array, optional
            For the splitter, such as ``GroupKFold``: one for each row of ``X``.
        """
        self._check()
        left, exponents, seed = countdown(self.time_limit), self._exponents(), self._draw_seed()
        given = read_ratings(X, y, self.columns, sample_weight)
        with self._watched() as callbacks:
            models = [self._single(p, random_state=seed)._prepared(given) for p in exponents]
            implicit = models[0]._weights[0] if len(models[0]._weights) == 1 else 0.0
            if self.radii is None and len(models[0]._weights) > 1:
                implicit = models[0]._chosen([])[1]  # one for all, as a single fit chooses it
            for model in models:
                model.implicit = implicit
            points = [self._points(model) for model in models]
            folds = self._folds(given, groups, seed)
            seconds = CHOOSING * remaining() * effective_n_jobs(self.n_jobs) / (len(models) * len(folds))
            found = Parallel(n_jobs=self.n_jobs)(
                delayed(_scores)(model, given, fold, each, self.radii is None, self.scoring, seconds)
                for model, each in zip(models, points, strict=True)
                for fold in folds
            )
            best, at = self._choose(exponents, points, found, len(folds))
            limits = {"time_limit": left(), "certify": self.certify, "max_sweeps": self.max_sweeps}
            final = self._single(exponents[best], random_state=seed, implicit=implicit, **limits)
            chosen = float(points[best][at])
            final.radius = None if self.radii is None else chosen
            final._prepared(given)._fit(callbacks, into=self, strength=chosen if self.radii is None else None)
            self.p_ = exponents[best]
        return self

    def _exponents(self) -> list[float]:
        return [float(p) for p in np.atleast_1d(self.p)]

    def _single(self, p: float, **changes: Any) -> MatrixCompletion:
        """The estimator of one fit."""
        names = set(MatrixCompletion._get_param_names()) - {"p", "radius", "callbacks", "verbose", "time_limit"}
        return MatrixCompletion(**{name: getattr(self, name) for name in names} | {"p": p} | changes)

    def _check(self) -> Loss:
        if not self._exponents():
            raise ValueError("`MatrixCompletionCV(p=...)` must name at least one exponent, got none.")
        if self.rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {shown(self.rule)}.")
        if self.radii is not None:
            radii = all_finite("radii", real_array("radii", np.atleast_1d(self.radii)))
            if not radii.size or radii.min() <= 0.0:
                raise ValueError(f"`radii` must be positive numbers, got {shown(self.radii)}; leave it out for a path.")
        losses = [self._single(p, time_limit=self.time_limit, verbose=self.verbose)._check() for p in self._exponents()]
        return losses[0]

    def _points(self, model: MatrixCompletion) -> Array:
        """The strengths of a path, from strong to weak, or the radii, in increasing order."""
        if self.radii is not None:
            return np.unique(np.asarray(self.radii, np.float64))
        return strengths_of(model._problem(model.ratings_), POINTS) / FACTOR**ABOVE

    def _folds(self, given: GivenRatings, groups: Any, seed: int) -> list[tuple[Array, Array]]:
        """The ratings to fit and to score, of those that count; splitters see all rows that were given."""
        whole = self.cv is None or isinstance(self.cv, int | np.integer)
        splitter = KFold(self.cv or 5, shuffle=True, random_state=seed) if whole else check_cv(self.cv)
        last, parts = given.latest(), splitter.split(np.zeros(len(given.values)), given.values, groups)
        return [(last[np.isin(last, rows)], last[np.isin(last, held)]) for rows, held in parts]

    def _choose(
        self, exponents: list[float], points: list[Array], found: list[list[float]], folds: int
    ) -> tuple[int, int]:
        """Keep the scores, and return the indices of the best exponent and of the best point of its path."""
        most, name = max(map(len, found)), "strength" if self.radii is None else "radius"
        padded = np.array([[*scores, *[np.nan] * (most - len(scores))] for scores in found])
        self.scores_ = np.swapaxes(padded.reshape(len(exponents), folds, most), 1, 2)
        mean, flat = self.scores_.mean(axis=2), self.scores_.reshape(-1, folds)
        usable = np.where(np.isfinite(mean), mean, -np.inf)
        if not np.isfinite(usable).any():
            raise ValueError(
                f"`scoring` gave no finite score in {folds} folds; use one that is defined on the rows of each fold, "
                "e.g. `scoring='neg_mean_squared_error'`."
            )
        values, repeated = np.concatenate([each[:most] for each in points]), np.repeat(exponents, most)
        params = [{"p": p, name: r} for p, r in zip(repeated.tolist(), values.tolist(), strict=True)]
        self.cv_results_ = {
            "params": params,
            "param_p": repeated,
            f"param_{name}": values,
            **{f"split{k}_test_score": column for k, column in enumerate(flat.T)},
            "mean_test_score": mean.ravel(),
            "std_test_score": flat.std(axis=1),
            "rank_test_score": 1 + (usable.ravel()[None, :] > usable.ravel()[:, None]).sum(axis=1),
        }
        best, at = (int(i) for i in np.unravel_index(int(usable.argmax()), usable.shape))
        if self.rule == "one_standard_error" and folds > 1:  # strong penalties and small radii come first
            error = self.scores_[best, at].std(ddof=1) / math.sqrt(folds)
            at = int(np.argmax(usable[best] >= mean[best, at] - error))
        if self.radii is not None and most > 2 and at in (0, most - 1):
            warnings.warn(
                f"the best radius, {values[at]:.4g}, is at an end of those that were tried; give "
                f"{'larger' if at else 'smaller'} `radii`, or leave them out.",
                UserWarning,
                stacklevel=stacklevel(),
            )
        self.best_index_ = best * most + at
        self.best_params_, self.best_score_ = params[self.best_index_], float(mean[best, at])
        return best, at

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The score by ``scoring``, by default that of `MatrixCompletion`."""
        if self.scoring is None:
            return super().score(X, y, sample_weight)
        given, weights = read_ratings(X, y, self.columns), {}
        if sample_weight is not None:
            weights["sample_weight"] = sample_weight
        pairs = (given.users, given.items)
        return float(check_scoring(self, scoring=self.scoring)(self, pairs, given.values, **weights))


def _scores(
    model: MatrixCompletion,
    given: GivenRatings,
    fold: tuple[Array, Array],
    points: Array,
    path: bool,
    scoring: Any,
    seconds: float,
) -> list[float]:
    """Scores of strengths along a path, as far as it goes, or of radii one by one; there is at least one."""
    own, inside = model._prepared(given.part(fold[0])), given.part(fold[1])
    scorer = check_scoring(own, scoring=scoring)
    weights = {} if inside.weight is None or callable(scoring) else {"sample_weight": inside.weight}

    def score(factors: Factors) -> float:
        own.factors_ = factors
        return float(scorer(own, (inside.users, inside.items), inside.values, **weights))

    f, scores, latest = own._problem(own.ratings_), [], None
    search = PathSearch(own.rank, own._seed, score)
    with deadline(seconds):
        for point in points.tolist():
            if path:  # a penalty on fewer ratings is weaker, as the root of their number
                trial = search.fit(f, point * math.sqrt(len(own.ratings_) / len(model.ratings_)), latest)
                latest = trial.model
                scores.append(trial.score)
            else:
                most = own.max_sweeps or WHOLE
                state, _ = run_sweeps(f, Alternating(own.rank), None, radius=point, seed=own._seed, max_iter=most)
                scores.append(score(Factors.of_point(f, state.x, state.sigma).exact(f).inside(f.p, point)))
            if expired() or (path and len(scores) - int(np.argmax(scores)) > PATIENCE):
                break
    return scores
