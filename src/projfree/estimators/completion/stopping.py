"""What goes along with sweeps: early stopping that keeps the best one, and a count of them."""

from __future__ import annotations

from collections.abc import Callable

from projfree.estimators.completion.problem import Problem
from projfree.estimators.sklearn_callbacks import EarlyStopping
from projfree.objectives.regressions import STEPS
from projfree.run import Run
from projfree.solvers.base import State


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
