"""`MatrixCompletionCV`: the radius and the exponent by cross-validation, along warm-started paths."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state

from projfree.checks import Array
from projfree.deadline import countdown, deadline, remaining
from projfree.estimators.completion.estimator import MatrixCompletion
from projfree.estimators.completion.rating_folds import RatingFold, path_of, radii_of, scores_of
from projfree.estimators.completion.ratings import GivenRatings, read_ratings, weighted_ratings
from projfree.estimators.completion.settings import stated
from projfree.estimators.completion.stages import CHOOSING
from projfree.estimators.completion.stopping import watched
from projfree.estimators.completion.turns import in_turns
from projfree.estimators.search import Search, checked_radii


class MatrixCompletionCV(Search, MatrixCompletion):
    """`MatrixCompletion` with the exponent and the radius chosen by cross-validation.

    For each exponent a path of penalties, from strong to weak and each point begun at the last, is fitted to the
    ratings outside a fold and judged on those inside; a path ends when its score has not improved for two points. Each
    point stands for the radius that it has on all ratings. Radii that are given are fitted one by one. What a fold
    predicts comes from the ratings outside of it alone, so that users of whom it holds all ratings count as new. The
    best exponent and radius are then fitted to all ratings.

    Parameters
    ----------
    p : float or sequence of float
        The exponent, or several to choose from.
    radii : int or array
        How many radii a path has at most, or the radii to try; where the best of these is at an end, a warning says so.
    cv : int, splitter or iterable, optional
        How ratings are split, as in scikit-learn, by default into 5 folds. A number of folds is shuffled, because
        ratings are often sorted by user.
    scoring : str or callable, optional
        What is maximised, given pairs and their ratings; by default `score`. Sample weights reach it where it takes
        some.
    rule : {"best", "one_standard_error"}
        The radius with the best mean score, or the smallest one within a standard error of it (for the best p).
    n_jobs : int, optional
        Processes of joblib over exponents and folds.
    time_limit : float, optional
        As in `MatrixCompletion`, for all fits together; half of what the choice of implicit features leaves is for the
        final one. Paths that it cuts short, each of which has the same share, are scored as far as they come.
    implicit : "auto" or float
        As in `MatrixCompletion`: by default chosen once, before the folds, and zero where radii are given.
    loss, offsets, ridge, weight_power, user_features, item_features, features_weight, rank, max_sweeps, \
tol, solver, max_iter, certify, early_stopping, \
validation_fraction, n_iter_no_change, clip, columns, callbacks, random_state
        As in `MatrixCompletion`; what concerns sweeps, certificates and callbacks is for the final fit.

    Attributes
    ----------
    radius_, p_ : float
        The choice.
    radii_ : ndarray of shape (n_p, n_radii)
        What was tried.
    scores_ : ndarray of shape (n_p, n_radii, n_folds)
        NaN at points that the path of a fold did not reach, of which none is chosen.
    cv_results_ : dict
        As in scikit-learn's ``GridSearchCV``, an entry for each p and radius; ``mean_fit_time`` is that of a path
        divided by its radii.
    best_index_, best_params_, best_score_ : int, dict and float
        The choice, and its mean score.

    All other attributes and methods are those of `MatrixCompletion` with the chosen radius, fitted to all ratings.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import MatrixCompletionCV
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 20, 200), rng.integers(0, 15, 200)
    >>> search = MatrixCompletionCV(p=(1.0, 1.2), cv=3, rank=3, max_sweeps=5)
    >>> search = search.fit((users, items, rng.standard_normal(200)))
    >>> search.p_ in (1.0, 1.2), sorted(search.best_params_)
    (True, ['p', 'radius'])
    """

    _kind = MatrixCompletion
    _beyond = "raise their number"
    radius = None
    checkpoint = None

    def __init__(
        self,
        p: Any = (1.0, 1.1, 1.2),
        *,
        radii: Any = 20,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        loss: Any = "squared",
        offsets: Any = True,
        ridge: float = 3.0,
        implicit: Any = "auto",
        weight_power: float = 0.25,
        user_features: Any = None,
        item_features: Any = None,
        features_weight: float = 1.0,
        rank: int = 40,
        max_sweeps: int | None = None,
        tol: float | None = None,
        solver: Any = None,
        max_iter: int = 1000,
        certify: Any = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        time_limit: float | None = None,
        clip: bool = True,
        columns: tuple[str | int, ...] = ("user", "item", "rating"),
        callbacks: Any = (),
        random_state: Any = 0,
    ) -> None:
        self.p, self.radii, self.cv, self.scoring, self.rule, self.n_jobs = p, radii, cv, scoring, rule, n_jobs
        self.loss, self.offsets, self.ridge, self.implicit = loss, offsets, ridge, implicit
        self.user_features, self.item_features, self.features_weight = user_features, item_features, features_weight
        self.weight_power, self.rank, self.max_sweeps, self.tol = weight_power, rank, max_sweeps, tol
        self.solver, self.max_iter, self.certify = solver, max_iter, certify
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.n_iter_no_change, self.time_limit, self.clip = n_iter_no_change, time_limit, clip
        self.columns, self.callbacks, self.random_state = columns, callbacks, random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose radius and exponent, and fit all ratings with them.

        Parameters
        ----------
        X, y, sample_weight
            As in `MatrixCompletion.fit`.
        **params
            ``groups`` for the splitter; with metadata routing anything that splitter and scorer ask for.
        """
        fresh = copy.copy(self)  # so that a search that raises or is interrupted leaves all as it was
        fresh._choose(X, y, sample_weight, params)
        self.__dict__.update(fresh.__dict__)
        return self

    def _choose(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> None:
        self._check_rule()
        self._checked()
        wanted, left = checked_radii(self.radii), countdown(self.time_limit)
        split, given = self._routed(sample_weight, params)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        models = [self._single(p).set_params(random_state=seed) for p in self._exponents()]
        path = isinstance(wanted, int)
        with watched(self.callbacks, self.time_limit):
            for model in models:
                model.prepare(X, y, sample_weight)
            if path:
                self._share_implicit(models)
            folds = self._folds(read_ratings(X, y, self.columns), X, y, sample_weight, split, given, seed)
            if models[0].loss_.labels:
                _refuse_lost_labels(models[0].ratings_.values, folds)
            with deadline(CHOOSING * remaining()):
                self._try(models, wanted, path, folds)
            best, at = self._keep_choice()
            final = self._single(self._exponents()[best]).set_params(random_state=seed, callbacks=self.callbacks)
            final.set_params(radius=float(self.radii_[best, at]), implicit=models[best].implicit_, time_limit=left())
            final.fit(X, y, sample_weight)
        self._take_over(final, final.radius_)
        self.stated_ = stated(self)

    def _single(self, p: float | None = None) -> MatrixCompletion:
        return MatrixCompletion(**self._parameters(p), radius=None)

    def _checked(self) -> None:
        if not self._exponents():
            raise ValueError("`MatrixCompletionCV(p=...)` must name at least one exponent, got none.")
        for p in self._exponents():
            self._single(p)._checked()

    @property
    def _exponent(self) -> float:
        return self.p_

    @staticmethod
    def _share_implicit(models: list[MatrixCompletion]) -> None:
        """One weight of implicit features for all, as a single fit chooses it."""
        if len(models[0].weights) > 1:
            _, weight, _ = models[0]._chosen()
            for model in models:
                model.implicit_ = weight

    def _folds(
        self, every: GivenRatings, X: Any, y: Any, sample_weight: Any, split: Any, given: Any, seed: int
    ) -> list[RatingFold]:
        """The folds of the ratings that count; splitters see all rows that were given."""
        assert every.values is not None
        whole = self.cv is None or isinstance(self.cv, int | np.integer)
        splitter = KFold(self.cv or 5, shuffle=True, random_state=seed) if whole else check_cv(self.cv)
        counted = weighted_ratings(X, y, self.columns, sample_weight)
        origin = counted.last() if counted.at is None else counted.at[counted.last()]
        scorer = check_scoring(self._single(), scoring=self.scoring)
        folds = []
        for parts in splitter.split(np.zeros(len(every.values)), every.values, **split):
            rows, held = (np.flatnonzero(np.isin(origin, part)) for part in parts)
            along = {name: value[origin[held]] for name, value in given.items()}
            folds.append(RatingFold(rows, held, scorer, along, every.shape))
        return folds

    def _try(self, models: list[MatrixCompletion], wanted: Any, path: bool, folds: list[RatingFold]) -> None:
        """Score radii or the points of a path in each fold, for each exponent; needed are scores of the first."""
        ways = [path_of(model, wanted) if path else wanted for model in models]
        tasks = [
            partial(scores_of, model, way, path, fold, needed=model is models[0])
            for model, way in zip(models, ways, strict=True)
            for fold in folds
        ]
        # Radii take one more path for each exponent, on all ratings.
        with deadline(remaining() * (len(folds) / (len(folds) + 1) if path else 1.0)):
            found = in_turns(tasks, self.n_jobs)
        most = max(len(scores) for scores, _ in found) if path else len(wanted)
        padded = [scores + [np.nan] * (most - len(scores)) for scores, _ in found]
        scores = np.swapaxes(np.reshape(padded, (len(models), len(folds), most)), 1, 2)
        seconds = np.reshape([took for _, took in found], (len(models), len(folds)))
        if path:
            ways = in_turns([partial(radii_of, *one, most) for one in zip(models, ways, strict=True)], self.n_jobs)
        reached = min(map(len, ways))  # fewer than were scored where time is up
        radii = np.stack([way[:reached] for way in ways])
        self._keep_scores(self._exponents(), radii, scores[:, :reached], seconds, given=not path)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """The score by ``scoring``, by default that of `MatrixCompletion`.

        Parameters
        ----------
        X, y
            Ratings in any form that `fit` takes.
        sample_weight : array, optional
        **params
            With metadata routing, what the scorer asks for.
        """
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        given = read_ratings(X, y, self.columns)
        return self._scored((given.users, given.items), given.values, sample_weight, params)


def _refuse_lost_labels(values: Array, folds: list[RatingFold]) -> None:
    """Raise where the ratings to fit in a fold lack one of the two labels."""
    for k, fold in enumerate(folds):
        there = np.unique(values[fold.rows])
        if len(there) == 1:
            raise ValueError(
                f"`cv` must leave ratings of both values to fit, got {there[0]:g} alone in fold {k}; give other folds, "
                "or fit `MatrixCompletion`, which chooses its radius without any."
            )
