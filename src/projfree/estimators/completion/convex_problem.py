"""The convex problem of some ratings: objective and ball, and the sweeps that run on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from projfree.checks import Array
from projfree.completion.alternating import (
    Alternating,
    AlternatingState,
    Sweepable,
    balanced,
    least_strength,
    strongest,
    unit_of,
)
from projfree.completion.implicit import ImplicitObjective
from projfree.completion.offsets import OffsetObjective
from projfree.completion.side_information import Features
from projfree.data import Entries
from projfree.data.entries import FactoredEntriesData
from projfree.deadline import ignore_deadline
from projfree.estimators.completion.factors import Factors
from projfree.losses.base import Loss
from projfree.run import Status
from projfree.run.callbacks import Callback
from projfree.run.loop import Run, run_steps
from projfree.runtime import single_blas
from projfree.sets import WeightedSchattenBall

if TYPE_CHECKING:
    from projfree.run.checkpoint import SavedRun

#: The radius of an answer without a matrix, for ratings of the unit.
LEAST_RADIUS = 1e-8


@dataclass(frozen=True)
class SweepSettings:
    """What determines the problem besides the ratings."""

    loss: Loss
    p: float
    power: float
    ridge: float
    kinds: tuple[bool, bool, bool]
    base: float
    implicit: float = 0.0
    features: Features = (None, None)
    features_weight: float = 1.0


class Swept(NamedTuple):
    """Where some sweeps have ended, and why."""

    state: AlternatingState
    status: Status

    def uninterrupted(self) -> Swept:
        """Itself, for who keeps nothing of sweeps that were interrupted; raises where these were."""
        if self.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self


@dataclass(frozen=True, eq=False)
class ConvexProblem:
    """An objective on observed entries and the ball of its weighted norm, of any radius."""

    f: Sweepable
    unit: WeightedSchattenBall
    features: Features = (None, None)
    features_weight: float = 1.0

    @classmethod
    def of(
        cls, rows: Array, cols: Array, values: Array, weight: Array | None, shape: tuple[int, int], given: SweepSettings
    ) -> ConvexProblem:
        """The problem of some ratings, of different pairs."""
        data = FactoredEntriesData(Entries(rows, cols, shape, factored=True), given.loss.targets(values), weight)
        counts = np.diff(data.pattern.indptr), np.bincount(data.pattern.indices, minlength=shape[1])
        weights = [frequency_weights(count.astype(np.float64), given.power) for count in counts]
        f = OffsetObjective(given.loss, data, given.ridge, given.kinds, given.base)
        plain = cls(f, WeightedSchattenBall(given.p, 1.0, *weights), given.features, given.features_weight)
        return plain.with_implicit(given.implicit)

    def with_implicit(self, weight: float) -> ConvexProblem:
        """The problem of the same ratings with another weight of what was rated; the norm does not weigh that."""
        f, (m, n) = self.f.entries, self.f.entries.shape
        rows, cols = self.unit.rows[:m], self.unit.cols[:n]
        features = self.features, self.features_weight
        if not weight and self.features == (None, None):
            return ConvexProblem(f, WeightedSchattenBall(self.p, 1.0, rows, cols), *features)
        stacked = ImplicitObjective(f, weight, *features)
        rows, cols = np.append(rows, np.ones(stacked.shape[0] - m)), np.append(cols, np.ones(stacked.shape[1] - n))
        return ConvexProblem(stacked, WeightedSchattenBall(self.p, 1.0, rows, cols), *features)

    @property
    def p(self) -> float:
        """The exponent of the norm."""
        return self.unit.p

    def ball(self, radius: float) -> WeightedSchattenBall:
        """The ball of a radius."""
        return self.unit.resized(radius)

    def reach(self, strength: float) -> WeightedSchattenBall:
        """A ball that holds the minimiser with a penalty: the penalty there is at most the loss at zero."""
        total = self.f.entries.data.n * (self.f.entries.value_without_offsets + self.f.known)
        return self.ball(max(0.5 * self.p * total / strength, self.least_radius))

    @property
    def least_radius(self) -> float:
        """The radius of an answer without a matrix."""
        return LEAST_RADIUS * unit_of(self.f.entries)

    def strongest(self) -> float:
        """The strength from which on the matrix is zero for p = 1."""
        return strongest(self.f, self.unit)

    def strength_of(self, model: Factors) -> float:
        r"""The strength of the penalty that a minimiser over the ball of its norm has.

        With the gradient G of the mean over n ratings its matrix has
        :math:`-n \langle G, X\rangle = 2 \lambda \|Y\|_{S_p}^p`, see `Alternating`.
        """
        f, powers = self.f.open(), float(np.sum(model.sigma**self.p))
        if not powers:
            return self.strongest()
        x = model.point(f)
        gradient: Any = f.evaluate(x).slope.gradient
        found = -0.5 * f.entries.data.n * gradient.inner(x.w) / powers * float(model.sigma.max()) ** (self.p - 1.0)
        return max(float(found), least_strength(f.entries))

    def restated(self, model: Factors, seed: int = 0, strength: float = float("nan")) -> AlternatingState:
        """The state of a model of other weights: of what was rated, or of rows and columns in the norm."""
        sides, ((m, n), (rows, cols)) = model.sides, (self.f.entries.shape, self.f.shape)
        sides = replace(sides, below=_last_of(sides.below, rows - m), beside=_last_of(sides.beside, cols - n))
        sides, sigma = balanced(sides, self.unit) if len(model.sigma) else (sides, model.sigma)
        x = sides.point(self.f)
        return AlternatingState(t=0, x=x, seed=seed, strength=strength, first=strength, sigma=sigma)

    def penalised(self, rank: int, strength: float, state: AlternatingState | None, **given: Any) -> Swept:
        """Sweeps with a penalty, from a state whose empty components are begun anew, or from random factors."""
        return self._swept(Alternating(rank, strength), self.reach(strength), state, **given)

    def within(self, rank: int, radius: float, state: AlternatingState | None, **given: Any) -> Swept:
        """Sweeps whose penalty follows the norm, until this is the radius."""
        return self._swept(Alternating(rank), self.ball(radius), state, **given)

    def _swept(
        self,
        solver: Alternating,
        ball: WeightedSchattenBall,
        state: AlternatingState | None,
        *,
        seed: int = 0,
        written: SavedRun | None = None,
        callbacks: Sequence[Callback] = (),
        max_iter: int,
    ) -> Swept:
        """The run from a state, from a checkpoint, or from random factors, without a certificate."""
        if state is not None:
            first = solver.carry(self.f, ball, state)
        else:
            first = solver.init(self.f, ball, self.f.point(ball.centre(self.f.shape)), seed)
        first = replace(first, solver=solver)
        run = Run(self.f, ball, solver, first, tol=0.0, max_iter=max_iter, record=0, certifies=False)
        if written is not None:
            written.restore(run)
        with single_blas():
            status = run_steps(run, callbacks)
        return Swept(cast("AlternatingState", run.state), status)


def settled(problem: ConvexProblem, model: Factors) -> Factors:
    """The model with the best offsets beside its matrix; no deadline counts, since that takes less than a sweep."""
    with ignore_deadline():
        found = problem.f.open().evaluate(model.point(problem.f), tangent=False)
    return model.with_offsets(np.asarray(found.intercept))


def _last_of(factors: Array, count: int) -> Array:
    """So many rows, the last ones as they are, which are those of features; zeros where there are too few."""
    missing = max(count - len(factors), 0)
    return np.concatenate([np.zeros((missing, factors.shape[1])), factors[len(factors) - count + missing :]])


def frequency_weights(counts: Array, power: float, mean: float | None = None) -> Array:
    """Smoothed relative frequencies to a power: nine tenths of one's own, a tenth of the mean, by default theirs."""
    mean = max(float(counts.mean()) if mean is None else mean, 1e-300)
    weights: Array = ((0.9 * counts + 0.1 * mean) / mean) ** power
    return weights
