"""Whom a warning is for: the line outside of the package that led to it."""

from __future__ import annotations

import sys
from pathlib import Path

#: Files of the package, whose frames a warning passes over.
PACKAGE = str(Path(__file__).parent)


def outside() -> int:
    """The ``stacklevel`` for a warning of the function that asks, so that it names the caller's own line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
