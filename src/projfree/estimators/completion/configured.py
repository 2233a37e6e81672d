"""The settings of a completion: what they may be, and the convex problem that they make of ratings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.completion.alternating import offsets_alone
from projfree.completion.side_information import Features
from projfree.estimators.completion.choice import WEIGHTS
from projfree.estimators.completion.convex_problem import ConvexProblem, SweepSettings
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.features import FeatureTable
from projfree.estimators.completion.observed import Observed
from projfree.estimators.completion.settings import check_settings
from projfree.estimators.robust import HUBER, residual_scale
from projfree.losses import Huber, Logistic, Loss, Squared

LOSSES = {"squared": Squared, "huber": Huber, "logistic": Logistic}


class Configured:
    """The part of `MatrixCompletion` that checks its settings and states the problem."""

    p: Any
    radius: float | None
    loss: Any
    offsets: Any
    ridge: float
    implicit: Any
    weight_power: float
    features_weight: float
    max_sweeps: int | None
    tol: float | None
    columns: Any
    certify: Any
    validation_fraction: float
    time_limit: float | None
    loss_: Loss
    settings_: SweepSettings
    user_ids_: Array
    item_ids_: Array
    ratings_: Observed
    rating_range_: tuple[float, float]
    base_: float
    user_features_: FeatureTable | None
    item_features_: FeatureTable | None
    implicit_: float
    #: The weights that are tried by default.
    _tried: tuple[float, ...] = WEIGHTS

    def _checked(self) -> None:
        check_settings(self)
        self.loss_ = self._make_loss()

    def _make_loss(self) -> Loss:
        if isinstance(self.loss, Loss):
            return self.loss
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise ValueError(
                f"`MatrixCompletion(loss=...)` must be one of {', '.join(LOSSES)}, got {shown(self.loss)}."
            )
        made: Loss = LOSSES[self.loss]()
        return made

    def _scaled_loss(self, ratings: Observed) -> Loss:
        """The loss with the scale that some ratings ask for."""
        if not isinstance(self.loss, str) or self.loss != "huber" or not isinstance(self.loss_, Huber):
            return self.loss_
        values, weight = ratings.values, ratings.weight
        self.loss_ = Huber(HUBER * residual_scale(values, weight))
        e = self._problem(ratings).f.entries
        offsets = Factors.of_sides(e, offsets_alone(e), np.zeros(1)).margin(ratings.rows, ratings.cols)
        return Huber(HUBER * residual_scale(values - offsets, weight))

    def _asked_settings(self) -> SweepSettings:
        """What the parameters say of the problem; a model keeps it, because parameters may be changed after a fit."""
        every, users, items = (self.offsets,) * 3 if isinstance(self.offsets, bool) else self.offsets
        return SweepSettings(
            loss=self.loss_,
            p=self._exponent,
            power=float(self.weight_power),
            ridge=float(self.ridge),
            kinds=(bool(every), bool(users), bool(items)),
            base=vars(self).get("base_", 0.0),
            features_weight=float(self.features_weight),
        )

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of implicit features to choose from."""
        return self._tried if isinstance(self.implicit, str) else (float(self.implicit),)

    def _problem(
        self, ratings: Observed, shape: tuple[int, int] | None = None, features: Features | None = None
    ) -> ConvexProblem:
        """The problem of some ratings: by default of the users and items of the fit, and of their features."""
        given = replace(
            self.settings_,
            loss=self.loss_,
            base=self.base_,
            implicit=self.implicit_,
            features=self._features if features is None else features,
        )
        shape = self._shape if shape is None else shape
        targets = self._targets(ratings.values)
        return ConvexProblem.of(ratings.rows, ratings.cols, targets, ratings.weight, shape, given)

    @property
    def _shape(self) -> tuple[int, int]:
        """The numbers of users and of items."""
        return len(self.user_ids_), len(self.item_ids_)

    @property
    def _features(self) -> Features:
        """The features of users and of items, where there are some."""
        user, item = (None if table is None else table.on for table in (self.user_features_, self.item_features_))
        return user, item

    @property
    def _exponent(self) -> float:
        """The exponent of the norm."""
        return float(self.p)

    def _targets(self, values: Array) -> Array:
        """The ratings as the loss wants them: of two values the higher one becomes 1 and the lower one -1."""
        if not self.loss_.labels:
            return values
        low, high = self.rating_range_
        wrong = values[(values != low) & (values != high)]
        if len(wrong) or low == high:
            got = f"{low:g}" if low == high else f"{low:g}, {wrong[0]:g} and {high:g}"
            raise ValueError(
                f"`loss={shown(self.loss)}` needs ratings of two values, such as 0 and 1, got {got}; use "
                "`loss='squared'` for more."
            )
        return np.where(values == high, 1.0, -1.0)
