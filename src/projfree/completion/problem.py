r"""The convex problem of matrix completion, as a smooth function over a plain Schatten ball.

.. math:: \min_{\|Y\|_{S_p} \le r} F(D_r^{-1} Y D_c^{-1}), \qquad M = D_r^{-1} Y D_c^{-1} =
          \begin{pmatrix} X & S \\ T & \cdot \end{pmatrix}

where F is the mean loss at the observed entries of X, minimised over the offsets (`bias_terms`), plus the squared loss
of side information in S and T (`side_information`). The diagonal weights D are smoothed relative frequencies of rows
and columns to the power 1/4, and one for the rows of T and columns of S. Without weights, frequent
rows and columns would be penalised no more than rare ones.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from projfree.algebra import UNIT, FactoredShape, LowRank, Minorant, OnPattern, Point
from projfree.algebra.hashing import short_hash
from projfree.checks import Array
from projfree.completion.bias_terms import ObservedLoss
from projfree.completion.ratings import Ratings
from projfree.completion.side_information import BlockMatrix, Features, SideInformation
from projfree.data.local import checked_weights
from projfree.losses.base import Loss
from projfree.objectives.base import CalledFunction, Evaluation, FunctionStructure
from projfree.objectives.hull import Hull
from projfree.sets import SchattenBall

#: Power of the frequencies: half of that of the weighted trace norm of Salakhutdinov and Srebro (2010).
FREQUENCY_POWER = 0.25
#: Radius used for a zero matrix, for ratings of unit magnitude, because a ball needs a positive one.
MIN_RADIUS = 1e-8


@dataclass(frozen=True)
class Settings:
    """Parameters of the problem: all that defines it besides ratings and features."""

    loss: Loss
    p: float
    ridge: float
    kinds: tuple[bool, bool, bool]
    base: float = 0.0
    implicit: float = 0.0


class CompletionProblem(CalledFunction):
    """Objective of matrix completion as a function of the weighted matrix Y.

    The values of ``ratings`` are targets of the loss. Frequencies are relative to ``mean_counts``, by default the mean
    numbers of ratings per row and per column.
    """

    def __init__(
        self,
        ratings: Ratings,
        settings: Settings,
        features: Features = (None, None),
        mean_counts: tuple[float | None, float | None] = (None, None),
    ) -> None:
        pattern, y = ratings.pattern, settings.loss.targets(ratings.values)
        weight = checked_weights(ratings.weight, len(y))
        given: dict[str, Any] = {"ridge": settings.ridge, "kinds": settings.kinds, "base": settings.base}
        self.entries = ObservedLoss(pattern, y, weight, settings.loss, **given)
        self.counts = np.diff(pattern.indptr), np.bincount(pattern.indices, minlength=pattern.shape[1])
        self.settings, self.p = settings, settings.p
        self._weights = [frequency_weights(*each) for each in zip(self.counts, mean_counts, strict=True)]
        # Users and items without ratings are not part of the problem; features predict their factors afterwards.
        users, items = (_zero_unrated(table, count > 0) for table, count in zip(features, self.counts, strict=True))
        self._set_side_information(settings.implicit, (users, items))

    def _set_side_information(self, implicit: float, features: Features) -> None:
        self.implicit, self.features, n = implicit, features, self.entries.n
        self.side = SideInformation(self.entries.pattern, implicit / n, features, 1.0 / n)
        (m, k), (below, beside) = self.entries.pattern.shape, self.side.extra
        self.rows, self.cols = np.append(self._weights[0], np.ones(below)), np.append(self._weights[1], np.ones(beside))
        lowest = self.entries.loss.lower_bound  # squares are not negative
        structure = FunctionStructure("CompletionProblem", predictions=False, least=lowest)
        super().__init__(FactoredShape((m + below, k + beside)), structure)

    def with_implicit(self, weight: float) -> Self:
        """Return the problem of the same ratings with another weight of implicit features."""
        f = copy(self)
        f._set_side_information(weight, self.features)
        return f

    def ball(self, radius: float) -> SchattenBall:
        """Return the ball of a radius, in the coordinates of Y."""
        return SchattenBall(self.p, radius)

    @property
    def n(self) -> int:
        """The number of ratings."""
        return self.entries.n

    @property
    def min_radius(self) -> float:
        """The radius used for a zero matrix."""
        return MIN_RADIUS * self.entries.unit

    def _evaluate(self, x: Point, tangent: bool) -> Evaluation:
        self._calls += 1
        w: Any = x.w
        left, right = w.low.scaled(1.0 / self.rows, 1.0 / self.cols).factors()
        (m, n), entries = self.entries.pattern.shape, self.entries
        u = LowRank.of(left[:m], right[:n]).on_places(entries.pattern)
        b = entries.best_offsets(u, x.intercept)
        if not tangent:
            return Evaluation(x.alone(b), entries.value(u, b) + self.side.value(left, right))
        own = entries.tangent(u, b)
        value, constant, residuals, error, gradient_error = own
        gradient: Any = OnPattern(entries.pattern, residuals)
        if self.side.any:
            squares = self.side.tangent(left, right)
            value, constant = value + squares.value, constant + squares.constant
            error += squares.constant_error + 2.0 * UNIT * abs(constant)
            gradient_error += squares.gradient_error
            S, T = self.side.gradients_at_zero
            gradient = BlockMatrix(self.shape, [(gradient, 0, 0), (S, 0, n), (T, m, 0)]) + squares.gradient
        gradient = gradient.scaled(1.0 / self.rows, 1.0 / self.cols)
        grown = 1.0 / float(self.rows.min() * self.cols.min())
        # The scaling rounds each entry of both parts four times.
        gradient_error = gradient_error * grown * (1.0 + 8.0 * UNIT) + 8.0 * UNIT * gradient.scale
        return Evaluation(x.alone(b), value, Minorant(constant, gradient, error, gradient_error))

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None) -> Hull:
        raise TypeError("CompletionProblem has no line searches; use `CompletionProblem.solver`.")

    def smoothness(self) -> float:
        # The curvature of each entry of X, S and T; minimising over the offsets only reduces that of X.
        own = self.entries.loss.smoothness * float(np.max(self.entries.s))
        beside = [2.0 * float(q.max(initial=0.0)) for q in self.side.weights]
        return max(own, *beside) / float(self.rows.min() * self.cols.min()) ** 2

    @property
    def solver(self) -> Any:
        """The solver that `certify_to` uses to reduce the gap."""
        from projfree.solvers import AcceleratedProjectedGradient
        from projfree.steps import BacktrackingGradient

        return AcceleratedProjectedGradient(BacktrackingGradient())

    def fingerprint(self) -> str:
        at, e = self.entries.pattern, self.entries
        data = short_hash(f"{tuple(at.shape)}", at.indptr, at.indices, e.y, e.weight)
        settings = f"{e.loss!r} ridge={e.ridge!r} {e.kinds} base={e.base!r} p={self.p!r}"
        return f"{settings} {data} {self.side.fingerprint()}"


def frequency_weights(counts: Array, mean: float | None = None) -> Array:
    """Return relative frequencies, smoothed by a tenth of their mean, to the power 1/4."""
    mean = max(float(counts.mean()) if mean is None else mean, 1e-300)
    weights: Array = ((0.9 * counts + 0.1 * mean) / mean) ** FREQUENCY_POWER
    return weights


def _zero_unrated(table: OnPattern | None, rated: Array) -> OnPattern | None:
    """Set the features of users or items without ratings to zero."""
    if table is None or rated.all():
        return table
    return OnPattern(table.pattern, table.values * rated[table.pattern.rows])
