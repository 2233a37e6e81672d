"""The choice of the penalty and of the weight of implicit features: a path of penalties, judged on held-out ratings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.completion.als import Alternating, AlternatingState, strongest, transferred
from projfree.completion.model import Factors
from projfree.completion.problem import CompletionProblem
from projfree.completion.ratings import Ratings
from projfree.deadline import expired
from projfree.estimators.robust import residual_scale, weighted_median
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.run import Status
from projfree.run.loop import Run, run_steps
from projfree.runtime import single_blas

if TYPE_CHECKING:
    from projfree.run.checkpoint import SavedRun

#: The path: strengths fall by this factor from this part of the strongest, with so many sweeps each, until the score
#: has not improved for so many points.
FIRST, FACTOR, SWEEPS, POINTS, PATIENCE = 0.7, 0.8, 3, 32, 2
#: Weights of implicit features to choose from, that of the path first, and the strengths at which others are tried.
WEIGHTS, TRIED = (1.0, 0.5, 0.0), 3
#: Up to so many ratings, models without implicit features have a path of their own, soon done.
FEW_RATINGS = 50_000
#: A weight whose score is worse than the best by more than this part is not tried further.
FAR = 0.01
#: Standard errors by which a matrix must be better than none: it is the best of many that were tried.
CLEAR = 2.0
#: If the loss is not that of squares, held-out ratings count as at most so many robust deviations from the median: a
#: single outlier would be most of an error, next to which no model is better than another.
WILD = 5.0


def run_sweeps(
    f: CompletionProblem,
    solver: Alternating,
    state: AlternatingState | None,
    *,
    radius: float = 1.0,
    seed: int = 0,
    callbacks: Sequence[Any] = (),
    max_iter: int,
    written: SavedRun | None = None,
) -> tuple[AlternatingState, Status]:
    """The state after some sweeps, from a state, a checkpoint or random factors; and why they ended."""
    ball = f.ball(radius)
    if state is None:
        state = solver.init(f, ball, f.point(ball.centre(f.shape)), seed)
    run = Run(f, ball, replace(state, solver=solver), tol=0.0, max_iter=max_iter, record=0, certifies=False)
    if written is not None:
        written.restore(run)
    with single_blas():
        status = run_steps(run, callbacks)
    assert isinstance(run.state, AlternatingState)
    return run.state, status


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Ratings that were held out, in the terms of the loss, and how models are judged on them."""

    held: Ratings
    loss: Loss
    range: tuple[float, float]
    weight: Array

    @classmethod
    def of(cls, held: Ratings, fitted: Ratings, loss: Loss) -> HeldOut:
        """From the ratings that were held out and the others, which say what is usual."""
        low, high = float(fitted.values.min()), float(fitted.values.max())
        if not is_squared(loss) and not loss.labels:
            held = held.with_values(np.clip(held.values, *usual_range(fitted.values, fitted.weight)))
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
        """Whether a model is better than another one by a few standard errors."""
        gain = self.losses(other) - self.losses(one)
        mean = float(self.weight @ gain)
        return mean > CLEAR * math.sqrt(float(self.weight**2 @ (gain - mean) ** 2))


def usual_range(values: Array, weight: Array | None) -> tuple[float, float]:
    """The range of ratings that are no outliers."""
    centre, far = weighted_median(values, weight), WILD * residual_scale(values, weight)
    return centre - far, centre + far


class Trial(NamedTuple):
    """A strength and a weight of implicit features, and the score of the model there."""

    strength: float
    implicit: float
    score: float
    model: Factors


def strengths_of(f: CompletionProblem) -> Array:
    """The strengths of a path, from strong to weak."""
    return np.asarray(FIRST * strongest(f) * FACTOR ** np.arange(POINTS))


@dataclass
class PathSearch:
    """Models along paths of penalties, each begun at the last, until a callback or the deadline ends it."""

    rank: int
    seed: int
    score: Callable[[Factors], float]
    callbacks: Sequence[Any] = ()
    ended: bool = False
    scores: list[float] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether no further model is tried."""
        return self.ended or expired()

    def fit(self, f: CompletionProblem, strength: float, before: Trial | None) -> Trial:
        """The model after a few sweeps with one strength."""
        solver, state = Alternating(self.rank, strength), None
        if before is not None:
            model = before.model
            model = model if before.implicit == f.implicit else transferred(f, model, strength)
            state = solver.resume(f, model, self.seed)
        state, status = run_sweeps(f, solver, state, seed=self.seed, callbacks=self.callbacks, max_iter=SWEEPS)
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.ended |= status is Status.CALLBACK
        model = Factors.of_point(f, state.x, state.sigma)
        self.scores.append(self.score(model))
        return Trial(strength, f.implicit, self.scores[-1], model)

    def path(self, f: CompletionProblem, strengths: Array) -> list[Trial]:
        """The best trials of a path, best first; `scores` has those of all."""
        found: list[Trial] = []
        last, best, since = None, -math.inf, 0
        for strength in strengths.tolist():
            last = self.fit(f, strength, last)
            best, since = max(best, last.score), 0 if last.score > best else since + 1
            found = sorted([*found, last], key=lambda one: -one.score)[:TRIED]  # a few, since models are large
            if self.over or since == PATIENCE:
                break
        return found


def choose(
    f: CompletionProblem, weights: Sequence[float], rank: int, seed: int, held: HeldOut, callbacks: Sequence[Any] = ()
) -> Trial:
    """The strength and the weight of implicit features with the best score; no matrix if none is clearly better.

    The path is that of the first weight. The others are tried at its best strengths, each begun at the model there,
    while they do not fall far behind. A callback that returns True ends the search.
    """
    strengths, search = strengths_of(f), PathSearch(rank, seed, held.score, callbacks)
    trials = likely = search.path(f.with_implicit(weights[0]), strengths)
    for weight in weights[1:]:
        other = f.with_implicit(weight)
        if weight == 0.0 and f.n <= FEW_RATINGS and not search.over:
            trials = trials + search.path(other, strengths)
            continue
        for trial in likely:
            if search.over or trials[-1].score < likely[0].score - FAR * abs(likely[0].score):
                break
            trials = [*trials, search.fit(other, trial.strength, trial)]
    best = max(trials, key=lambda trial: (trial.score, -trial.implicit))  # of equal ones the simpler
    alone = Factors.zero(f.with_implicit(0.0), f.entries.offsets_alone)
    if held.clearly_better(best.model, alone):
        return best
    return Trial(strengths[0] / (FIRST * FACTOR), 0.0, held.score(alone), alone)


def most_sweeps(weights: Sequence[float], ratings: int) -> int:
    """The largest number of sweeps that `choose` makes, for progress bars."""
    paths = 1 + int(ratings <= FEW_RATINGS and 0.0 in weights[1:])
    return SWEEPS * (paths * POINTS + TRIED * (len(weights) - 1))
