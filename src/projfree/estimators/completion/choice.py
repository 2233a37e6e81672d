"""The choice of the radius and of implicit features: a path of penalties, judged on held-out ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.completion.alternating import AlternatingState, offsets_alone
from projfree.deadline import expired
from projfree.estimators.completion.convex_problem import ConvexProblem
from projfree.estimators.completion.factors import Factors
from projfree.run import Status

#: The path: strengths fall by this factor from this part of the strongest, with so many sweeps each.
FIRST, FACTOR, SWEEPS, POINTS = 0.45, 0.8, 3, 30
#: It ends when the score has not improved for so many points.
PATIENCE = 2
#: So many where no model is clearly better than offsets alone yet: there is then little to look for.
DOUBTFUL = 1
#: Weights of implicit features to choose from, that of the path first, and the strengths at which others are tried.
WEIGHTS, TRIED = (1.0, 0.5, 0.0), 3
#: Where there are at most so many ratings, models without implicit features have a path of their own, soon done.
FEW_RATINGS = 50_000
#: A weight whose score is worse than the best by more than this part is not tried further, and a matrix that gains less
#: than this part is looked at more closely.
FAR = 0.01


class Tried(NamedTuple):
    """A strength and a weight of implicit features, the score of the model there, and the state of the sweeps."""

    strength: float
    implicit: float
    score: float
    state: AlternatingState


class Halt:
    """Whether a callback has ended the choice, or the deadline."""

    def __init__(self) -> None:
        self.called = False

    def over(self, status: Status | None = None) -> bool:
        """Whether no further model is tried, after sweeps that have ended with a status."""
        self.called |= status is Status.CALLBACK
        return self.called or expired()


#: Whether a model with a score is clearly better than offsets alone.
Clear = Callable[[Factors, float], bool]


def strengths_of(problem: ConvexProblem, points: int = POINTS) -> Array:
    """The strengths of a path, from strong to weak."""
    return np.asarray(FIRST * problem.strongest() * FACTOR ** np.arange(points))


def along(
    problem: ConvexProblem,
    rank: int,
    seed: int,
    score: Callable[[Factors], float],
    strengths: Array,
    callbacks: Sequence[Any] = (),
    state: AlternatingState | None = None,
    best: float = -np.inf,
    clear: Clear = lambda model, score: True,
    halt: Halt | None = None,
) -> Iterator[Tried]:
    """One strength after the other, each begun at the last, until the score has not improved for some of them.

    That is on ``best``, the score so far; ``clear`` says whether a model with its score is clearly better than offsets
    alone, and ``halt`` gets to know of callbacks that end it.
    """
    since, patience, halt = 0, DOUBTFUL, halt or Halt()
    for strength in strengths.tolist():
        swept = problem.penalised(rank, strength, state, seed=seed, max_iter=SWEEPS, callbacks=callbacks)
        state, status = swept.uninterrupted()
        model = Factors.of(problem.f, state)
        now = score(model)
        best, since = max(best, now), 0 if now > best else since + 1
        patience = PATIENCE if patience == PATIENCE or clear(model, now) else DOUBTFUL
        yield Tried(strength, problem.f.implicit, now, state)
        if halt.over(status) or since >= patience:
            return


def most_sweeps(weights: Sequence[float], ratings: int) -> int:
    """The largest number of sweeps that `choose` makes."""
    paths = 1 + int(_own_path(weights, ratings))
    return SWEEPS * (paths * (POINTS + _stronger()) + TRIED * (len(weights) - 1) + 1)  # the last to look closely


def _own_path(weights: Sequence[float], ratings: int) -> bool:
    """Whether models without implicit features have a path of their own, beside that of the first weight."""
    return ratings <= FEW_RATINGS and 0.0 in weights[1:]


def _stronger() -> int:
    """How many strengths there are from the first of a path up to no matrix."""
    return 1 + int(np.log(FIRST) / np.log(FACTOR))


def choose(
    problem: ConvexProblem,
    weights: Sequence[float],
    rank: int,
    seed: int,
    score: Callable[[Factors], float],
    better: Callable[[Factors, Factors], bool],
    callbacks: Sequence[Any] = (),
) -> Tried:
    """The strength and the weight of implicit features with the best score, or no matrix where none is clearly better.

    The path is that of the first weight: it goes down and, where its first point is the best, up to no matrix. The
    others are tried at its best strengths, each begun at the model there, while they do not fall far behind; where no
    model is clearly better than none, only the last of them, at the best strength. Where ratings are few, no implicit
    features have a path of their own: its best strength is far from that of others if entries are missing at random.
    ``better`` says whether a model is clearly better than another one. A callback that returns True ends all of it.
    """
    first, *others = weights
    halt = Halt()
    stacked, alone = problem.with_implicit(first), offsets_model(problem)
    none = score(alone)

    def clear(model: Factors, found: float) -> bool:
        # A gain may be small enough to be that of sweeps which ended early.
        return found - none >= FAR * abs(none) and better(model, alone)

    points = _path(stacked, rank, seed, score, callbacks, clear, halt)
    likely = list(points)
    if not clear(Factors.of(stacked.f, likely[0].state), likely[0].score):
        likely, others = likely[:1], others[-1:]
    for weight in others:
        other = problem.with_implicit(weight)
        for point in likely:
            if halt.over():
                break
            begun = other.restated(Factors.of(stacked.f, point.state), seed)
            points += along(other, rank, seed, score, np.array([point.strength]), callbacks, begun, halt=halt)
            if points[-1].score < likely[0].score - FAR * abs(likely[0].score):
                break
    if _own_path(weights, problem.f.entries.data.n) and not halt.over():
        points += _path(problem.with_implicit(0.0), rank, seed, score, callbacks, clear, halt)
    best = max(points, key=lambda point: (point.score, -point.implicit))  # of equal ones the simpler
    chosen = problem.with_implicit(best.implicit)
    model = Factors.of(chosen.f, best.state)
    if not halt.over() and not clear(model, best.score):
        swept = chosen.penalised(rank, best.strength, best.state, seed=seed, max_iter=SWEEPS, callbacks=callbacks)
        model = Factors.of(chosen.f, swept.uninterrupted().state)
    if better(model, alone):
        return best
    plain = problem.with_implicit(0.0)
    return Tried(plain.strongest() / FACTOR, 0.0, none, plain.restated(alone, seed))


def offsets_model(problem: ConvexProblem) -> Factors:
    """The best offsets without a matrix."""
    e = problem.f.entries
    return Factors.of_sides(e, offsets_alone(e), np.zeros(1))


def _path(
    problem: ConvexProblem,
    rank: int,
    seed: int,
    score: Callable[[Factors], float],
    callbacks: Sequence[Any],
    clear: Clear,
    halt: Halt,
) -> list[Tried]:
    """The best points of the path, best first: a few, since states are large."""
    strengths, given = strengths_of(problem), (problem, rank, seed, score)
    points = _best(along(*given, strengths, callbacks, clear=clear, halt=halt))
    best = points[0]
    if best.strength == strengths[0] and not halt.over():
        stronger = strengths[0] / FACTOR ** np.arange(1, 1 + _stronger())
        points = _best(along(*given, stronger, callbacks, best.state, best.score, clear, halt), points)
    return points


def _best(points: Iterable[Tried], kept: Sequence[Tried] = ()) -> list[Tried]:
    """The points with the highest scores, so many as other weights are tried at."""
    found = list(kept)
    for point in points:
        found = sorted([*found, point], key=lambda one: -one.score)[:TRIED]
    return found
