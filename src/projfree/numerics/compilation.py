# mypy: allow-untyped-calls
"""How long numba has compiled in this process, so that a run can leave it out of its seconds and say so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

#: What loops over numbers are allowed, so that they are vectorised: sums in another order and fused products, but no
#: assumption that numbers are finite.
FAST = {"reassoc", "nsz", "contract"}

#: The one listener, once something that is compiled was imported.
_listeners: list[Any] = []


def watch() -> None:
    """Count compilations from now on. What numba finds on disk is not compiled, and loading it counts as work."""
    if not _listeners:
        from numba.core import event

        _listeners.append(event.TimingListener())
        event.register("numba:compile", _listeners[0])


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, and keep the machine code on disk where there is a place for it."""
    from numba import njit

    watch()

    def wrap(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # numba finds no folder that can be written to
            return njit(nogil=True, **options)(function)

    return wrap


def compile_seconds() -> float:
    """Seconds that compiling took so far, counted when it ends; zero where nothing that is compiled was imported."""
    return sum((float(listener.duration) for listener in _listeners if listener.done), start=0.0)
