"""What goes along with sweeps: a limit of time, early stopping that keeps the best one, and a count of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from projfree.algebra import LowRank
from projfree.completion.als_updates import STEPS, Sides
from projfree.completion.alternating import AlternatingState, Sweepable
from projfree.deadline import deadline
from projfree.estimators.completion.convex_problem import ConvexProblem
from projfree.estimators.watching import given_callbacks
from projfree.run import Run
from projfree.run.callbacks import closing


@contextmanager
def watched(callbacks: Any, seconds: float | None) -> Iterator[None]:
    """One limit for everything that follows, after which the callbacks are closed."""
    with closing(given_callbacks(callbacks)), deadline(seconds):
        yield


class BestSweep:
    """Early stopping of the sweeps, which keeps the state with the best score.

    Parameters
    ----------
    score : callable
        ``score(run)``, the score on the ratings that were held out, larger being better.
    patience : int
        Sweeps without improvement after which the run ends.
    """

    def __init__(self, score: Callable[[Run], float], patience: int) -> None:
        self.score, self.patience = score, patience
        self.scores: list[float] = []
        self.stopped = False
        self.state: AlternatingState | None = None
        #: What a checkpoint has to hold of it: the scores, and the model of the best one.
        self.note: dict[str, Any] = {}

    def __call__(self, run: Run) -> bool:
        self.scores.append(self.score(run))
        self.stopped = self._over()
        state = cast("AlternatingState", run.state)
        if self.scores[-1] >= max(self.scores):
            self.state, sides = state, Sides.of(cast("Sweepable", run.f), state.x)
            self.note["best"] = {"lefts": sides.lefts, "rights": sides.rights, "offsets": sides.offsets}
            self.note["best"] |= {"t": state.t, "strength": state.strength, "first": state.first, "sigma": state.sigma}
        self.note["scores"] = list(self.scores)
        return self.stopped

    def _over(self) -> bool:
        """Whether the last scores are no better than those before them."""
        best = max(self.scores[: -self.patience], default=-math.inf)
        return len(self.scores) > self.patience and max(self.scores[-self.patience :]) <= best

    def go_on(self, note: dict[str, Any], problem: ConvexProblem, seed: int) -> None:
        """Take over what a checkpoint holds, so that all sweeps are judged and not those after it alone."""
        if not note:
            return
        best = note["best"]
        x = problem.f.point(LowRank.of(best["lefts"], best["rights"]), best["offsets"])
        numbers = {name: best[name] for name in ("t", "strength", "first", "sigma")}
        self.state = AlternatingState(x=x, seed=seed, **numbers)
        self.scores = list(note["scores"])
        self.note.update(note)
        self.stopped = self._over()


class Tally:
    """Counts sweeps, and knows of those that earlier fits of the same model have made."""

    def __init__(self) -> None:
        self.sweeps = 0
        #: What a checkpoint has to hold of it: all sweeps.
        self.note = {"sweeps": 0}

    def __call__(self, run: Run) -> None:
        self.sweeps += 1
        self.note["sweeps"] += 1

    def go_on(self, sweeps: int) -> None:
        """Count the sweeps that were made before, too."""
        self.note["sweeps"] += sweeps

    @property
    def every(self) -> int:
        """All sweeps."""
        return self.note["sweeps"]


def products(sweeps: int, problem: ConvexProblem, rank: int) -> float:
    """About how many products so many sweeps take: both sides of all ratings, each step of their regressions."""
    each = STEPS + 2 + (0 if problem.f.neighbours is None else 2)
    return 2.0 * sweeps * problem.f.entries.data.n * rank * each
