"""What is kept on disk of the run of a fit."""

from __future__ import annotations

import os
from typing import Any

from projfree import persist
from projfree.checks import shown
from projfree.run import Checkpoint, Run
from projfree.run.checkpoint import OnInterrupt


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
