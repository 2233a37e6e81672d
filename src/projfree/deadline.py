"""The time at which a run must end, for loops inside a step that may take long.

Loops of solvers and passes over blocks of rows check it; a limit may be exceeded by one inner iteration.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

#: Seconds that a run gets of a time limit which others have used up.
LEAST_LEFT = 1e-9

_END: ContextVar[float] = ContextVar("projfree deadline", default=math.inf)


class Expired(Exception):  # noqa: N818 - no error: the run returns to where the step began
    """The deadline has passed inside work that is worth nothing unless it is finished, such as a Hessian."""


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


def until(end: float) -> AbstractContextManager[None]:
    """A deadline by its reading of the clock, as `ends` returns it."""
    return _ending(min(_END.get(), end))


def unhurried() -> AbstractContextManager[None]:
    """Ignore any deadline: for the last steps of an answer, which are short and without which it is worth little."""
    return _ending(math.inf)


@contextmanager
def _ending(end: float) -> Iterator[None]:
    token = _END.set(end)
    try:
        yield
    finally:
        _END.reset(token)


def ends() -> float:
    """The reading of the clock at the deadline, infinity without one.

    For threads and for processes on the same machine, which read the same clock and do not know of the deadline.
    """
    return _END.get()


def expired() -> bool:
    """Whether the deadline has passed; False without one.

    A loop that checks this between its iterations returns what it has, which must be as valid as its final answer: a
    feasible point, a proven bound. Without a deadline no clock is read.
    """
    return remaining() <= 0.0


def remaining() -> float:
    """Seconds until the deadline, zero once it has passed; infinity without one."""
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
    """A function that returns what is left of a time limit that begins now, for runs that share it; None without one.

    It is never zero, because every run gets some time: enough to return where it begins.
    """
    if seconds is None:
        return lambda: None
    end = time.monotonic() + seconds
    return lambda: max(end - time.monotonic(), LEAST_LEFT)
