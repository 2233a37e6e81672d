"""What a fitted completion predicts and recommends: items for users, known or new, and how good the lists are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array, count, is_sparse, real_array, shown
from projfree.completion.als import regress, spread
from projfree.completion.certificate import SHARP_SIDE
from projfree.completion.factors import Factors
from projfree.completion.features import FeatureTable
from projfree.completion.prediction import Completed, OffsetModel
from projfree.completion.problem import CompletionProblem, Settings
from projfree.completion.ratings import (
    Ratings,
    labels_of,
    last_of_each,
    places,
    read_own_ratings,
    read_pairs,
    read_ratings,
)
from projfree.data.convert import is_frame
from projfree.losses.base import Loss
from projfree.run import ProgressBar
from projfree.runtime import over_blocks

#: How much the predicted rating counts, in standard deviations of ratings, beside the completed indicator of which
#: items were rated, and beside the logarithm of their numbers of ratings. Precision at 10 on MovieLens is flat around
#: these: 0.05 to 0.4 and 0.3 to 1 give the same to 2 %.
BESIDE_INDICATOR, BESIDE_COUNTS = 0.1, 0.5
#: Scores that are held at once, and the least number of users: products of fewer rows read the items too often.
SCORES, LEAST_ROWS = 1 << 23, 64
#: A new user's regression goes on from the last one, at most so often, until nothing changes by more than this part.
MOST, STILL = 100, 1e-9
#: From this gap on a report says so; matrix entries below this part of the ratings' spread change no list; and ratings
#: of which more than this part are zeros are implicit feedback.
WIDE_GAP, FLAT, ZEROS = 0.1, 1e-3, 0.5


@dataclass(frozen=True)
class Report:
    """Errors of predicted ratings, and what the lists of recommendations are worth.

    Attributes
    ----------
    rmse, mae : float
        The root mean squared and the mean absolute error of all ratings.
    precision, recall : float
        The part of the ``k`` items recommended to a user that the user likes, and the part of the items that the user
        likes that is recommended. Both are means over ``n_users``; NaN if there is none.
    popular_precision, popular_recall : float
        The same of lists of the items with the most ratings.
    coverage : float
        The part of all items that is recommended to somebody.
    k : int
        The length of a list.
    threshold : float
        A rating of at least this says that the user likes the item.
    n_ratings, n_users : int
        Ratings, and users of the fit among them who like something.
    notes : tuple of str
        What to know about the model, and what to do about it.
    """

    rmse: float
    mae: float
    precision: float
    recall: float
    popular_precision: float
    popular_recall: float
    coverage: float
    k: int
    threshold: float
    n_ratings: int
    n_users: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        numbers = [f"{each.name:<18} {getattr(self, each.name):.4g}" for each in fields(self) if each.name != "notes"]
        return "\n".join([*numbers, *self.notes])


class Ranking:
    r"""The scores by which items are recommended, as one product of factors for all pairs with ratings.

    By rating a score is the predicted rating. By likelihood it is how likely the user chooses the item and likes it:
    the completed indicator of which items were rated, :math:`S_{ij} + T_{ij}`, or without implicit features the
    logarithm of the item's number of ratings, plus a little of the predicted rating. Constants of a user are left out.
    """

    def __init__(self, completed: Completed, by: str, implicit: bool, deviation: float) -> None:
        model, counts, self.completed = completed.model, completed.offsets.col_counts, completed
        self.taste, self.popular, self.new_popular = 1.0, np.zeros(len(counts)), np.zeros(len(counts))
        self._double, right = by == "likely" and implicit, model.right
        if self._double:
            self.taste = BESIDE_INDICATOR / deviation
            right = np.hstack([self.taste * right + model.beside[: len(right)], right])
            self.new_popular = 2.0 * counts / max(len(model.rows), 1)
        elif by == "likely":
            self.taste = BESIDE_COUNTS / deviation
            self.popular = self.new_popular = np.log(counts + 0.5)
            right = self.taste * right
        self._items = np.column_stack([right, self.taste * model.cols + self.popular])
        self._cold = np.flatnonzero(completed.items.cold[:-1])

    def of_users(self, rows: Array) -> Array:
        """The scores of all items for users of the fit."""
        done, model = self.completed, self.completed.model
        scores = self.of_factors(model.left[rows], model.below[rows] if self._double else None)
        if len(self._cold):
            level = (model.base + model.shift + model.rows[rows])[:, None]
            scores[:, self._cold] = self.taste * (done.across(rows, self._cold) - level) + self.popular[self._cold]
        new = np.flatnonzero(done.users.cold[rows])
        if len(new):
            every = np.arange(len(model.cols))
            scores[new] = self.taste * done.across(rows[new], every) + self.new_popular
        return scores

    def of_factors(self, left: Array, below: Array | None) -> Array:
        """The scores of items with ratings for factors of users."""
        parts = [left, np.ones((len(left), 1))] if below is None else [left, below, np.ones((len(left), 1))]
        scores: Array = np.hstack(parts) @ self._items.T
        return scores


def best(scores: Array, n: int) -> Array:
    """The columns of the ``n`` highest scores of each row, from high to low, -1 where only minus infinity is left."""
    from projfree.completion.kernels import best_of_rows

    top, columns = np.full((len(scores), n), -np.inf), np.full((len(scores), n), -1)
    size = -(-len(scores) // 8)

    def part(k: int) -> None:
        best_of_rows(scores, top, columns, k * size, min((k + 1) * size, len(scores)))

    over_blocks(part, -(-len(scores) // max(size, 1)), 2)
    return columns


def lists_of(
    score: Callable[[Array], Array], rows: Array, n: int, width: int, seen: Ratings | None, bar: Any = None
) -> Iterator[Array]:
    """The columns of the ``n`` highest scores of some rows, without those rated, a block of rows at a time."""
    size = max(LEAST_ROWS, SCORES // max(width, 1))
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        scores = score(block)
        if seen is not None:
            scores[seen.of_rows(block)] = -np.inf
        if bar is not None:
            bar(None)
        yield best(scores, min(n, width))


def judged(lists: Iterable[Array], liked: Array, width: int) -> tuple[float, float, float]:
    """Precision, recall and coverage of lists of items, one for each user.

    ``liked`` holds users by their lists and items by their columns, -1 for one that no list can hold.
    """
    keys = np.where(liked[1] >= 0, liked[0] * width + liked[1], -1)
    shares, hits, start, somewhere = [], [], 0, np.zeros(width, dtype=bool)
    for top in lists:
        there = top >= 0
        found = np.isin((start + np.arange(len(top)))[:, None] * width + top, keys) & there
        hits.append(found.sum(axis=1))
        shares.append(hits[-1] / np.maximum(there.sum(axis=1), 1))
        somewhere[top[there]] = True
        start += len(top)
    if not start:
        return float("nan"), float("nan"), 0.0
    recall = np.concatenate(hits) / np.bincount(liked[0], minlength=start)
    return float(np.concatenate(shares).mean()), float(recall.mean()), float(somewhere.mean())


class Recommender:
    """What a fitted `MatrixCompletion` is asked; it needs no solver."""

    factors_: Factors
    offset_model_: OffsetModel
    settings_: Settings
    loss_: Loss
    strength_: float
    relative_gap_: float
    rating_range_: tuple[float, float]
    rating_deviation_: float
    user_ids_: Array
    item_ids_: Array
    user_features_: FeatureTable | None
    item_features_: FeatureTable | None
    ratings_: Ratings
    columns: Any
    verbose: int
    _problem: Callable[..., CompletionProblem]

    # ------------------------------------------------------------ predictions

    def decision_function(self, X: Any) -> Array:
        """The model at pairs, before clipping; for the logistic loss the log-odds."""
        check_is_fitted(self, "factors_")
        return self._completed.margin(*self._places(*read_pairs(X, self.columns)))

    def predict(self, X: Any) -> Array:
        """Ratings of pairs ``(user, item)``, within the range of those seen; for the logistic loss one of the labels.

        If a user or an item has no ratings, or was never seen, the prediction is that of the best offsets without a
        matrix, and of what features say.
        """
        return self._as_ratings(self.decision_function(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The coefficient of determination of predicted ratings; for the logistic loss the accuracy."""
        from sklearn.metrics import accuracy_score, r2_score

        given = read_ratings(X, y, self.columns)
        predicted = self.predict((given.users, given.items))
        measure = accuracy_score if self.loss_.labels else r2_score
        return float(measure(given.values, predicted, sample_weight=sample_weight))

    def rmse(self, X: Any, y: Any = None) -> float:
        """The root mean squared error of predicted ratings."""
        given = read_ratings(X, y, self.columns)
        return float(np.sqrt(np.mean((self.predict((given.users, given.items)) - given.values) ** 2)))

    @property
    def _completed(self) -> Completed:
        """The model in which nobody is missing; it is made once for factors."""
        made = vars(self).get("_last_completed")
        if made is None or made.model is not self.factors_ or made.offsets is not self.offset_model_:
            tables = self.user_features_, self.item_features_
            made = self._last_completed = Completed(self.factors_, self.offset_model_, tables, self.settings_.ridge)
        return made

    def _as_ratings(self, u: Array) -> Array:
        low, high = self.rating_range_
        return np.where(u >= 0.0, high, low) if self.loss_.labels else np.clip(u, low, high)

    def _places(self, users: Array, items: Array) -> tuple[Array, Array]:
        """Rows and columns of pairs, -1 for what was never seen."""
        return places(self.user_ids_, users, "users"), places(self.item_ids_, items, "items")

    def _need_ratings(self, call: str, way: str) -> Ratings:
        """The ratings of the fit, which a model may have been saved without."""
        check_is_fitted(self, "factors_")
        if not hasattr(self, "ratings_"):
            raise ValueError(f"`{call}` needs the ratings, which were left out when the model was saved; {way}.")
        return self.ratings_

    # ------------------------------------------------------------ recommendations

    def recommend(
        self, user: Any = None, n: int = 10, exclude_seen: bool = True, by: str = "likely"
    ) -> tuple[Array, Array]:
        """The ``n`` best items for a user or for several, and their predictions before clipping.

        Parameters
        ----------
        user : label or sequence of labels, optional
            One user of the fit, or several; by default all, in the order of ``user_ids_``.
        n : int
            How many items.
        exclude_seen : bool
            Whether items that the user has rated are left out.
        by : {"likely", "rating"}
            The items that the user is most likely to choose and to like, or those with the highest predictions, among
            which there are many that few have rated.

        Returns
        -------
        items, predictions : ndarray
            Of length ``n``, or fewer if nothing else is left. For several users of shape ``(n_users, n)``: a row that
            ends early goes on with predictions that are NaN, beside items that mean nothing.
        """
        check_is_fitted(self, "factors_")
        user = self.user_ids_ if user is None else user
        seen = self._need_ratings("recommend", "use `exclude_seen=False`") if exclude_seen else None
        rows = self._known("user", user, self.user_ids_, "for a new one use `fold_in` with some ratings")
        ranking, n, width = self._ranking(by), count("recommend(n=...)", n), len(self.item_ids_)
        bar = ProgressBar(label="recommend") if self.verbose and len(rows) > 1 else None
        if bar is not None:
            bar.begin("users", -(-len(rows) // max(LEAST_ROWS, SCORES // width)))
        try:
            blocks = lists_of(ranking.of_users, rows, n, width, seen, bar)
            top = np.concatenate([np.zeros((0, min(n, width)), np.int64), *blocks])
        finally:
            if bar is not None:
                bar.close()
        there = top >= 0
        predictions = np.full(top.shape, np.nan)
        predictions[there] = self._completed.margin(np.repeat(rows, there.sum(axis=1)), top[there])
        if np.ndim(user):
            return self.item_ids_[top], predictions
        return self.item_ids_[top[0, there[0]]], predictions[0, there[0]]

    def _ranking(self, by: str) -> Ranking:
        if by not in ("likely", "rating"):
            raise ValueError(f"`by` must be 'likely' or 'rating', got {shown(by)}.")
        return Ranking(self._completed, by, self.settings_.implicit > 0.0, self.rating_deviation_)

    def similar_items(self, item: Any, n: int = 10) -> tuple[Array, Array]:
        """The ``n`` items most like an item, or like each of several, and how much: from 1, alike, to -1, opposite.

        The similarity is the cosine of the items' columns of the completed matrix without offsets: who likes one
        more than is usual for user and item likes the other too.
        """
        check_is_fitted(self, "factors_")
        return self._similar("item", item, self.item_ids_, self.item_features_, n)

    def similar_users(self, user: Any, n: int = 10) -> tuple[Array, Array]:
        """The ``n`` users most like a user, or like each of several, and how much, as in `similar_items`."""
        check_is_fitted(self, "factors_")
        return self._similar("user", user, self.user_ids_, self.user_features_, n)

    def _similar(self, name: str, label: Any, ids: Array, features: FeatureTable | None, n: int) -> tuple[Array, Array]:
        done, model = self._completed, self.factors_
        lines, table, other = (done.users, model.left, model.right)
        if name == "item":
            lines, table, other = (done.items, model.right, model.left)
        table = table if features is None else lines.factors[:-1]  # what is expected of those without ratings
        n = min(count(f"similar_{name}s(n=...)", n), len(ids) - 1)
        rows = self._known(name, label, ids, "fit it with some ratings first")
        # Rows are compared as those of table @ other.T, which does not depend on how the matrix was factored.
        values, vectors = np.linalg.eigh(other.T @ other)
        whole = table @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        lengths = np.linalg.norm(whole, axis=1, keepdims=True)
        whole = np.divide(whole, lengths, out=np.zeros_like(whole), where=lengths > 0.0)

        def cosines(block: Array) -> Array:
            found: Array = whole[block] @ whole.T
            found[np.arange(len(block)), block] = -np.inf
            return found

        top = np.concatenate([np.zeros((0, n), int), *lists_of(cosines, rows, n, len(ids), None)])
        sizes = np.clip(np.sum(whole[rows][:, None, :] * whole[top], axis=2), -1.0, 1.0)
        return (ids[top], sizes) if np.ndim(label) else (ids[top[0]], sizes[0])

    def _known(self, name: str, label: Any, ids: Array, way: str) -> Array:
        """The indices of one or several labels, all of which must be there."""
        labels = labels_of(name, label if np.ndim(label) else [label])
        at = places(ids, labels, name)
        if (at < 0).any():
            raise ValueError(f"`{name}` must be in the fit, got {shown(labels[at < 0][0])}; {way}.")
        return at

    # ------------------------------------------------------------ new users

    def fold_in(
        self,
        ratings: Any = (),
        user_features: Any = None,
        *,
        n: int | None = None,
        exclude_seen: bool = True,
        by: str = "likely",
    ) -> Any:
        """Predictions or recommendations for a new user who has rated some items, or none.

        Parameters
        ----------
        ratings : mapping, series, pairs, frame or tuple of arrays
            ``{item: rating}``, a series of ratings with the items as its index, pairs ``(item, rating)``, a frame with
            the columns of items and ratings, or ``(items, ratings)``. Items that the fit has not seen are ignored, but
            one must be of the fit; a later rating of the same item replaces an earlier one. There may be no ratings,
            as if features alone are known.
        user_features : vector or frame with one row, optional
            The features of the user, in the columns of the fit, if this had some.
        n : int, optional
            How many items to recommend; by default predictions of all items are returned.
        exclude_seen, by
            As in `recommend`.

        Returns
        -------
        ndarray or pair of ndarray
            Predictions of all items in the order of ``item_ids_``, as `predict` would give them after a fit in which
            only the new user's row was found; with ``n`` items and predictions as `recommend` gives them.
        """
        check_is_fitted(self, "factors_")
        (items, values), done = read_own_ratings(ratings, self.columns), self._completed
        table, every = self._new_features(user_features), np.arange(len(self.item_ids_))
        at = places(self.item_ids_, items, "items")
        if len(items) and not (at >= 0).any():
            raise ValueError(
                f"`ratings` must hold an item of the fit, got {shown(items.tolist())}; for a user without ratings give "
                "none, as in `fold_in({})`."
            )
        known = np.flatnonzero(at >= 0)
        known = known[last_of_each(np.zeros(len(known), np.int64), at[known], len(every))]
        now, f = self._folded(at[known], values[known], table), self.factors_
        if len(known):
            cold = np.flatnonzero(done.items.cold[:-1])
            u = f.base + now.shift + now.rows[0] + f.cols + f.right @ now.left[0]
            u[cold] = done.new_users(now.rows, now.left, now.left, cold)[0]
        else:
            offset, factors = done.users.expected(table, np.arange(1))
            u = done.new_users(offset, factors, done.users.plain[-1:], every)[0]
        if n is None:
            return self._as_ratings(u)
        ranking = self._ranking(by)
        if len(known):
            scores = ranking.of_factors(now.left, now.below[:1] if ranking._double else None)
            level = f.base + now.shift + now.rows[0]
            scores[0, cold] = ranking.taste * (u[cold] - level) + ranking.popular[cold]
        else:
            scores = (ranking.taste * u + ranking.new_popular)[None, :]
        if exclude_seen:
            scores[0, at[known]] = -np.inf
        top = best(scores, min(count("fold_in(n=...)", n), len(every)))[0]
        return self.item_ids_[top[top >= 0]], u[top[top >= 0]]

    def _new_features(self, given: Any) -> FeatureTable | None:
        """The features of a new user, in the units of the fit."""
        if given is None:
            return None
        if self.user_features_ is None:
            raise ValueError("`user_features` must be left out, since the model was fitted without them.")
        one = given if is_frame(given) or is_sparse(given) else np.atleast_2d(real_array("user_features", given))
        table = self.user_features_.like("user_features", one)
        if table.shape[0] != 1:
            raise ValueError(f"`user_features` must have one row, that of the user, got {table.shape[0]} rows.")
        return table

    def _folded(self, cols: Array, values: Array, table: FeatureTable | None) -> Factors:
        """The model with one row, that of a new user with these ratings, given its columns and its penalty."""
        model, n = self.factors_, len(self.item_ids_)
        now = Factors(
            np.zeros((1, model.left.shape[1])), model.right, np.zeros(1), model.cols, model.shift, model.base,
            model.sigma, model.below[:0], model.beside,
        )  # fmt: skip
        if not len(cols):
            return now
        counts = self.offset_model_.row_counts
        mean, rows = float(counts.sum() / len(counts)), np.zeros(len(cols), np.int64)
        features = (None if table is None else table.on, None)
        f = self._problem(Ratings(rows, cols, values, None), (1, n), features, (mean, None))
        ridge, scale = self.strength_ * spread(model.sigma, f.p), f.rows[:1] ** 2
        for _ in range(MOST):
            last, now = now, regress(f, now, 0, ridge, scale)
            moved = max(
                float(np.abs(a - b).max(initial=0.0)) for a, b in ((now.left, last.left), (now.rows, last.rows))
            )
            if moved <= STILL * max(float(np.abs(part).max(initial=0.0)) for part in (now.left, now.rows)):
                break
        return now

    # ------------------------------------------------------------ report

    def report(self, X: Any, y: Any = None, k: int = 10, threshold: float | None = None) -> Report:
        """Errors, precision, recall and coverage on ratings that were held out, and what to know about the model.

        Lists of ``k`` items are made as by `recommend`, from all items that a user has not rated in the fit, for those
        users of the fit who like something in ``X``. An item that the fit has not seen may be liked, and is in no list.

        Parameters
        ----------
        X, y
            Ratings in any form that `fit` takes.
        k : int
            The length of a list.
        threshold : float, optional
            A rating of at least this says that the user likes the item; by default the mean of the ratings given.
        """
        seen, given = self._need_ratings("report", "use `rmse`"), read_ratings(X, y, self.columns)
        (rows, cols), values = self._places(given.users, given.items), given.values
        least = float(values.mean()) if threshold is None else float(threshold)
        at = given.last()
        at = at[(rows[at] >= 0) & (values[at] >= least)]
        users, lists = np.unique(rows[at], return_inverse=True)
        liked, width = np.stack([lists, cols[at]]), len(self.item_ids_)
        counts = self.offset_model_.col_counts.astype(np.float64)
        own, popular = (
            judged(lists_of(score, users, count("report(k=...)", k), width, seen), liked, width)
            for score in (self._ranking("likely").of_users, partial(_same_for_all, counts))
        )
        errors = self._as_ratings(self._completed.margin(rows, cols)) - values
        sizes = float(np.sqrt(np.mean(errors**2))), float(np.abs(errors).mean())
        return Report(*sizes, *own[:2], *popular[:2], own[2], k, least, len(values), len(users), self.notes())

    def notes(self) -> tuple[str, ...]:
        """What to know about the model, and what to do about it, in sentences."""
        check_is_fitted(self, "factors_")
        model, found = self.factors_, []
        if self.relative_gap_ > WIDE_GAP:
            sharper = (
                ""
                if len(self.user_ids_) + len(self.item_ids_) <= SHARP_SIDE
                else ("`certify='sharp'` takes the time that a sharper bound needs, and ")
            )
            found.append(
                f"The certified gap is {self.relative_gap_:.0%}: the bound cannot tell how close the model is to the "
                f"best one; {sharper}`certify_to(0.01)` goes on until the gap is proved to be 1 %."
            )
        largest = [float(np.linalg.norm(part, axis=1).max(initial=0.0)) for part in (model.left, model.right)]
        if largest[0] * largest[1] <= FLAT * self.rating_deviation_:
            found.append(
                "The held-out ratings ask for offsets alone, so that recommendations are the same for everyone, except "
                "for what each has rated already; more ratings for each user, or a given `radius`, make them personal."
            )
        values = self.ratings_.values if hasattr(self, "ratings_") else np.ones(1)
        if (zeros := float(np.mean(values == 0.0))) > ZEROS:
            found.append(
                f"{zeros:.0%} of the ratings are zeros, as in implicit feedback: leave the zeros out and set "
                "`implicit=1.0`, which completes which items were chosen, or use `loss='logistic'` for zeros and ones."
            )
        return tuple(found)


def _same_for_all(scores: Array, rows: Array) -> Array:
    return np.tile(scores, (len(rows), 1))
