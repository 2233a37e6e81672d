"""What a fitted completion recommends: items for users, what is similar, and how good the lists are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array, count, shown
from projfree.estimators.completion.fold_in import FoldIn
from projfree.estimators.completion.labels import labels_of, places
from projfree.estimators.completion.ranking import alike, ranked
from projfree.estimators.completion.ratings import read_ratings
from projfree.estimators.completion.report import Report, judged


class Recommender(FoldIn):
    """The part of `MatrixCompletion` that needs no solver."""

    def recommend(self, user: Any, n: int = 10, exclude_seen: bool = True) -> tuple[Array, Array]:
        """The ``n`` items with the highest predictions for a user or for several, and the predictions, before clipping.

        Parameters
        ----------
        user : label or sequence of labels
            One user of the fit, or several.
        n : int
            How many items.
        exclude_seen : bool
            Whether items that the user has rated are left out.

        Returns
        -------
        items, scores : ndarray
            Of length ``n``, or fewer where nothing else is left. For several users of shape ``(n_users, n)``: a row
            that ends early goes on with scores that are NaN, beside items that mean nothing.
        """
        check_is_fitted(self, "factors_")
        seen = self._need_ratings("recommend", "use `exclude_seen=False`") if exclude_seen else None
        rows = self._known("user", user, self.user_ids_, "for a new one use `fold_in` with some ratings")
        blocks = ranked(self._completed, rows, count("recommend(n=...)", n), seen)
        top, scores = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        if np.ndim(user):
            return self.item_ids_[top], scores
        there = ~np.isnan(scores[0])
        return self.item_ids_[top[0, there]], scores[0, there]

    def similar_items(self, item: Any, n: int = 10) -> tuple[Array, Array]:
        """The ``n`` items most like an item, or like each of several, and how much: from 1, alike, to -1, opposite.

        The similarity is the cosine of the items' columns of the completed matrix without offsets: who likes one
        more than is usual for user and item likes the other too.
        """
        check_is_fitted(self, "factors_")
        f = self.factors_
        return self._similar("item", item, self.item_ids_, f.right, f.left, n)

    def similar_users(self, user: Any, n: int = 10) -> tuple[Array, Array]:
        """The ``n`` users most like a user, or like each of several, and how much, as in `similar_items`."""
        check_is_fitted(self, "factors_")
        f = self.factors_
        return self._similar("user", user, self.user_ids_, f.left, f.right, n)

    def _similar(self, name: str, label: Any, ids: Array, table: Array, other: Array, n: int) -> tuple[Array, Array]:
        count(f"similar_{name}s(n=...)", n)
        top, cosines = alike(table, other, self._known(name, label, ids, "fit it with some ratings first"), n)
        return (ids[top], cosines) if np.ndim(label) else (ids[top[0]], cosines[0])

    def _known(self, name: str, label: Any, ids: Array, way: str) -> Array:
        """The places of one or several labels, all of which must be there."""
        labels = labels_of(name, label if np.ndim(label) else [label])
        at = places(ids, labels, name)
        if (at < 0).any():
            raise ValueError(f"`{name}` must be in the fit, got {shown(labels[at < 0][0])}; {way}.")
        return at

    def report(self, X: Any, y: Any = None, k: int = 10, threshold: float | None = None) -> Report:
        """Errors, precision, recall and coverage on ratings that were held out.

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
        assert given.values is not None
        (rows, cols), values = self._places(given), given.values
        least = float(values.mean()) if threshold is None else float(threshold)
        at = given.last()
        at = at[(rows[at] >= 0) & (values[at] >= least)]
        users, lists = np.unique(rows[at], return_inverse=True)
        liked = np.stack([lists, cols[at]])
        found = judged(ranked(self._completed, users, count("report(k=...)", k), seen), liked, len(self.item_ids_))
        errors = self._as_ratings(self._completed.margin(rows, cols)) - values
        sizes = float(np.sqrt(np.mean(errors**2))), float(np.abs(errors).mean())
        return Report(*sizes, *found, k=k, threshold=least, n_ratings=len(values), n_users=len(users))
