"""What benchmarks share: how they print, and one thread for every library."""

from __future__ import annotations

import os
import sys

from rich.console import Console


def console() -> Console:
    """A console that is 120 columns wide also where the output is a file."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=120)


def with_one_thread() -> None:
    """Start the process again with one thread for every library, which read their variables when they are loaded."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    if any(os.environ.get(name) != "1" for name in names):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | dict.fromkeys(names, "1"))
