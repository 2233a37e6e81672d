"""Choice of the penalty and of the weight of implicit features, by validation along paths of penalties."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.completion.als import ALS, ALSState, max_strength, transfer
from projfree.completion.model import Factors
from projfree.completion.problem import CompletionProblem
from projfree.completion.ratings import Ratings
from projfree.deadline import expired
from projfree.estimators.robust import robust_scale, weighted_median
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.run import Status
from projfree.run.loop import Run, run_steps
from projfree.runtime import single_blas_thread

if TYPE_CHECKING:
    from projfree.run.checkpoint import SavedRun

#: Path of penalties: first strength relative to the largest useful one, ratio of consecutive strengths, sweeps per
#: strength, maximum number of strengths, and number of strengths without improvement after which it stops.
FIRST, FACTOR, SWEEPS, POINTS, PATIENCE = 0.7, 0.8, 3, 32, 2
#: Candidate weights of implicit features, in the order of their paths.
WEIGHTS = (1.0, 0.0)
#: Distance of outliers from the median, in robust standard deviations. They would dominate the validation error.
OUTLIER = 5.0


def run_sweeps(
    f: CompletionProblem,
    solver: ALS,
    state: ALSState | None,
    *,
    radius: float = 1.0,
    seed: int = 0,
    callbacks: Sequence[Any] = (),
    max_iter: int,
    checkpoint: SavedRun | None = None,
) -> tuple[ALSState, Status]:
    """Run sweeps from a state, a checkpoint or random factors; return the last state and why the run ended."""
    ball = f.ball(radius)
    if state is None:
        state = solver.init(f, ball, f.point(ball.centre(f.shape)), seed)
    run = Run(f, ball, replace(state, solver=solver), tol=0.0, max_iter=max_iter, record=0, certifies=False)
    if checkpoint is not None:
        checkpoint.restore(run)
    with single_blas_thread():
        status = run_steps(run, callbacks)
    assert isinstance(run.state, ALSState)
    return run.state, status


@dataclass(frozen=True, eq=False)
class ValidationSet:
    """Validation ratings as targets of the loss, and the score of a model on them."""

    held: Ratings
    loss: Loss
    range: tuple[float, float]
    weight: Array

    @classmethod
    def of(cls, held: Ratings, fitted: Ratings, loss: Loss) -> ValidationSet:
        """Build it from validation and training ratings; the latter determine the range and the outliers."""
        low, high = float(fitted.values.min()), float(fitted.values.max())
        if not is_squared(loss) and not loss.labels:
            held = replace(held, values=np.clip(held.values, *robust_range(fitted.values, fitted.weight)))
        weight = np.ones(len(held)) if held.weight is None else held.weight
        return cls(held, loss, (-math.inf, math.inf) if loss.labels else (low, high), weight / weight.sum())

    def losses(self, model: Factors) -> Array:
        """Return the loss of each rating."""
        u = model.margin(self.held.rows, self.held.indices)
        return self.loss.value(np.clip(u, *self.range), self.held.values)

    def score(self, model: Factors) -> float:
        """Return the negative square root of the mean loss, or the negative mean loss if ratings are labels."""
        error = float(self.weight @ self.losses(model))
        return -error if self.loss.labels else -math.sqrt(error)

    def clearly_better(self, one: Factors, other: Factors) -> bool:
        """Return whether a model is better by two standard errors, as it is the best of many."""
        gain = self.losses(other) - self.losses(one)
        mean = float(self.weight @ gain)
        return mean > 2.0 * math.sqrt(float(self.weight**2 @ (gain - mean) ** 2))


def robust_range(values: Array, weight: Array | None) -> tuple[float, float]:
    """Return the range of ratings that are not outliers."""
    centre, far = weighted_median(values, weight), OUTLIER * robust_scale(values, weight)
    return centre - far, centre + far


class PenaltyScore(NamedTuple):
    """A strength, a weight of implicit features, the score and the model."""

    strength: float
    implicit: float
    score: float
    model: Factors


def strength_path(f: CompletionProblem) -> Array:
    """Return the strengths of a path, in decreasing order."""
    return np.asarray(FIRST * max_strength(f) * FACTOR ** np.arange(POINTS))


@dataclass
class PathSearch:
    """Fit models along paths of penalties, each from the last, until a callback or the deadline stops it."""

    rank: int
    seed: int
    score: Callable[[Factors], float]
    callbacks: Sequence[Any] = ()
    best: PenaltyScore | None = None
    stopped: bool = False

    def fit(self, f: CompletionProblem, strength: float, before: PenaltyScore | None) -> PenaltyScore:
        """Run a few sweeps with one strength, and score the model."""
        solver, state = ALS(self.rank, strength), None
        if before is not None:
            model = before.model
            model = model if before.implicit == f.implicit else transfer(f, model, strength)
            state = solver.resume(f, model, self.seed)
        state, status = run_sweeps(f, solver, state, seed=self.seed, callbacks=self.callbacks, max_iter=SWEEPS)
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.stopped |= status is Status.CALLBACK or expired()
        model = Factors.of_point(f, state.x, state.sigma)
        return PenaltyScore(strength, f.implicit, self.score(model), model)

    def path(self, f: CompletionProblem, strengths: Array, start: PenaltyScore | None = None) -> list[float]:
        """Return the scores of a path, and update `best`."""
        last, scores = start, list[float]()
        for strength in strengths.tolist():
            last = self.fit(f, strength, last)
            scores.append(last.score)
            if self.best is None or last.score > self.best.score:
                self.best = last
            if self.stopped or int(np.argmax(scores)) + PATIENCE < len(scores):
                break
        return scores


def select_penalty(
    f: CompletionProblem,
    weights: Sequence[float],
    rank: int,
    seed: int,
    held: ValidationSet,
    callbacks: Sequence[Any] = (),
) -> PenaltyScore:
    """Choose the strength and the weight of implicit features; the zero matrix, unless another is clearly better.

    The first weight has a full path. The path of the next one begins before the best strength of the last path, with
    the best model so far. A callback that returns True ends the search.
    """
    strengths, search, begin = strength_path(f), PathSearch(rank, seed, held.score, callbacks), 0
    for weight in weights:
        scores = search.path(f.with_implicit(weight), strengths[begin:], search.best)
        begin = max(int(np.argmax(scores)) - PATIENCE, 0)
        if search.stopped:
            break
    best = search.best
    alone = Factors.zero(f.with_implicit(0.0), f.entries.offsets_only)
    if best is not None and held.clearly_better(best.model, alone):
        return best
    return PenaltyScore(strengths[0] / (FIRST * FACTOR), 0.0, held.score(alone), alone)


def count_path_sweeps(weights: Sequence[float]) -> int:
    """Return the maximum number of sweeps of `select_penalty`, for progress bars."""
    return SWEEPS * POINTS * len(weights)
