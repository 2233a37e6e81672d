# mypy: allow-untyped-calls
"""Compilation with numba, and its duration, which runs report separately."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import current_thread, main_thread
from typing import Any, ClassVar

log = logging.getLogger(__name__)

#: Fast-math flags for vectorised loops: they allow reordered sums and fused products, but do not assume finite numbers.
FAST = {"reassoc", "nsz", "contract"}

#: The listener for compilations; empty until a compiled function is imported.
_listeners: list[Any] = []


def watch() -> None:
    """Start to measure the time of compilations, without loading compiled code from disk.

    An interrupt is delivered after the compilation, because LLVM calls Python functions in which it would be lost.
    """
    if _listeners:
        return
    from numba.core import event

    class Compilations(event.TimingListener):
        #: One for each compilation in the main thread, the only one that receives interrupts; others run concurrently.
        holds: ClassVar[list[ExitStack]] = []

        def on_start(self, event: Any) -> None:
            if current_thread() is main_thread():
                self.holds.append(ExitStack())
                self.holds[-1].enter_context(held_interrupt())
            super().on_start(event)

        def on_end(self, event: Any) -> None:
            super().on_end(event)
            if current_thread() is main_thread():
                self.holds.pop().close()

    _listeners.append(Compilations())
    event.register("numba:compile", _listeners[0])


@contextmanager
def held_interrupt() -> Iterator[None]:
    """Delay an interrupt (SIGINT) until the end of the block; has no effect outside the main thread.

    An interrupted import of numba cannot be repeated in the same process.
    """
    arrived, usual = list[int](), signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(usual):  # ignored, or the process ends
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if arrived:
            signal.raise_signal(signal.SIGINT)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function on its first call and caches it on disk if a folder is writable."""
    with held_interrupt():
        from numba import njit

    watch()

    def wrap(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # there is no writable folder for the cache
            return njit(nogil=True, **options)(function)

    return wrap


def compile_seconds() -> float:
    """Return the total time of all completed compilations in seconds."""
    return sum((float(listener.duration) for listener in _listeners if listener.done), start=0.0)
