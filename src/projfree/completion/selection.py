"""The choice of the penalty and of the weight of implicit features: a path of penalties, judged on held-out ratings."""

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

#: A path: at most so many strengths from this part of the strongest on, each this factor below the last, with so many
#: sweeps each, until so many in a row have not improved the score.
FIRST, FACTOR, SWEEPS, POINTS, PATIENCE = 0.7, 0.8, 3, 32, 2
#: Weights of implicit features to choose from, that of the first path first.
WEIGHTS = (1.0, 0.0)
#: Outliers are so many robust deviations from the median. They would be most of the error of a robust loss.
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
    """The state after some sweeps, from a state, a checkpoint or random factors; and why they ended."""
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
    """Ratings that were held out, in the terms of the loss, and how models are judged on them."""

    held: Ratings
    loss: Loss
    range: tuple[float, float]
    weight: Array

    @classmethod
    def of(cls, held: Ratings, fitted: Ratings, loss: Loss) -> ValidationSet:
        """From the ratings that were held out and the others, which say what is usual."""
        low, high = float(fitted.values.min()), float(fitted.values.max())
        if not is_squared(loss) and not loss.labels:
            held = replace(held, values=np.clip(held.values, *robust_range(fitted.values, fitted.weight)))
        weight = np.ones(len(held)) if held.weight is None else held.weight
        return cls(held, loss, (-math.inf, math.inf) if loss.labels else (low, high), weight / weight.sum())

    def losses(self, model: Factors) -> Array:
        """The loss of each rating."""
        u = model.margin(self.held.rows, self.held.indices)
        return self.loss.value(np.clip(u, *self.range), self.held.values)

    def score(self, model: Factors) -> float:
        """The negative root of the mean loss; the mean loss if ratings are labels."""
        error = float(self.weight @ self.losses(model))
        return -error if self.loss.labels else -math.sqrt(error)

    def clearly_better(self, one: Factors, other: Factors) -> bool:
        """Whether a model is better than another one by two standard errors: it is the best of many."""
        gain = self.losses(other) - self.losses(one)
        mean = float(self.weight @ gain)
        return mean > 2.0 * math.sqrt(float(self.weight**2 @ (gain - mean) ** 2))


def robust_range(values: Array, weight: Array | None) -> tuple[float, float]:
    """The range of ratings that are no outliers."""
    centre, far = weighted_median(values, weight), OUTLIER * robust_scale(values, weight)
    return centre - far, centre + far


class PenaltyScore(NamedTuple):
    """A strength and a weight of implicit features, and the score of the model there."""

    strength: float
    implicit: float
    score: float
    model: Factors


def strength_path(f: CompletionProblem) -> Array:
    """The strengths of a path, from strong to weak."""
    return np.asarray(FIRST * max_strength(f) * FACTOR ** np.arange(POINTS))


@dataclass
class PathSearch:
    """Models along paths of penalties, each started from the last, until a callback or the deadline ends it."""

    rank: int
    seed: int
    score: Callable[[Factors], float]
    callbacks: Sequence[Any] = ()
    best: PenaltyScore | None = None
    stopped: bool = False

    def fit(self, f: CompletionProblem, strength: float, before: PenaltyScore | None) -> PenaltyScore:
        """The model after a few sweeps with one strength."""
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
        """The scores of a path; `best` is the first of the best models so far."""
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
    """The strength and the weight of implicit features with the best score; no matrix unless one is clearly better.

    The first weight has the whole path; the path of another begins before the best strength of the last one, with the
    best model so far. A callback that returns True ends the search.
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
    """The largest number of sweeps that `select_penalty` makes, for progress bars."""
    return SWEEPS * POINTS * len(weights)
