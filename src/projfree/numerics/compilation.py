# mypy: allow-untyped-calls
"""Compilation with numba, and its duration, which runs report apart from their own."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import current_thread, main_thread
from typing import Any, ClassVar

log = logging.getLogger(__name__)

#: Flags of fast maths with which loops are vectorised: sums in another order and fused products, but no assumption
#: that numbers are finite.
FAST = {"reassoc", "nsz", "contract"}

#: The listener, once a compiled function has been imported.
_listeners: list[Any] = []


def watch() -> None:
    """Measure compilations from now on; loading compiled code from disk is not one.

    An interrupt is delivered after the compilation, because LLVM calls Python functions in which it would be lost.
    """
    if _listeners:
        return
    from numba.core import event

    class Compilations(event.TimingListener):
        #: One for each compilation of the main thread, which alone takes interrupts; others may overlap with it.
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
    """Delay an interrupt that arrives in the block until its end; in the main thread only.

    An interrupted import of numba cannot be repeated in the same process.
    """
    arrived, usual = list[int](), signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(usual):  # interrupts are ignored, or end the process
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
    """Compile a function on its first call, and cache the machine code on disk where a folder is writable."""
    with held_interrupt():
        from numba import njit

    watch()

    def wrap(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # numba finds no folder that can be written to
            return njit(nogil=True, **options)(function)

    return wrap


def compile_seconds() -> float:
    """Seconds of all finished compilations; zero if no compiled function has been imported."""
    return sum((float(listener.duration) for listener in _listeners if listener.done), start=0.0)
