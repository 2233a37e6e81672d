"""Watching a run: its bar, and what the package logs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from projfree.run import ProgressBar


def bar(label: str) -> ProgressBar:
    """The bar of a command, which disappears at the end."""
    return ProgressBar(label=label, transient=True)


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
