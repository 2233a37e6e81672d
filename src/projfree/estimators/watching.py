"""What goes along with the run of a fit: what is shown of it, and what the user calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from projfree.checks import shown
from projfree.run import ProgressBar, Run
from projfree.run.callbacks import IterationLines, as_callbacks, close_bar, open_bar


def shown_by(verbose: Any, **of_bar: Any) -> list[Callable[[Run], Any]]:
    """The callbacks that ``verbose`` asks for: none, a bar with these settings, or a line an iteration."""
    if isinstance(verbose, bool | int) and verbose >= 0:
        return [] if verbose == 0 else [ProgressBar(**of_bar)] if verbose == 1 else [IterationLines()]
    raise ValueError(f"`verbose` must be 0, 1 (a progress bar) or 2 (a line an iteration), got {shown(verbose)}.")


class PartsBar:
    """A bar over the parts of a search, its exponents and folds; None for ``total`` draws nothing."""

    def __init__(self, total: int | None, label: str = "cross-validation") -> None:
        self.total, self.done = total, 0
        text = "{task.completed} of {task.total} fits"
        self._bar = None if total is None else open_bar(None, text, transient=True)
        self._task = None if self._bar is None else self._bar.add_task(label, total=total)

    def __call__(self) -> None:
        """Count a part."""
        self.done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done)

    def close(self) -> None:
        """Give the terminal back."""
        if self._bar is not None:
            close_bar(self._bar)


def given_callbacks(callbacks: Any) -> list[Callable[[Run], Any]]:
    """The callbacks that were given: one, several or none."""
    return [] if callbacks is None else list(as_callbacks(callbacks))
