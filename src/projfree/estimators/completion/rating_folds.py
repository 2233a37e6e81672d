"""One fold of a search over radii: fits to the ratings outside of it, judged on those inside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.estimators.completion.choice import FACTOR, along, strengths_of
from projfree.estimators.completion.factors import Factors

#: A search begins so many points of the path above where a single fit does: it does not climb.
ABOVE = 3


@dataclass(frozen=True, eq=False)
class RatingFold:
    """Ratings to fit, ratings to score, and how: ``scorer(model, pairs, ratings, **given)``.

    Where the ratings were given as a matrix, ``shape`` is that of it: its empty rows and columns take part in a fit.
    """

    rows: Array
    held: Array
    scorer: Any
    given: dict[str, Any]
    shape: tuple[int, int] | None = None

    def prepared(self, model: Any) -> Any:
        """A model with the same settings that knows the ratings to fit alone, as if the others had not been given.

        Its users and items, their offsets and numbers of ratings, the range that predictions are clipped to, and the
        scale of the loss are all found from these ratings.
        """
        own, part = copy(model), model.ratings_.part(self.rows)
        own.early_stopping = False  # concerns the final fit
        users, items = model.user_ids_[part.rows], model.item_ids_[part.cols]
        if self.shape is None:
            own.prepare((users, items), part.values, part.weight)
        else:
            from scipy.sparse import coo_array

            own.prepare(coo_array((part.values, (users, items)), self.shape), None, part.weight)
        own.implicit_ = model.implicit_
        return own

    def judge(self, model: Any, own: Any) -> Callable[[Factors], float]:
        """The score, on the ratings held out from a model of all, of factors that a model of this fold is given."""
        held = model.ratings_.part(self.held)
        pairs = (model.user_ids_[held.rows], model.item_ids_[held.cols])

        def score(factors: Factors) -> float:
            own.factors_ = factors
            return float(self.scorer(own, pairs, held.values, **self.given))

        return score


def path_of(model: Any, points: int) -> Array:
    """The strengths of a search, from strong to weak, on all ratings."""
    return np.asarray(strengths_of(model._problem(model.ratings_), points) / FACTOR**ABOVE)


def radii_of(model: Any, strengths: Array, most: int) -> Array:
    """The radius that each strength means on all ratings, of at most so many."""
    problem, always_better = model._problem(model.ratings_), count()
    points = along(problem, model.rank, model._seed, lambda _: next(always_better), strengths[:most])
    least = problem.least_radius
    return np.array([max(Factors.of(problem.f, point.state).norm(problem.p), least) for point in points])


def scores_of(model: Any, ways: Array, path: bool, fold: RatingFold, needed: bool) -> tuple[list[float], float]:
    """Scores of strengths along a path, as far as it goes, or of radii one by one; and the seconds it took.

    There is at least one, also where time is up; none where it is up before and no score is needed.
    """
    if expired() and not needed:
        return [], 0.0
    begun = time.perf_counter()
    own = fold.prepared(model)
    if path:
        # A penalty on fewer ratings is weaker, as the root of their number.
        ways = ways * np.sqrt(len(own.ratings_) / len(model.ratings_))
    scores = list((_along if path else _within)(own, ways, fold.judge(model, own)))
    return scores, time.perf_counter() - begun


def _along(own: Any, strengths: Array, score: Callable[[Factors], float]) -> Iterator[float]:
    for point in along(own._problem(own.ratings_), own.rank, own._seed, score, strengths):
        yield point.score


def _within(own: Any, radii: Array, score: Callable[[Factors], float]) -> Iterator[float]:
    problem = own._problem(own.ratings_)
    for radius in radii.tolist():
        found = problem.within(own.rank, radius, None, seed=own._seed, max_iter=own.most_sweeps(False))
        model = Factors.of(problem.f, found.uninterrupted().state).double(problem.unit)
        yield score(model.inside(problem.p, radius))
        if expired():
            return
