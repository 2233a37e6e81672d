"""Watching a run: its bar, and what Ctrl-C leaves behind."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from projfree.run import ProgressBar, Run
from projfree.run.checkpoint import write


def bar(label: str) -> ProgressBar:
    """The bar of a command, which disappears at the end."""
    return ProgressBar(label=label, transient=True)


class Keeper:
    """Writes the run down when it is interrupted, before anything else is done with it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wrote = folder, False

    def __call__(self, run: Run) -> None:
        """Nothing to do while all is well."""

    def interrupted(self, run: Run) -> None:
        """Write a checkpoint, unless the run had not begun."""
        if run.iteration > 0:
            write(self.folder, run)
            self.wrote = True


@contextmanager
def logged(wanted: bool) -> Iterator[None]:
    """Show what the package logs, such as compilations, on the error stream."""
    if not wanted:
        yield
        return
    log, shown = logging.getLogger("projfree"), logging.StreamHandler(sys.stderr)
    level = log.level
    log.addHandler(shown)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.setLevel(level)
