"""The best ridge regression of a loss that is not quadratic, where there are many rows for each parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.estimators.left_out import scale_of
from projfree.estimators.ridge_models import EigenModel
from projfree.objectives import Objective
from projfree.objectives.evaluation import Bend, Evaluation

#: The most steps, and the part of the norm at which they end.
STEPS, CLOSE = 10, 0.03
#: The least share of the curvature where a matrix was formed that steps with it count on.
LEAST_BEND = 0.05
#: The largest factor from one step to the next by which the rest is added; where steps that are at least this part of
#: the norm shorten by no more, another matrix is formed.
FASTEST, FAR = 0.5, 0.1
#: Values that differ by this part are equal; a step to a larger one is made so many times shorter.
SETTLED, SHORTER = 1e-2, 4.0


@dataclass(frozen=True, eq=False)
class Near:
    """A quadratic model at a place, with the matrix of this place or of an earlier one times a number.

    Attributes
    ----------
    at : Evaluation
        Where the matrix was formed.
    bent : Bend
        The matrix, and how the intercept follows.
    bend : float
        The mean curvature there.
    model : EigenModel
        Of the objective at the place.
    cost : float
        What a degree of freedom costs there, about: the mean of squared derivatives over that of curvatures, over n.
    b : ndarray
        Minus the slope of the model of that place at zero.
    stretch : float
        The number.
    """

    at: Evaluation
    bent: Bend
    bend: float
    model: EigenModel
    cost: float
    b: Array
    stretch: float = 1.0

    @classmethod
    def of(cls, f: Objective, here: Evaluation, n: float) -> Near:
        """The model with the matrix of the place."""
        bent = f.bend(here.point)
        slopes, bend = scale_of(f, here.point, here.point.intercept)
        g = reduced(here, bent)
        b = np.asarray(bent.H @ here.point.w.ravel()).reshape(g.shape) - g
        return cls(here, bent, bend, EigenModel(bent.H, b), slopes / bend / n if bend > 0.0 else 0.0, b)

    def moved(self, f: Objective, here: Evaluation, n: float) -> Near:
        """The model at another place, with the same matrix times the ratio of mean curvatures."""
        slopes, now = scale_of(f, here.point, here.point.intercept)
        stretch = max(now / self.bend, LEAST_BEND)
        model = self.model.moved(stretch / self.stretch, here.point.w, reduced(here, self.bent))
        return replace(self, model=model, cost=slopes / (stretch * self.bend) / n, stretch=stretch)

    def answer(self) -> Array:
        """The minimiser with the penalty that should predict best."""
        return self.model.point(float(self.model.penalties[self.model.expected(self.cost)]))

    def followed(self, f: Objective, here: Evaluation, w: Array) -> Point:
        """``w`` with the intercept that follows it: a coordinate as the others are, which is not searched for."""
        b, bent = here.point.intercept, self.bent
        if b is None or bent.follow is None or bent.inverse is None:
            return f.point(w, b)
        shift = -(w - here.point.w).ravel() @ bent.follow
        rest = 0.0 if here.rest is None else bent.inverse @ here.rest / self.stretch
        return f.point(w, b + (shift - rest).reshape(b.shape))


def reduced(here: Evaluation, bent: Bend) -> Array:
    """The gradient where the intercept has moved to its minimum, by the model."""
    g: Array = here.slope.gradient
    return g if here.rest is None or bent.follow is None else g - (bent.follow @ here.rest).reshape(g.shape)


def followed_ridge(f: Objective, first: Evaluation, n: float, *, fresh: bool = False) -> tuple[Array, Near]:
    """Coefficients and a model, by a few steps with few matrices; the penalty is chosen anew at each.

    The penalty hardly matters there unless features are alike, and neither do the last digits of the norm. Another
    matrix is formed where steps hardly shorten, at each step after one that went too far, and at the end if it is to be
    ``fresh``.
    """
    near, here, last, left, failed = Near.of(f, first, n), first, math.inf, np.zeros(f.shape), False
    w = near.answer()
    for _ in range(STEPS if near.bend > 0.0 else 0):
        there = f.evaluate_near(near.followed(f, here, w))
        settled = abs(there.value - here.value) <= SETTLED * abs(here.value)
        if not there.value < here.value:
            left, failed = np.zeros(f.shape), True
            if settled and here is not first:
                break
            if near.at is here:
                w = here.point.w + (w - here.point.w) / SHORTER
                continue
            near, last = Near.of(f, here, n), math.inf
            w = near.answer()
            continue
        moved = there.point.w - here.point.w
        here, length, size = there, float(np.linalg.norm(moved)), float(np.linalg.norm(there.point.w))
        rate, last = min(length / last, FASTEST), length
        left = rate / (1.0 - rate) * moved  # of steps that go on to shorten by the same factor
        if length <= CLOSE * size and settled:
            break
        slow = failed or (rate == FASTEST and length > FAR * size)
        near, last = (Near.of(f, here, n), math.inf) if slow else (near.moved(f, here, n), last)
        w = near.answer()
    if fresh and near.at is not here:
        near = Near.of(f, here, n)
    return (w if here is first else here.point.w + left), near
