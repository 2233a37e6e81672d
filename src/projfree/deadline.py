"""Deadline of a run, for long loops inside a step.

Loops of solvers and passes over blocks of rows check it; a time limit may be exceeded by one inner iteration. Threads
of `projfree.runtime` inherit the deadline of the calling thread.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Time limit of a run after the deadline: positive, so that the run evaluates and returns its starting point.
MIN_TIME_LIMIT = sys.float_info.min

_END: ContextVar[float] = ContextVar("projfree deadline", default=math.inf)


class Expired(Exception):  # noqa: N818 - no error: the run returns to where the step began
    """The deadline passed during a computation that has no partial result, such as a Hessian."""


@contextmanager
def deadline(seconds: float | None, *, ignore_outer: bool = False) -> Iterator[None]:
    """Make `expired` return True after ``seconds``, if given; of nested deadlines the earliest applies.

    With ``ignore_outer`` outer deadlines are ignored, for final steps without which the result is of little use.

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
    token = _END.set(own if ignore_outer else min(_END.get(), own))
    try:
        yield
    finally:
        _END.reset(token)


def remaining() -> float:
    """Return the seconds until the deadline, zero after it; infinity without a deadline."""
    return max(_END.get() - time.monotonic(), 0.0)


def expired() -> bool:
    """Return whether the deadline has passed; without a deadline return False and read no clock.

    A loop that checks this between its iterations returns its current result: a feasible point, a valid bound.
    """
    return (end := _END.get()) < math.inf and time.monotonic() >= end


def countdown(seconds: float | None) -> Callable[[], float | None]:
    """Return a function that returns the remaining seconds of a time limit that starts now; None without a limit.

    Several runs can share the limit. The result is never zero, because every run needs a positive limit.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    return lambda: None if seconds is None else max(end - time.monotonic(), MIN_TIME_LIMIT)
