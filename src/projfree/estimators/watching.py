"""What goes along with the run of a fit: what is shown of it, what the user calls, and what is kept on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from projfree import persist
from projfree.checks import shown
from projfree.run import Checkpoint, ProgressBar, Run
from projfree.run.callbacks import IterationLines, open_bar
from projfree.run.checkpoint import OnInterrupt


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
            self._bar.stop()


def given_callbacks(callbacks: Any) -> list[Callable[[Run], Any]]:
    """The callbacks that were given: one, several or none."""
    several = [] if callbacks is None else [callbacks] if callable(callbacks) else list(callbacks)
    for callback in several:
        if not callable(callback):
            raise TypeError(f"`callbacks` must be functions of a `Run`, got {shown(callback)}.")
    return several


class Kept(OnInterrupt):
    """A run that is written to a folder now and then, and when it is interrupted; a later fit goes on from there.

    Parameters
    ----------
    checkpoint : path or Checkpoint
        The folder, or a `Checkpoint` that also says how often it is written.
    """

    def __init__(self, checkpoint: Any) -> None:
        if not isinstance(checkpoint, str | os.PathLike | Checkpoint):
            raise TypeError(f"`checkpoint` must be a folder or a `Checkpoint`, got {shown(checkpoint)}.")
        self.each = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        super().__init__(self.each.path)

    @property
    def state(self) -> str | None:
        """Where to go on from; None where nothing was finished there."""
        return os.fspath(self.each.path) if persist.exists(self.each.path) else None

    def __call__(self, run: Run) -> Any:
        """Write the run when it is due."""
        return self.each(run)

    def write(self, run: Run) -> None:
        """Write the run with what the checkpoint notes."""
        self.each.write(run)
