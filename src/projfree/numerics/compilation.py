# mypy: allow-untyped-calls
"""How long numba has compiled in this process, so that a run can leave it out of its seconds and say so."""

from __future__ import annotations

import time
from functools import cache
from typing import Any


@cache
def watch() -> Any:
    """Count compilations from now on; modules with compiled functions call this when they are imported.

    What numba finds on disk is not compiled, and loading it counts as work.
    """
    from numba.core import event

    listener = event.TimingListener()
    event.register("numba:compile", listener)
    return listener


def compile_seconds() -> float:
    """Seconds that compiling took so far; zero where nothing that is compiled was imported."""
    listener = watch() if watch.cache_info().currsize else None
    return float(listener.duration) if listener is not None and listener.done else 0.0


def working_clock() -> float:
    """A clock in seconds that stands still while numba compiles.

    It may jump back where another thread compiles, because a compilation is counted when it ends.
    """
    return time.perf_counter() - compile_seconds()
