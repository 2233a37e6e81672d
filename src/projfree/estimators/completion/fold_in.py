"""New users in a fitted model: regressions of their ratings on the factors of the items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array
from projfree.estimators.completion.factors import Factors, mean_of
from projfree.estimators.completion.labels import places
from projfree.estimators.completion.predictions import Predictor
from projfree.estimators.completion.problem import Problem, frequency_weights
from projfree.estimators.completion.ratings import Observed, last_of_each, read_own_ratings, read_ratings
from projfree.objectives.regressions import Sides, regressed
from projfree.solvers.alternating import spread

#: A regression goes on from the last one, at most so often, until nothing changes by more than this part.
MOST, STILL = 100, 1e-9


class FoldIn(Predictor):
    """What is known of new users after a few ratings."""

    n_ratings_: int
    strength_: float
    weight_power: float
    _problem: Callable[..., Problem]
    _models: Callable[[], list[Any]]

    def fold_in(self, ratings: Any) -> Array:
        """Predictions of all items, in the order of ``item_ids_``, for a new user who has rated some of them.

        Parameters
        ----------
        ratings : mapping, pairs, frame or tuple of arrays
            ``{item: rating}``, pairs ``(item, rating)``, a frame with the columns of items and ratings, or
            ``(items, ratings)``. Items that the fit has not seen are ignored; a later rating of the same item replaces
            an earlier one.

        Returns
        -------
        ndarray
            As `predict` would give them after a fit in which only the new user's row was found.
        """
        check_is_fitted(self, "factors_")
        items, values = read_own_ratings(ratings, self.columns)
        now, f = self._folded(np.zeros(len(items), dtype=np.int64), items, values, 1), self.factors_
        return self._as_ratings(f.base + now.shift + now.rows[0] + f.cols + f.right @ now.left[0])

    def transform(self, X: Any, y: Any = None) -> tuple[Array, Array]:
        """Coordinates of users, known or new, from ratings of theirs, without a fit.

        Parameters
        ----------
        X, y
            Ratings in any form that `fit` takes.

        Returns
        -------
        users : ndarray
            The labels, sorted.
        coordinates : ndarray of shape (n_users, 1 + rank)
            A row ``(offset, coordinates)`` for each. The prediction of item j, before clipping, is ``factors_.base +
            factors_.shift + offset + factors_.cols[j] + factors_.right[j] @ coordinates``. Ratings of items never seen
            are ignored.
        """
        check_is_fitted(self, "factors_")
        given = read_ratings(X, y, self.columns)
        assert given.values is not None
        users, rows = np.unique(given.users, return_inverse=True)
        now = self._folded(rows, given.items, given.values, len(users))
        return users, np.column_stack([now.rows, now.left])

    def _folded(self, rows: Array, items: Array, values: Array, users: int) -> Sides:
        """The sides with rows for new users, of the mean where there are several models."""
        each = [one._folded_alone(rows, items, values, users) for one in self._models()]
        return each[0] if len(each) == 1 else mean_of(each)

    def _folded_alone(self, rows: Array, items: Array, values: Array, users: int) -> Sides:
        """The sides with rows for new users; a later rating of a pair replaces an earlier one."""
        cols, width = places(self.item_ids_, items, "items"), len(self.item_ids_)
        known = np.flatnonzero(cols >= 0)
        at = known[last_of_each(rows[known], cols[known], width)]
        if not len(at):
            return unknown(self.factors_, users)
        problem = self._problem(Observed(rows[at], cols[at], values[at], None), (users, width))
        counts = np.bincount(rows[at], minlength=users).astype(np.float64)
        weights = frequency_weights(counts, self.weight_power, self.n_ratings_ / len(self.user_ids_))
        return folded(problem, self.factors_, self.strength_, weights**2)


def folded(problem: Problem, model: Factors, strength: float, scale: Array) -> Sides:
    """The factors and offsets of new rows, given those of the columns and the penalty of the fit.

    Parameters
    ----------
    problem : Problem
        Of the new rows' ratings.
    scale : ndarray
        What the penalty is multiplied by for each row.
    """
    now = unknown(model, len(scale))
    ridge = strength * spread(model.sigma, problem.p)
    for _ in range(MOST):
        last, now = now, regressed(problem.f, now, 0, ridge, scale)
        moved = max(_size(now.left - last.left), _size(now.rows - last.rows))
        if moved <= STILL * max(_size(now.left), _size(now.rows)):
            break
    return now


def unknown(model: Factors, users: int) -> Sides:
    """The sides with rows for users of whom nothing is known."""
    return replace(model.sides, left=np.zeros((users, model.left.shape[1])), rows=np.zeros(users))


def _size(array: Array) -> float:
    return float(np.abs(array).max(initial=0.0))
