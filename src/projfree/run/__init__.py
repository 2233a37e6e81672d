"""The run: the only loop, and what it returns."""

from projfree.run.callbacks import ProgressBar
from projfree.run.certificate import Certificate, Verification
from projfree.run.checkpoint import Checkpoint
from projfree.run.loop import iterate, minimize
from projfree.run.path import Path, path
from projfree.run.progress import Run
from projfree.run.result import Result
from projfree.run.status import Status
from projfree.run.trace import Trace

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
