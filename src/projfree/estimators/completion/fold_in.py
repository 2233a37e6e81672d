"""New users in a fitted model: regressions of their ratings on the factors of the items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.algebra import OnPattern
from projfree.checks import Array, is_sparse, real_array, shown
from projfree.completion.als_updates import Sides, regressed
from projfree.completion.alternating import spread
from projfree.data.convert import is_frame
from projfree.estimators.completion.cold import ModelLines
from projfree.estimators.completion.convex_problem import ConvexProblem, frequency_weights
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.features import FeatureTable
from projfree.estimators.completion.labels import places
from projfree.estimators.completion.observed import Observed, last_of_each
from projfree.estimators.completion.predictions import Predictor
from projfree.estimators.completion.ratings import read_own_ratings, read_ratings

#: A regression goes on from the last one, at most so often, until nothing changes by more than this part.
MOST, STILL = 100, 1e-9


class FoldIn(Predictor):
    """What is known of new users after a few ratings."""

    n_ratings_: int
    strength_: float
    user_features_: FeatureTable | None
    _problem: Callable[..., ConvexProblem]

    def fold_in(self, ratings: Any = (), user_features: Any = None) -> Array:
        """Predictions of all items, in the order of ``item_ids_``, for a new user who has rated some of them, or none.

        Parameters
        ----------
        ratings : mapping, series, pairs, frame or tuple of arrays
            ``{item: rating}``, a series of ratings with the items as its index, pairs ``(item, rating)``, a frame with
            the columns of items and ratings, or ``(items, ratings)``. Items that the fit has not seen are ignored, but
            one must be of the fit; a later rating of the same item replaces an earlier one. There may be no ratings,
            as where features alone are known.
        user_features : vector or frame with one row, optional
            The features of the user, in the columns of the fit, where this had some.

        Returns
        -------
        ndarray
            As `predict` would give them after a fit in which only the new user's row was found.
        """
        check_is_fitted(self, "factors_")
        items, values = read_own_ratings(ratings, self.columns)
        table = self._new_features(user_features if is_frame(user_features) else _one_row(user_features), 1)
        whole, f = self._completed, self.factors_
        if not len(items):
            return self._as_ratings(whole.across(whole.users.expected(table, 1), np.arange(len(f.cols)))[0])
        if not (self._item_places(items) >= 0).any():
            raise ValueError(
                f"`ratings` must hold an item of the fit, got {shown(items.tolist())}; for a user without ratings give "
                "none, as in `fold_in({})`."
            )
        now = self._folded(np.zeros(len(items), dtype=np.int64), items, values, 1, table)
        u = f.base + now.shift + now.rows[0] + f.cols + f.right @ now.left[0]
        cold = np.flatnonzero(whole.items.counts == 0)
        u[cold] = whole.across(ModelLines(now.rows, now.left, now.left), cold)[0]
        return self._as_ratings(u)

    def transform(self, X: Any, y: Any = None, user_features: Any = None) -> tuple[Array, Array]:
        """Coordinates of users, known or new, from ratings of theirs, without a fit.

        Parameters
        ----------
        X, y
            Ratings in any form that `fit` takes.
        user_features : array, sparse matrix or frame, optional
            A row for each of the users in the order of their labels, where the fit had features.

        Returns
        -------
        users : ndarray
            The labels, sorted.
        coordinates : ndarray of shape (n_users, 1 + rank)
            A row ``(offset, coordinates)`` for each. The prediction of an item j with ratings, before clipping, is
            ``factors_.base + factors_.shift + offset + factors_.cols[j] + factors_.right[j] @ coordinates``. Ratings of
            items never seen are ignored; who has no others has the coordinates that are expected of such users.
        """
        check_is_fitted(self, "factors_")
        given = read_ratings(X, y, self.columns)
        assert given.values is not None
        users, rows = np.unique(given.users, return_inverse=True)
        table = self._new_features(user_features, len(users))
        now = self._folded(rows, given.items, given.values, len(users), table)
        return users, np.column_stack([now.rows, now.left])

    def _new_features(self, given: Any, users: int) -> OnPattern | None:
        """The features of so many new users, in the units of the fit."""
        if given is None:
            return None
        if self.user_features_ is None:
            raise ValueError("`user_features` must be left out, since the model was fitted without them.")
        table = self.user_features_.like("user_features", given)
        if table.shape[0] != users:
            raise ValueError(f"`user_features` must have a row for each of {users} users, got {table.shape[0]} rows.")
        return table

    def _item_places(self, items: Array) -> Array:
        return places(self.item_ids_, items, "items")

    def _folded(self, rows: Array, items: Array, values: Array, users: int, table: OnPattern | None = None) -> Sides:
        """The sides with rows for new users; a later rating of a pair replaces an earlier one."""
        cols, width, now = self._item_places(items), len(self.item_ids_), unknown(self.factors_, users)
        known = np.flatnonzero(cols >= 0)
        at = known[last_of_each(rows[known], cols[known], width)]
        counts = np.bincount(rows[at], minlength=users)
        if len(at):
            weights = frequency_weights(counts, self.settings_.power, self.n_ratings_ / len(self.user_ids_))
            problem = self._problem(Observed(rows[at], cols[at], values[at], None), (users, width), (table, None))
            now = folded(problem, self.factors_, self.strength_, weights**2)
        if counts.all():
            return now
        there = self._completed.users.expected(table, users)
        left = np.where(counts[:, None] > 0, now.left, there.factors)
        return replace(now, left=left, rows=np.where(counts > 0, now.rows, there.offsets))


def _one_row(given: Any) -> Any:
    """One user's features as a table."""
    if given is None or is_sparse(given):
        return given
    return np.atleast_2d(real_array("user_features", given))


def folded(problem: ConvexProblem, model: Factors, strength: float, scale: Array) -> Sides:
    """The factors and offsets of new rows, given those of the columns and the penalty of the fit.

    Parameters
    ----------
    problem : ConvexProblem
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
