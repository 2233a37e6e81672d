"""Predictions and recommendations of a fitted completion, for known and new users, and their evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array, count, is_sparse, real_array, shown
from projfree.completion.als import relative_ridge, update_factors
from projfree.completion.features import FeatureTable
from projfree.completion.model import ColdStartModel, Factors, OffsetModel
from projfree.completion.problem import CompletionProblem, Settings
from projfree.completion.ratings import Ratings, check_labels, index_labels, read_pairs, read_ratings, read_user_ratings
from projfree.data.convert import is_frame
from projfree.losses.base import Loss
from projfree.run import ProgressBar
from projfree.run.callbacks import announce, closing

#: Weight of the predicted rating, in standard deviations, relative to the completed indicator of which items were
#: rated, or to the logarithm of their numbers of ratings. The precision at 10 on MovieLens hardly depends on it.
RATING_WEIGHT = 0.35
#: Maximum number of scores in memory: 64 MB.
MAX_SCORES = 1 << 23
#: Thresholds of the notes of a report: a certified gap, the largest matrix entry in standard deviations of the ratings
#: below which lists do not change, and the share of zeros that suggests implicit feedback.
LARGE_GAP, NEGLIGIBLE, IMPLICIT_SHARE = 0.1, 1e-3, 0.5


@dataclass(frozen=True)
class Report:
    """Errors of predicted ratings, and quality of the recommended lists.

    Attributes
    ----------
    rmse, mae : float
        The root mean squared error and the mean absolute error of all ratings.
    precision, recall : float
        The fraction of the ``k`` recommended items that the user likes, and the fraction of liked items that are
        recommended, averaged over ``n_users``; NaN if there are no users.
    popular_precision, popular_recall : float
        The same for lists of the items with the most ratings.
    coverage : float
        The fraction of items that are recommended to at least one user.
    k : int
        The length of a list.
    threshold : float
        The smallest rating that counts as liking an item.
    n_ratings, n_users : int
        The number of ratings, and the number of known users who like an item.
    notes : tuple of str
        Hints about the model, as returned by `notes`.
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
    r"""Scores that rank items for users, as a single product of factors for all pairs with ratings.

    With ``by="rating"`` the score is the predicted rating. With ``by="likely"`` it estimates how likely the user is to
    choose and like the item: the completed indicator of which items were rated, :math:`S_{ij} + T_{ij}`, or without
    implicit features the logarithm of the item's number of ratings, plus `RATING_WEIGHT` times the predicted rating in
    standard deviations. Terms that are constant for a user are omitted.
    """

    def __init__(self, cold_start: ColdStartModel, by: str, implicit: bool, deviation: float) -> None:
        if by not in ("likely", "rating"):
            raise ValueError(f"`by` must be 'likely' or 'rating', got {shown(by)}.")
        self.cold_start, model, counts = cold_start, cold_start.model, cold_start.offsets.col_counts
        self.rating_weight = 1.0 if by == "rating" else RATING_WEIGHT / deviation
        self.left, right, popularity = model.left, self.rating_weight * model.right, np.zeros(len(counts))
        self.cold_popularity = popularity
        if by == "likely" and implicit:
            self.left = np.hstack([model.left, model.left_extra[: len(model.left)]])
            right = np.hstack([right + model.right_extra[: len(right)], model.right])
            self.cold_popularity = 2.0 * counts / max(len(cold_start.offsets.row_counts), 1)
        elif by == "likely":
            popularity = self.cold_popularity = np.log(counts + 0.5)
        self.popularity, self.right = popularity, np.column_stack([right, self.rating_weight * model.cols + popularity])

    def scores(self, rows: Array) -> Array:
        """Return the scores of all items for some users."""
        cold_start, model = self.cold_start, self.cold_start.model
        out: Array = np.column_stack([self.left[rows], np.ones(len(rows))]) @ self.right.T
        cold, new = np.flatnonzero(cold_start.items.cold[:-1]), np.flatnonzero(cold_start.users.cold[rows])
        if len(cold):
            level = (model.base + model.shift + model.rows[rows])[:, None]
            out[:, cold] = self.rating_weight * (cold_start.margins(rows, cold) - level) + self.popularity[cold]
        if len(new):
            out[new] = (
                self.rating_weight * cold_start.margins(rows[new], np.arange(out.shape[1])) + self.cold_popularity
            )
        return out


def top_items(
    scores: Callable[[Array], Array], rows: Array, n: int, width: int, seen: Ratings | None = None, verbose: int = 0
) -> Array:
    """Return the columns of the ``n`` largest scores of each row, in decreasing order; -1 if too few are left.

    Scores are computed for blocks of rows. Entries in ``seen`` are excluded.
    """
    from projfree.completion.kernels import top_of_rows

    size = max(1, MAX_SCORES // max(width, 1))
    top = np.full((len(rows), min(n, width)), -1)
    bars = [ProgressBar(label="recommend")] if verbose and len(rows) > 1 else []
    announce(bars, "users", -(-len(rows) // size))
    with closing(bars):
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            block_scores = scores(block)
            if seen is not None:
                block_scores[seen.entries_of_rows(block)] = -np.inf
            top_of_rows(block_scores, np.full((len(block), top.shape[1]), -np.inf), top[start : start + size])
            for bar in bars:
                bar(None)  # type: ignore[arg-type]  # it counts calls
    return top


def score_lists(top: Array, liked: Array, width: int) -> tuple[float, float, float]:
    """Compute precision, recall and coverage of lists of items, one list per user.

    ``liked`` holds pairs of list number and item index; the index -1 stands for an item that is in no list.
    """
    if not len(top):
        return float("nan"), float("nan"), 0.0
    there, keys = top >= 0, np.where(liked[1] >= 0, liked[0] * width + liked[1], -1)
    hits = (np.isin(np.arange(len(top))[:, None] * width + top, keys) & there).sum(axis=1)
    shares, recall = hits / np.maximum(there.sum(axis=1), 1), hits / np.bincount(liked[0], minlength=len(top))
    return float(shares.mean()), float(recall.mean()), len(np.unique(top[there])) / width


class Recommender:
    """Predictions, recommendations and reports of a fitted `MatrixCompletion`."""

    factors_: Factors
    offset_model_: OffsetModel
    settings_: Settings
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

    # ------------------------------------------------------------ predictions

    def decision_function(self, X: Any) -> Array:
        """Return the predictions for pairs before clipping; with the logistic loss, the log-odds."""
        check_is_fitted(self, "factors_")
        return self._cold_start_model.margin(*self._places(*read_pairs(X, self.columns)))

    def predict(self, X: Any) -> Array:
        """Predict ratings of pairs ``(user, item)``, clipped to the range of the ratings; with the logistic loss,
        labels.

        If a user or an item has no ratings or is unknown, the prediction uses the offsets fitted without a matrix, and
        features.
        """
        return self._clip_to_ratings(self.decision_function(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R2 of predicted ratings; with the logistic loss, the accuracy."""
        from sklearn.metrics import accuracy_score, r2_score

        given = read_ratings(X, y, self.columns)
        predicted = self.predict((given.users, given.items))
        measure = accuracy_score if self.loss_.labels else r2_score
        return float(measure(given.values, predicted, sample_weight=sample_weight))

    def rmse(self, X: Any, y: Any = None) -> float:
        """Return the root mean squared error of predicted ratings."""
        given = read_ratings(X, y, self.columns)
        return float(np.sqrt(np.mean((self.predict((given.users, given.items)) - given.values) ** 2)))

    @property
    def loss_(self) -> Loss:
        """The loss of the fit, with its scale."""
        return self.settings_.loss

    @property
    def _cold_start_model(self) -> ColdStartModel:
        """The model completed for users and items without ratings, cached for each fit."""
        known = vars(self).get("_cold_start_cache")
        if known is None or known.model is not self.factors_ or known.offsets is not self.offset_model_:
            given = self.factors_, self.offset_model_, (self.user_features_, self.item_features_)
            known = self._cold_start_cache = ColdStartModel.of(*given, self.settings_.ridge)
        return known

    def _clip_to_ratings(self, u: Array) -> Array:
        low, high = self.rating_range_
        return np.where(u >= 0.0, high, low) if self.loss_.labels else np.clip(u, low, high)

    def _places(self, users: Array, items: Array) -> tuple[Array, Array]:
        """Return rows and columns of pairs, -1 for unknown users and items."""
        return index_labels(self.user_ids_, users, "users"), index_labels(self.item_ids_, items, "items")

    # ------------------------------------------------------------ recommendations

    def recommend(
        self, user: Any = None, n: int = 10, exclude_seen: bool = True, by: str = "likely"
    ) -> tuple[Array, Array]:
        """Recommend ``n`` items to one or several users, with predictions before clipping.

        Parameters
        ----------
        user : label or sequence of labels, optional
            One or several known users; by default all, in the order of ``user_ids_``.
        n : int
            The number of items.
        exclude_seen : bool
            Whether to exclude the items that the user has rated.
        by : {"likely", "rating"}
            Rank items by how likely the user is to choose and like them, or by the predicted rating. The latter
            recommends many items with few ratings.

        Returns
        -------
        items, predictions : ndarray
            Of length at most ``n`` for one user, and of shape ``(n_users, n)`` for several. Shorter rows are padded
            with NaN predictions, beside items without meaning.
        """
        check_is_fitted(self, "factors_")
        user = self.user_ids_ if user is None else user
        rows, seen = self._find_labels("user", user, self.user_ids_), self.ratings_ if exclude_seen else None
        items, predictions = self._recommend_rows(self._cold_start_model, rows, count("recommend(n=...)", n), seen, by)
        return (items, predictions) if np.ndim(user) else _trim_list(items, predictions)

    def _recommend_rows(
        self, cold_start: ColdStartModel, rows: Array, n: int, seen: Ratings | None, by: str
    ) -> tuple[Array, Array]:
        """Return the best items for some rows of a model, and their predictions."""
        ranking = Ranking(cold_start, by, self.settings_.implicit > 0.0, self.rating_deviation_)
        top = top_items(ranking.scores, rows, n, len(self.item_ids_), seen, self.verbose)
        there, predictions = top >= 0, np.full(top.shape, np.nan)
        predictions[there] = cold_start.margin(np.repeat(rows, there.sum(axis=1)), top[there])
        return self.item_ids_[top], predictions

    def similar_items(self, item: Any, n: int = 10) -> tuple[Array, Array]:
        """Find the ``n`` items most similar to one or several items, with similarities from -1 to 1.

        The similarity is the cosine of the columns of the completed matrix without offsets: it is large if the users
        who rate one item above expectation also rate the other above expectation.
        """
        check_is_fitted(self, "factors_")
        return self._similar("item", item, self.item_ids_, n)

    def similar_users(self, user: Any, n: int = 10) -> tuple[Array, Array]:
        """Find the ``n`` users most similar to one or several users, as in `similar_items`."""
        check_is_fitted(self, "factors_")
        return self._similar("user", user, self.user_ids_, n)

    def _similar(self, name: str, label: Any, ids: Array, n: int) -> tuple[Array, Array]:
        cold_start, model = self._cold_start_model, self.factors_
        lines, own, other = (cold_start.users, model.left, model.right)
        if name == "item":
            lines, own, other = (cold_start.items, model.right, model.left)
        own = own if lines.regression is None else lines.factors[:-1]  # with predictions from features
        n = min(count(f"similar_{name}s(n=...)", n), len(ids) - 1)
        rows = self._find_labels(name, label, ids)
        # Compare rows of own @ other.T, which do not depend on the factorisation.
        values, vectors = np.linalg.eigh(other.T @ other)
        normalized = own @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        lengths = np.linalg.norm(normalized, axis=1, keepdims=True)
        normalized = np.divide(normalized, lengths, out=np.zeros_like(normalized), where=lengths > 0.0)

        def cosines(block: Array) -> Array:
            similarity: Array = normalized[block] @ normalized.T
            similarity[np.arange(len(block)), block] = -np.inf
            return similarity

        top = top_items(cosines, rows, n, len(ids))
        sizes = np.clip(np.sum(normalized[rows][:, None, :] * normalized[top], axis=2), -1.0, 1.0)
        return (ids[top], sizes) if np.ndim(label) else (ids[top[0]], sizes[0])

    def _find_labels(self, name: str, label: Any, ids: Array) -> Array:
        """Return the indices of one or several ids; raise ValueError for an unknown one."""
        labels = check_labels(name, label if np.ndim(label) else [label])
        at = index_labels(ids, labels, name)
        if (at < 0).any():
            way = "`fold_in` takes the ratings of a new user" if name == "user" else "fit it with some ratings first"
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
        """Predict ratings or recommend items for a new user, from some ratings or none.

        Parameters
        ----------
        ratings : mapping, series, pairs or tuple of arrays
            ``{item: rating}``, a series of ratings indexed by items, pairs ``(item, rating)``, or ``(items, ratings)``.
            Unknown items are ignored, but at least one must be known, unless there are no ratings at all. The last
            rating of an item counts.
        user_features : vector or frame with one row, optional
            The features of the user, with the columns of the fit.
        n : int, optional
            The number of items to recommend; by default the predictions of all items are returned.
        exclude_seen, by
            As in `recommend`.

        Returns
        -------
        ndarray or pair of ndarray
            Predictions of all items in the order of ``item_ids_``, from a regression of the user's row on the fixed
            factors of the items; with ``n``, items and predictions as in `recommend`.
        """
        check_is_fitted(self, "factors_")
        items, values = read_user_ratings(ratings)
        table, width = self._check_user_features(user_features), len(self.item_ids_)
        at = index_labels(self.item_ids_, items, "items")
        if len(items) and not (at >= 0).any():
            raise ValueError(
                f"`ratings` must hold an item of the fit, got {shown(items.tolist())}; for a user without ratings give "
                "none, as in `fold_in({})`."
            )
        known, rows = at >= 0, np.zeros(np.count_nonzero(at >= 0), np.int64)
        own = Ratings.of(rows, at[known], values[known], shape=(1, width))
        cold_start = self._fold_in_row(own, table)
        if n is None:
            return self._clip_to_ratings(cold_start.margin(np.zeros(width, np.int64), np.arange(width)))
        seen = own if exclude_seen else None
        return _trim_list(
            *self._recommend_rows(cold_start, np.zeros(1, np.int64), count("fold_in(n=...)", n), seen, by)
        )

    def _check_user_features(self, given: Any) -> FeatureTable | None:
        """Check the features of a new user, and scale them as in the fit."""
        if given is None:
            return None
        if self.user_features_ is None:
            raise ValueError("`user_features` must be left out, since the model was fitted without them.")
        one = given if is_frame(given) or is_sparse(given) else np.atleast_2d(real_array("user_features", given))
        table = self.user_features_.transform("user_features", one)
        if table.shape[0] != 1:
            raise ValueError(f"`user_features` must have one row, that of the user, got {table.shape[0]} rows.")
        return table

    def _fold_in_row(self, ratings: Ratings, table: FeatureTable | None) -> ColdStartModel:
        """Fit the row of a new user, with the columns and the penalty of the model fixed."""
        cold_start, model, counts = self._cold_start_model, self.factors_, self.offset_model_.row_counts
        now = replace(model, lefts=np.zeros((2, model.lefts.shape[1])), rows=np.zeros(1))  # a row of X, one of T
        if not len(ratings):
            return replace(cold_start, model=now, users=cold_start.users.predict_cold(table))
        features, mean = (None if table is None else table.entries, None), float(counts.sum() / len(counts))
        f = CompletionProblem(self._encode_ratings(ratings), self.settings_, features, (mean, None))
        ridge, scale = self.strength_ * relative_ridge(model.sigma, f.p), f.rows[:1] ** 2
        for _ in range(100):  # a few suffice for squares; other losses need a new majorant each time
            last, now = now, update_factors(f, now, 0, ridge, scale)
            if np.allclose(now.left, last.left) and np.allclose(now.rows, last.rows):
                break
        users = replace(cold_start.users.predict_cold(None), cold=np.zeros(1, dtype=bool), offsets=now.rows)
        return replace(cold_start, model=now, users=replace(users, factors=now.left, plain=now.left))

    def _encode_ratings(self, ratings: Ratings) -> Ratings:
        """Encode ratings as targets of the loss; with labels, the larger value becomes 1 and the smaller -1."""
        if not self.loss_.labels:
            return ratings
        (low, high), values = self.rating_range_, ratings.values
        wrong = values[(values != low) & (values != high)]
        if len(wrong) or low == high:
            got = f"{low:g}" if low == high else f"{low:g}, {wrong[0]:g} and {high:g}"
            raise ValueError(
                f"`loss='logistic'` needs ratings of two values, such as 0 and 1, got {got}; use `loss='squared'` for "
                "more."
            )
        return replace(ratings, values=np.where(values == high, 1.0, -1.0))

    # ------------------------------------------------------------ report

    def report(self, X: Any, y: Any = None, k: int = 10, threshold: float | None = None) -> Report:
        """Evaluate the model on held-out ratings: errors, precision, recall and coverage.

        Lists of ``k`` items are made as by `recommend`, without the items that a user has rated in the fit, for known
        users who like an item in ``X``. An item that the fit has not seen counts for the recall, but is in no list.

        Parameters
        ----------
        X, y
            Ratings in any form that `fit` takes.
        k : int
            The length of a list.
        threshold : float, optional
            A rating of at least this says that the user likes the item; by default the mean of the ratings given.
        """
        check_is_fitted(self, "factors_")
        seen, given = self.ratings_, read_ratings(X, y, self.columns)
        (rows, cols), values = self._places(given.users, given.items), given.values
        least = float(values.mean()) if threshold is None else float(threshold)
        at = given.latest()
        at = at[(rows[at] >= 0) & (values[at] >= least)]
        users, lists = np.unique(rows[at], return_inverse=True)
        liked, width, k = np.stack([lists, cols[at]]), len(self.item_ids_), count("report(k=...)", k)
        ranking = Ranking(self._cold_start_model, "likely", self.settings_.implicit > 0.0, self.rating_deviation_)
        counts = self.offset_model_.col_counts.astype(np.float64)
        scores = ranking.scores, lambda rows: np.tile(counts, (len(rows), 1))
        own, popularity = (score_lists(top_items(each, users, k, width, seen), liked, width) for each in scores)
        errors = self._clip_to_ratings(self._cold_start_model.margin(rows, cols)) - values
        sizes = float(np.sqrt(np.mean(errors**2))), float(np.abs(errors).mean())
        return Report(*sizes, *own[:2], *popularity[:2], own[2], k, least, len(values), len(users), self.notes())

    def notes(self) -> tuple[str, ...]:
        """What to know about the model, and what to do about it, in sentences."""
        check_is_fitted(self, "factors_")
        model, notes = self.factors_, []
        if self.relative_gap_ > LARGE_GAP:
            notes.append(
                f"The certified gap is {self.relative_gap_:.0%}: the bound cannot tell how close the model is to the "
                "best one; `certify_to(0.01)` goes on until the gap is proved to be 1 %."
            )
        largest = [float(np.linalg.norm(part, axis=1).max(initial=0.0)) for part in (model.left, model.right)]
        if largest[0] * largest[1] <= NEGLIGIBLE * self.rating_deviation_:
            notes.append(
                "The held-out ratings ask for offsets alone, so that recommendations are the same for everyone, except "
                "for what each has rated already; more ratings for each user, or a given `radius`, make them personal."
            )
        if (zeros := float(np.mean(self.ratings_.values == 0.0))) > IMPLICIT_SHARE:
            notes.append(
                f"{zeros:.0%} of the ratings are zeros, as in implicit feedback: leave the zeros out and set "
                "`implicit=1.0`, which completes which items were chosen, or use `loss='logistic'` for zeros and ones."
            )
        return tuple(notes)


def _trim_list(items: Array, predictions: Array) -> tuple[Array, Array]:
    """The list of a single user, as far as it goes."""
    there = ~np.isnan(predictions[0])
    return items[0, there], predictions[0, there]
