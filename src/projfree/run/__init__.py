"""The run: the only loop, and what it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.first_use import on_first_use
from projfree.run.callbacks import ProgressBar
from projfree.run.certificate import Certificate, Verification
from projfree.run.loop import iterate, minimize
from projfree.run.path import Path, path
from projfree.run.progress import Run
from projfree.run.result import Result
from projfree.run.status import Status
from projfree.run.trace import Trace

if TYPE_CHECKING:
    from projfree.run.checkpoint import Checkpoint

__all__ = [
    "Certificate",
    "Checkpoint",
    "Path",
    "ProgressBar",
    "Result",
    "Run",
    "Status",
    "Trace",
    "Verification",
    "iterate",
    "minimize",
    "path",
]

__getattr__, __dir__ = on_first_use(__name__, {".checkpoint": ("Checkpoint",)})
