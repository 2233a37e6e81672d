"""What a fitted completion predicts, and how well."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array
from projfree.completion.side_information import Features
from projfree.estimators.completion.cold import Completed
from projfree.estimators.completion.convex_problem import SweepSettings
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.labels import places
from projfree.estimators.completion.observed import Observed
from projfree.estimators.completion.offset_model import OffsetModel
from projfree.estimators.completion.ratings import GivenRatings, read_ratings
from projfree.losses.base import Loss


class Predictor:
    """Ratings of pairs, and their errors."""

    factors_: Factors
    offset_model_: OffsetModel
    settings_: SweepSettings
    _features: Features
    _last_completed: Completed
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
        return self._completed.margin(*self._places(read_ratings(X, None, self.columns, values=False)))

    def predict(self, X: Any) -> Array:
        """Ratings of pairs ``(user, item)``; for the logistic loss the more likely of the two labels.

        Where a user or an item has no ratings, or was never seen, the prediction is that of the best offsets without a
        matrix, and of what features say.
        """
        return self._as_ratings(self.decision_function(X))

    @property
    def _completed(self) -> Completed:
        """The model in which nobody is missing; it is made once for factors."""
        made = vars(self).get("_last_completed")
        if made is None or made.model is not self.factors_ or made.offsets is not self.offset_model_:
            made = Completed.of(self.factors_, self.offset_model_, self._features, self.settings_.ridge)
            self._last_completed = made
        return made

    def _as_ratings(self, u: Array) -> Array:
        """What is predicted where the model has these values."""
        if self.loss_.labels:
            low, high = self.rating_range_
            return np.where(u >= 0.0, high, low)
        return np.clip(u, *self.rating_range_) if self.clip else u

    def _places(self, pairs: GivenRatings) -> tuple[Array, Array]:
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
