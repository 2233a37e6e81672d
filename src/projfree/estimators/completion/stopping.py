"""Early stopping that keeps the best sweep."""

from __future__ import annotations

from collections.abc import Callable

from projfree.estimators.sklearn_callbacks import EarlyStopping
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
