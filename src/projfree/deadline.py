"""The time at which a run must end, for loops inside a step that may take long.

Loops of solvers and passes over blocks of rows check it; a limit may be exceeded by one inner iteration. Threads of
`projfree.runtime` have the deadline of the thread that they work for.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Seconds that a run gets of a time limit which others have used up: enough to return where it begins.
LEAST_LEFT = sys.float_info.min

_END: ContextVar[float] = ContextVar("projfree deadline", default=math.inf)


class Expired(Exception):  # noqa: N818 - no error: the run returns to where the step began
    """The deadline has passed inside work that is worth nothing unless it is finished, such as a Hessian."""


@contextmanager
def deadline(seconds: float | None, *, beyond: bool = False) -> Iterator[None]:
    """Let `expired` be True from so many seconds on, if any; within another deadline the earlier of the two counts.

    With ``beyond`` that one does not count: for the last steps of an answer, which is worth little without them.

    Examples
    --------
    >>> from projfree.deadline import deadline, expired
    >>> with deadline(0.0):
    ...     expired()
    True
    >>> expired()
    False
    """
    own = math.inf if seconds is None else time.monotonic() + seconds
    token = _END.set(own if beyond else min(_END.get(), own))
    try:
        yield
    finally:
        _END.reset(token)


def remaining() -> float:
    """Seconds until the deadline, zero once it has passed; infinity without one."""
    return max(_END.get() - time.monotonic(), 0.0)


def expired() -> bool:
    """Whether the deadline has passed; False without one, and then no clock is read.

    A loop that checks this between its iterations returns what it has: a feasible point, a proven bound.
    """
    return (end := _END.get()) < math.inf and time.monotonic() >= end


def countdown(seconds: float | None) -> Callable[[], float | None]:
    """A function that returns what is left of a time limit that begins now, for runs that share it; None without one.

    It is never zero, because every run gets some time.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    return lambda: None if seconds is None else max(end - time.monotonic(), LEAST_LEFT)
