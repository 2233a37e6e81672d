"""The settings of a completion: what they may be, and the convex problem that they make of ratings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from projfree.checks import Array, at_least, count, positive, shown
from projfree.estimators.completion.choice import WEIGHTS
from projfree.estimators.completion.convex_problem import ConvexProblem, SweepSettings
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.features import FeatureTable
from projfree.estimators.completion.observed import Observed
from projfree.estimators.robust import HUBER, residual_scale
from projfree.losses import Huber, Logistic, Loss, Squared
from projfree.objectives.neighbours import Features
from projfree.solvers.alternating import offsets_alone

LOSSES = {"squared": Squared, "huber": Huber, "logistic": Logistic}


def three(values: Any, *kinds: type) -> bool:
    """Whether there are three values of such kinds, in a tuple or a list."""
    return isinstance(values, tuple | list) and len(values) == 3 and all(isinstance(value, kinds) for value in values)


def _from_zero(name: str, value: Any) -> None:
    """Raise where a number is negative or infinite."""
    if at_least(name, value, 0.0) == np.inf:
        raise ValueError(f"`{name}` must be finite, got {shown(value)}.")


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
    #: What weights of implicit features are multiplied by; several models differ in it.
    _spread: float = 1.0
    #: The weights that are tried by default.
    _tried: tuple[float, ...] = WEIGHTS

    def _checked(self) -> None:
        if at_least("MatrixCompletion(p=...)", self.p, 1.0) >= 2.0:
            raise ValueError(
                f"`MatrixCompletion(p=...)` must be below 2, got {shown(self.p)}: beyond, the answer says nothing "
                "about entries that were not observed; `minimize` over a SchattenBall solves it."
            )
        if self.radius is not None:
            positive("MatrixCompletion(radius=...)", self.radius)
        positive("MatrixCompletion(ridge=...)", self.ridge)
        positive("MatrixCompletion(features_weight=...)", self.features_weight)
        if not isinstance(self.implicit, str):
            _from_zero("MatrixCompletion(implicit=...)", self.implicit)
        elif self.implicit != "auto":
            raise ValueError(
                f"`MatrixCompletion(implicit=...)` must be 'auto' or a weight, 0 for none, got {shown(self.implicit)}."
            )
        _from_zero("MatrixCompletion(weight_power=...)", self.weight_power)
        if self.tol is not None:
            _from_zero("MatrixCompletion(tol=...)", self.tol)
        self._check_tuples()
        for name in (
            "rank",
            "n_models",
            "max_iter",
            "n_iter_no_change",
            *(() if self.max_sweeps is None else ("max_sweeps",)),
        ):
            count(f"MatrixCompletion({name}=...)", getattr(self, name))
        share = positive("MatrixCompletion(validation_fraction=...)", self.validation_fraction)
        if share >= 1.0:
            raise ValueError(f"`MatrixCompletion(validation_fraction=...)` must be below 1, got {shown(share)}.")
        if self.certify not in (True, False, "sharp"):
            raise ValueError(f"`MatrixCompletion(certify=...)` must be a bool or 'sharp', got {shown(self.certify)}.")
        if self.time_limit is not None:
            positive("MatrixCompletion(time_limit=...)", self.time_limit)
        self.loss_ = self._make_loss()

    def _check_tuples(self) -> None:
        if not isinstance(self.offsets, bool) and not three(self.offsets, bool):
            raise ValueError(
                "`MatrixCompletion(offsets=...)` must be a bool or three: for all, for each user, for each item; got "
                f"{shown(self.offsets)}."
            )
        if not three(self.columns, str, int):
            raise ValueError(
                "`MatrixCompletion(columns=...)` must be the names of three columns, of users, items and ratings, got "
                f"{shown(self.columns)}."
            )

    def _make_loss(self) -> Loss:
        if isinstance(self.loss, Loss):
            return self.loss
        if self.loss not in LOSSES:
            raise ValueError(
                f"`MatrixCompletion(loss=...)` must be one of {', '.join(LOSSES)}, got {shown(self.loss)}."
            )
        made: Loss = LOSSES[self.loss]()
        return made

    def _scaled_loss(self) -> Loss:
        """The loss with the scale that the ratings ask for."""
        if not isinstance(self.loss, str) or self.loss != "huber" or not isinstance(self.loss_, Huber):
            return self.loss_
        values, weight = self.ratings_.values, self.ratings_.weight
        self.loss_ = Huber(HUBER * residual_scale(values, weight))
        e, ratings = self._problem(self.ratings_).f.entries, self.ratings_
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
        given = self._tried if isinstance(self.implicit, str) else (float(self.implicit),)
        return tuple(self._spread * weight for weight in given)

    def _problem(
        self,
        ratings: Observed,
        shape: tuple[int, int] | None = None,
        features: Features | None = None,
        total: float | None = None,
    ) -> ConvexProblem:
        """The problem of some ratings: by default of the users and items of the fit, and of their features."""
        given = replace(
            self.settings_,
            loss=self.loss_,
            base=self.base_,
            implicit=self.implicit_,
            features=self._features if features is None else features,
        )
        shape = (len(self.user_ids_), len(self.item_ids_)) if shape is None else shape
        targets = self._targets(ratings.values)
        return ConvexProblem.of(ratings.rows, ratings.cols, targets, ratings.weight, shape, given, total)

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
