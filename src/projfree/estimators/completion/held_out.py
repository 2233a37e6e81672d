"""Ratings that a fit holds out: to choose the radius, and to stop early."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from projfree.algebra import Pattern
from projfree.checks import Array
from projfree.estimators.completion.choice import WEIGHTS
from projfree.estimators.completion.configured import Configured
from projfree.estimators.completion.convex_problem import ConvexProblem
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.observed import Observed
from projfree.estimators.completion.offset_model import OffsetModel
from projfree.estimators.completion.stopping import Tally
from projfree.estimators.robust import residual_scale, weighted_median
from projfree.losses.squared import is_squared

#: Standard errors by which a matrix must be better than none: it is the best of many that were tried.
CLEAR = 2.0
#: Ratings that differ by less than this are outweighed by the zeros and ones of implicit features, which are left out.
FAINT = 0.05
#: The largest difference of ratings from their base, and one over the smallest.
EXTREME = 1e15
#: The largest weight of implicit features and of features, in squares of what ratings differ by.
OUTWEIGHED = 1e15
#: Where the loss is not that of squares, held-out ratings count as at most so many robust deviations from the base, or
#: a single outlier would be most of an error, next to which no model is better than another.
WILD = 5.0


def _refuse_extreme(values: Array, base: float) -> None:
    """Raise where ratings differ by so little, or so much, that their squares leave the range of single precision."""
    size = float(np.abs(values - base).max(initial=0.0))
    if size > EXTREME or (size < 1.0 / EXTREME and size > 1e-14 * abs(base)):
        raise ValueError(
            f"`ratings` must differ by between {1.0 / EXTREME:g} and {EXTREME:g}, got {size:.3g}; multiply them by a "
            "number."
        )


class KnownPairs(NamedTuple):
    """The pairs that a fit had, by their places in a larger matrix, and which of them it held out, if any."""

    rows: Array
    cols: Array
    held_out: Array | None

    def among(self, ratings: Observed) -> tuple[Array, Array]:
        """Which ratings have a known pair, and which one that was held out."""
        width = 1 + max(int(ratings.cols.max()), int(self.cols.max()))
        keys, own = (np.asarray(part.rows, np.int64) * width + part.cols for part in (ratings, self))
        held = own[:0] if self.held_out is None else own[self.held_out]
        return np.isin(keys, own), np.isin(keys, held)


class HeldOut(Configured):
    """The part of `MatrixCompletion` that divides the ratings and judges models on those held out."""

    early_stopping: bool
    random_state: Any
    held_out_: Array | None
    n_ratings_: int
    offset_model_: OffsetModel
    _tally: Tally
    _seed: int
    _split: tuple[Array, Array]
    #: The range that held-out ratings are judged in.
    _usual: tuple[float, float]

    def _take(self, ratings: Observed, before: KnownPairs | None = None, *, matrix: bool = False) -> None:
        """Keep the ratings, and draw what is random in a fit; what was held out ``before`` stays so.

        Those of a ``matrix`` are drawn in the order of their places, however it is stored.
        """
        self.ratings_, values = ratings, ratings.values
        self.rating_range_ = (float(values.min()), float(values.max()))
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n = len(ratings)
        order = np.arange(n) if not matrix else Pattern.sorted_pairs(ratings.rows, ratings.cols, self._shape)[0]
        self._split = self._drawn(order) if before is None else self._extended(ratings, before)
        self.held_out_ = np.isin(np.arange(n), self._split[1]) if self.early_stopping and n > 1 else None
        training = self._training()
        self.base_ = self._centre(training)
        self._usual = self._usual_range(training)
        _refuse_extreme(values, self.base_)
        usual = np.clip(values, *self._usual)
        self._refuse_outweighed(float(np.abs(usual - self.base_).max()))
        self._tried = WEIGHTS if self.loss_.labels or np.abs(usual - self.base_).max() >= FAINT else (0.0,)
        self.implicit_ = self.weights[0] if len(self.weights) == 1 else 0.0
        self.loss_ = self._scaled_loss(training)
        self.settings_ = replace(self.settings_, loss=self.loss_, base=self.base_)
        self._tally = Tally()
        self.n_ratings_ = len(training)
        self.offset_model_ = OffsetModel.of(self._problem(training).f.entries)

    def _drawn(self, at: Array, least: int = 1) -> tuple[Array, Array]:
        """Some places divided at random: those to fit, and those to hold out, of which there are some at the least."""
        n, order = len(at), np.random.default_rng(self._seed).permutation(len(at))
        out = min(max(int(self.validation_fraction * n), least), n - 1)
        fitted = np.zeros(int(at.max(initial=-1)) + 1, dtype=bool)
        fitted[at[order[out:]]] = True
        kind = np.int32 if len(fitted) < 2**31 else np.int64  # there are as many as ratings
        return np.flatnonzero(fitted).astype(kind), np.sort(at[order[:out]]).astype(kind)

    def _extended(self, ratings: Observed, before: KnownPairs) -> tuple[Array, Array]:
        """The division of ratings of which some were known: these stay on their side, the others are drawn."""
        known, held = before.among(ratings)
        fitted, out = self._drawn(np.flatnonzero(~known), least=0 if held.any() else 1)
        if not held.any() and not len(out):
            return self._drawn(np.arange(len(ratings)))
        return np.union1d(fitted, np.flatnonzero(known & ~held)), np.union1d(out, np.flatnonzero(held))

    def _refuse_outweighed(self, size: float) -> None:
        """Raise where ratings differ by so little that their squares are lost beside those of features."""
        features = any(table is not None for table in self._features)
        named = {"implicit": self.weights[0] if len(self.weights) == 1 else 0.0}
        named["features_weight"] = float(self.features_weight) if features else 0.0
        for name, weight in named.items():
            if not self.loss_.labels and size > 1e-14 * abs(self.base_) and weight > OUTWEIGHED * size**2:
                raise ValueError(
                    f"`MatrixCompletion({name}=...)` must be at most {OUTWEIGHED:g} times the square of what ratings "
                    f"differ by, got {weight:g} where they differ by {size:.3g}; multiply the ratings by a number."
                )

    def _centre(self, ratings: Observed) -> float:
        """The base of the offsets: the mean of ratings, their median where the loss is robust, zero without offsets."""
        if self.loss_.labels or not self.settings_.kinds[0]:
            return 0.0
        if is_squared(self.loss_):
            return float(np.average(ratings.values, weights=ratings.weight))
        return weighted_median(ratings.values, ratings.weight)

    def _usual_range(self, ratings: Observed) -> tuple[float, float]:
        """The range of ratings that are no outliers: all for squares, which do not know any."""
        if self.loss_.labels or is_squared(self.loss_):
            return -math.inf, math.inf
        values, weight = ratings.values, ratings.weight
        centre, far = weighted_median(values, weight), WILD * residual_scale(values, weight)
        return centre - far, centre + far

    def _training(self) -> Observed:
        """The ratings that the model is fitted to: all but those held out to stop early."""
        return self.ratings_ if self.held_out_ is None else self.ratings_.part(~self.held_out_)

    def _judged(self, model: Factors) -> float:
        """The score of a model on the ratings held out."""
        return -self._error(model, self._split[1])

    def _judge(self, problem: ConvexProblem) -> Any:
        return lambda run: self._judged(self._in_the_ball(problem, Factors.of(problem.f, run.state)))

    def _in_the_ball(self, problem: ConvexProblem, model: Factors) -> Factors:
        """The model as it is kept: sweeps may lie outside a ball that is given."""
        return model if self.radius is None else model.inside(problem.p, float(self.radius))

    def _error(self, model: Factors, part: Array) -> float:
        """The error on some ratings: the root of the mean loss, or the mean loss where ratings are labels."""
        error = float(np.average(self._losses(model, part), weights=self.ratings_.part(part).weight))
        return error if self.loss_.labels else math.sqrt(error)

    def _losses(self, model: Factors, part: Array) -> Array:
        """The losses of predictions of some ratings, with outliers drawn in where the loss is robust."""
        held = self.ratings_.part(part)
        u = model.margin(held.rows, held.cols)
        if self.loss_.labels:
            return self.loss_.value(u, self._targets(held.values))
        return self.loss_.value(np.clip(u, *self.rating_range_), np.clip(held.values, *self._usual))

    def _clearly_better(self, one: Factors, other: Factors) -> bool:
        """Whether the ratings held out like a model better than another one by a few standard errors."""
        part = self._split[1]
        gain, weight = self._losses(other, part) - self._losses(one, part), self.ratings_.part(part).weight
        s = np.full(len(gain), 1.0 / len(gain)) if weight is None else weight / max(float(weight.sum()), 1e-300)
        mean = float(s @ gain)
        return mean > CLEAR * math.sqrt(float(s**2 @ (gain - mean) ** 2))
