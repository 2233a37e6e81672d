"""What a fitted completion does: predict, recommend, fold in, score, save and load."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.algebra import Pattern
from projfree.checks import Array, count, shown
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.problem import Problem
from projfree.estimators.completion.ratings import Observed, places, read_ratings
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.objectives.regressions import regressed
from projfree.solvers.alternating import spread

#: Regressions of new users for a loss that is not quadratic.
FOLDS = 30


class Recommender:
    """The part of `MatrixCompletion` that needs no solver."""

    factors_: Factors
    user_ids_: Array
    item_ids_: Array
    ratings_: Observed
    rating_range_: tuple[float, float]
    loss_: Loss
    strength_: float
    clip: bool
    columns: Any
    _problem: Callable[..., Problem]

    def decision_function(self, X: Any) -> Array:
        """The model at pairs, before clipping; for the logistic loss the log-odds."""
        check_is_fitted(self, "factors_")
        pairs = read_ratings(X, None, self.columns, values=False)
        return self.factors_.margin(places(self.user_ids_, pairs.users), places(self.item_ids_, pairs.items))

    def predict(self, X: Any) -> Array:
        """Ratings of pairs ``(user, item)``; for the logistic loss the more likely of the two labels.

        A user or item that was never seen has no offset and no factors: its prediction falls back to what is known.
        """
        u = self.decision_function(X)
        if self.loss_.labels:
            low, high = self.rating_range_
            return np.where(u >= 0.0, high, low)
        return np.clip(u, *self.rating_range_) if self.clip else u

    def score(self, X: Any, y: Any = None) -> float:
        """The coefficient of determination of predicted ratings; for the logistic loss the accuracy."""
        from sklearn.metrics import accuracy_score, r2_score

        given = read_ratings(X, y, self.columns)
        predicted = self.predict((given.users, given.items))
        return float((accuracy_score if self.loss_.labels else r2_score)(given.values, predicted))

    def rmse(self, X: Any, y: Any = None) -> float:
        """The root mean squared error of predicted ratings."""
        given = read_ratings(X, y, self.columns)
        return float(np.sqrt(np.mean((self.predict((given.users, given.items)) - given.values) ** 2)))

    def recommend(self, user: Any, n: int = 10, exclude_seen: bool = True) -> tuple[Array, Array]:
        """The ``n`` items with the highest predictions for a user, and the predictions, before clipping."""
        check_is_fitted(self, "factors_")
        count("recommend(n=...)", n)
        place = int(places(self.user_ids_, np.asarray([user]))[0])
        if place < 0:
            raise ValueError(
                f"`recommend(user=...)` must be a user of the fit, got {shown(user)}; for a new one use `transform` "
                "or `partial_fit` with some ratings."
            )
        cols = np.arange(len(self.item_ids_))
        u = self.factors_.margin(np.full(len(cols), place), cols)
        if exclude_seen:
            u[self.ratings_.cols[self.ratings_.rows == place]] = -np.inf
        best = np.argsort(-u, kind="stable")[:n]
        best = best[np.isfinite(u[best])]
        return self.item_ids_[best], u[best]

    def transform(self, X: Any, y: Any = None) -> tuple[Array, Array]:
        """Fold in ratings of new users without refitting: labels, and a row ``(offset, coordinates)`` for each.

        The prediction for item j is the base and shift of the fit, the offset, the item's offset, and the inner product
        of the coordinates with the item's factors. Items never seen are ignored.
        """
        check_is_fitted(self, "factors_")
        given, f = read_ratings(X, y, self.columns), self.factors_
        users, rows = np.unique(given.users, return_inverse=True)
        cols = places(self.item_ids_, given.items)
        known = cols >= 0
        assert given.values is not None
        pattern, order, place = Pattern.of(rows[known], cols[known], (len(users), len(self.item_ids_)))
        values = given.values[known][order]
        if place is not None:
            last = np.flatnonzero(np.append(np.diff(place) > 0, True))
            values = values[last]
        rows = np.repeat(np.arange(len(users)), np.diff(pattern.indptr))
        folded = self._problem(Observed(rows, pattern.indices, values, None), (len(users), len(self.item_ids_)))
        weight = float(np.median(self._problem(self.ratings_).unit.rows[: len(self.user_ids_)]))
        now = replace(f.sides, left=np.zeros((len(users), f.left.shape[1])), rows=np.zeros(len(users)))
        ridge = self.strength_ * spread(f.sigma, folded.p)
        for _ in range(1 if is_squared(self.loss_) else FOLDS):
            now = regressed(folded.f, now, 0, ridge, np.full(len(users), weight**2))
        return users, np.column_stack([now.rows, now.left])

    #: The first version of the file format that has completions.
    saved_version = 3
    #: The run of a convex solver, whose matrix the factors hold.
    never_saved = ("result_",)

    def check_parts(self) -> None:
        """Raise where a model that was read from a file is not what a fit leaves."""
        from projfree.estimators.completion.saved import check_completion

        check_completion(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder, atomically and without pickle; `projfree.load` reads it back."""
        from projfree.estimators.saving import save

        check_is_fitted(self, "factors_")
        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; settings that are functions, solvers or paths are as by default."""
        from projfree.estimators.saving import load

        model = load(path)
        if not isinstance(model, cls):
            raise ValueError(f"{str(path)!r} holds a {type(model).__name__}; read it with `projfree.load`.")
        return model
