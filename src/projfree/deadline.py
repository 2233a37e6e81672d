"""The time at which a run must end, for long loops inside a step.

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

#: Time limit of a run for which no time is left: positive, so that it evaluates and returns its start.
MIN_TIME_LIMIT = sys.float_info.min

_END: ContextVar[float] = ContextVar("projfree deadline", default=math.inf)


class Expired(Exception):  # noqa: N818 - no error: the run returns to where the step began
    """The deadline has passed inside work that is useless unless it is complete, such as a Hessian."""


@contextmanager
def deadline(seconds: float | None, *, ignore_outer: bool = False) -> Iterator[None]:
    """Make `expired` True after ``seconds``, if given; of nested deadlines the earlier one counts.

    With ``ignore_outer`` the outer deadline is ignored, for final steps without which the result is of little use.

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
    """Seconds until the deadline, zero once it has passed; infinity without one."""
    return max(_END.get() - time.monotonic(), 0.0)


def expired() -> bool:
    """Whether the deadline has passed; False without one, and then no clock is read.

    A loop that checks this between its iterations returns what it has: a feasible point, a proven bound.
    """
    return (end := _END.get()) < math.inf and time.monotonic() >= end


def countdown(seconds: float | None) -> Callable[[], float | None]:
    """A function that returns the rest of a time limit that starts now, for runs that share it; None without a limit.

    The rest is never zero, because every run needs a positive limit.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    return lambda: None if seconds is None else max(end - time.monotonic(), MIN_TIME_LIMIT)
