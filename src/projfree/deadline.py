"""The time at which a run must end, for the loops inside of a step that may take long."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

#: Seconds that a run gets of a time limit which others have used up.
LEAST_LEFT = 1e-9

_END: ContextVar[float] = ContextVar("projfree deadline", default=math.inf)


class Expired(Exception):  # noqa: N818 - no error: the run goes back to where the step began
    """The deadline has passed inside of work that is worth nothing unless it is finished, such as a Hessian."""


def deadline(seconds: float) -> AbstractContextManager[None]:
    """Let `expired` be True from so many seconds on; within another deadline the earlier of the two counts.

    Threads that are started inside do not know of it.

    Examples
    --------
    >>> from projfree.deadline import deadline, expired
    >>> with deadline(0.0):
    ...     expired()
    True
    >>> expired()
    False
    """
    return until(time.monotonic() + seconds)


@contextmanager
def until(end: float) -> Iterator[None]:
    """A deadline by its reading of the clock, as `ends` tells it.

    Examples
    --------
    >>> from projfree.deadline import deadline, ends, expired, until
    >>> with deadline(60.0):
    ...     end = ends()
    >>> with until(end):
    ...     expired(), ends() == end
    (False, True)
    """
    token = _END.set(min(_END.get(), end))
    try:
        yield
    finally:
        _END.reset(token)


def ends() -> float:
    """The reading of the clock at the deadline, infinity where there is none.

    For threads and for processes on the same machine, which read the same clock and do not know of the deadline.
    """
    return _END.get()


@contextmanager
def unhurried() -> Iterator[None]:
    """Let no deadline count: for the last steps of an answer, which are short and without which it is worth little.

    Examples
    --------
    >>> from projfree.deadline import deadline, expired, unhurried
    >>> with deadline(0.0), unhurried():
    ...     expired()
    False
    """
    token = _END.set(math.inf)
    try:
        yield
    finally:
        _END.reset(token)


def expired() -> bool:
    """Whether the deadline has passed; False where there is none.

    A loop that asks this between its turns ends with what it has, which must be as valid as its answer: a feasible
    point, a proven bound. Without a deadline no clock is read.
    """
    end = _END.get()
    return end < math.inf and time.monotonic() >= end


def remaining() -> float:
    """Seconds until the deadline, zero once it has passed; infinity, without a look at the clock, where there is none.

    Examples
    --------
    >>> from projfree.deadline import deadline, remaining
    >>> with deadline(0.0):
    ...     remaining()
    0.0
    >>> remaining()
    inf
    """
    end = _END.get()
    return max(end - time.monotonic(), 0.0) if end < math.inf else math.inf


def stopper() -> Callable[[], None]:
    """A function that raises `Expired` once the deadline of this thread has passed, for threads that it starts."""
    end = _END.get()

    def stop() -> None:
        if end < math.inf and time.monotonic() >= end:
            raise Expired

    return stop


def countdown(seconds: float | None) -> Callable[[], float | None]:
    """A function that says how much is left of a time limit that begins now, for runs that share it; None without one.

    It is never zero, because every run gets some time: enough to say where it begins.

    Examples
    --------
    >>> from projfree.deadline import countdown
    >>> left = countdown(60.0)
    >>> 0.0 < left() <= 60.0, countdown(None)() is None
    (True, True)
    """
    if seconds is None:
        return lambda: None
    end = time.monotonic() + seconds
    return lambda: max(end - time.monotonic(), LEAST_LEFT)
