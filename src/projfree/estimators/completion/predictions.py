"""What a fitted completion predicts, and how well."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.labels import places
from projfree.estimators.completion.ratings import Observed, Ratings, read_ratings
from projfree.losses.base import Loss


class Predictor:
    """Ratings of pairs, and their errors."""

    factors_: Factors
    user_ids_: Array
    item_ids_: Array
    ratings_: Observed
    rating_range_: tuple[float, float]
    loss_: Loss
    clip: bool
    columns: Any

    def decision_function(self, X: Any) -> Array:
        """The model at pairs, before clipping; for the logistic loss the log-odds."""
        check_is_fitted(self, "factors_")
        return self.factors_.margin(*self._places(read_ratings(X, None, self.columns, values=False)))

    def predict(self, X: Any) -> Array:
        """Ratings of pairs ``(user, item)``; for the logistic loss the more likely of the two labels.

        A user or item that was never seen has no offset and no factors: its prediction falls back to what is known.
        """
        return self._as_ratings(self.decision_function(X))

    def _as_ratings(self, u: Array) -> Array:
        """What is predicted where the model has these values."""
        if self.loss_.labels:
            low, high = self.rating_range_
            return np.where(u >= 0.0, high, low)
        return np.clip(u, *self.rating_range_) if self.clip else u

    def _places(self, pairs: Ratings) -> tuple[Array, Array]:
        """Rows and columns of pairs, -1 for what was never seen."""
        return places(self.user_ids_, pairs.users, "users"), places(self.item_ids_, pairs.items, "items")

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

    def _need_ratings(self, call: str, way: str) -> Observed:
        """The ratings of the fit, which a model may have been saved without."""
        check_is_fitted(self, "factors_")
        if not hasattr(self, "ratings_"):
            raise ValueError(f"`{call}` needs the ratings, which were left out when the model was saved; {way}.")
        return self.ratings_
