"""One fold of a search over radii: fits to the ratings outside of it, judged on those inside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.deadline import deadline
from projfree.estimators.completion.choice import FACTOR, along, strengths_of
from projfree.estimators.completion.factors import Factors

#: A search begins so many points of the path above where a single fit does: it does not climb.
ABOVE = 3


@dataclass(frozen=True, eq=False)
class RatingFold:
    """Ratings to fit, ratings to score, and how: ``scorer(model, pairs, ratings, **given)``."""

    rows: Array
    held: Array
    scorer: Any
    given: dict[str, Any]

    def score(self, model: Any, factors: Factors) -> float:
        """The score of factors on the ratings held out."""
        model.factors_, every = factors, model.ratings_.part(self.held)
        pairs = (model.user_ids_[every.rows], model.item_ids_[every.cols])
        return float(self.scorer(model, pairs, every.values, **self.given))


def path_of(model: Any, points: int) -> Array:
    """The strengths of a search, from strong to weak, on all ratings."""
    return np.asarray(strengths_of(model._problem(model.ratings_), points) / FACTOR**ABOVE)


def radii_of(model: Any, strengths: Array) -> Array:
    """The radius that each strength means on all ratings."""
    problem, always_better = model._problem(model.ratings_), count()
    points = along(problem, model.rank, model._seed, lambda _: next(always_better), strengths)
    least = problem.least_radius
    return np.array([max(Factors.of(problem.f, point.state).norm(problem.p), least) for point in points])


def scores_of(model: Any, ways: Array, path: bool, fold: RatingFold, left: float) -> tuple[list[float], float]:
    """Scores of strengths along a path, as far as it goes, or of radii one by one; and the seconds it took."""
    begun = time.perf_counter()
    with deadline(left):
        scores = list((_along if path else _within)(model, ways, fold))
    return scores, time.perf_counter() - begun


def _along(model: Any, strengths: Array, fold: RatingFold) -> Iterator[float]:
    every, problem = model.ratings_, model._problem(model.ratings_.part(fold.rows))
    # A penalty on fewer ratings is weaker, as the root of their number.
    own = strengths * np.sqrt(len(fold.rows) / len(every))
    for point in along(problem, model.rank, model._seed, lambda factors: fold.score(model, factors), own):
        yield point.score


def _within(model: Any, radii: Array, fold: RatingFold) -> Iterator[float]:
    problem = model._problem(model.ratings_.part(fold.rows))
    for radius in radii.tolist():
        found = problem.within(model.rank, radius, None, seed=model._seed, max_iter=model.most_sweeps(False))
        yield fold.score(model, Factors.of(problem.f, found.uninterrupted().state).inside(problem.p, radius))
