"""What goes along with sweeps: a limit of time, early stopping that keeps the best one, and a count of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from projfree.deadline import deadline
from projfree.estimators.completion.problem import Problem
from projfree.estimators.sklearn_callbacks import EarlyStopping
from projfree.estimators.watching import given_callbacks
from projfree.objectives.regressions import STEPS
from projfree.run import Run
from projfree.run.callbacks import closed
from projfree.solvers.base import State


def limited(seconds: float | None) -> AbstractContextManager[None]:
    """One limit for everything that follows."""
    return deadline(math.inf if seconds is None else seconds)


@contextmanager
def watched(callbacks: Any, seconds: float | None) -> Iterator[None]:
    """One limit for everything that follows, after which the callbacks are closed."""
    with closed(given_callbacks(callbacks)), limited(seconds):
        yield


class BestSweep(EarlyStopping):
    """Ends the sweeps when the score has not improved for some of them, and keeps the state with the best one."""

    def __init__(self, score: Callable[[Run], float], patience: int) -> None:
        super().__init__(score, patience, 0.0)
        self.state: State | None = None

    def __call__(self, run: Run) -> bool:
        stopped = super().__call__(run)
        if self.scores[-1] >= max(self.scores):
            self.state = run.state
        return stopped


class Tally:
    """Counts sweeps."""

    def __init__(self) -> None:
        self.sweeps = 0

    def __call__(self, run: Run) -> None:
        self.sweeps += 1

    def products(self, problem: Problem, rank: int) -> float:
        """About how many products so many sweeps take: both sides of all ratings, each step of their regressions."""
        each = STEPS + 2 + (2 if problem.f.implicit else 0)
        return 2.0 * self.sweeps * problem.f.entries.data.n * rank * each
