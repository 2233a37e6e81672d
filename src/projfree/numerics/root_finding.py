"""Roots of one or several increasing functions by Newton or secant steps, safeguarded by bisection."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator, Sequence

#: ``fun(x) -> (value, slope, noise)``: value and derivative of an increasing function, rounding error of the value.
Look = tuple[float, float, float]
Increasing = Callable[[float], Look]

#: Maximum number of steps in a finite bracket; bisection takes 53, and steps that do not halve the value bisect next.
REFINEMENTS = 100


class NoRootError(ValueError):
    """Raised if the function does not change sign in the search range."""


def find_root(fun: Increasing, start: float, low: float = -math.inf, high: float = math.inf) -> float:
    """Return the root of ``fun`` in ``[low, high]``, or the endpoint nearest to it.

    The search stops when the value is at most its noise, or the bracket contains no further floating-point number. A
    slope that is not positive is replaced by that of the secant. If an endpoint is infinite, steps of doubling length
    search for a bracket; `NoRootError` is raised if there is none among the floating-point numbers.
    """
    return find_roots(lambda places: [fun(places[0])], [start], [low], [high])[0]


def find_roots(
    fun: Callable[[Sequence[float]], Sequence[Look]],
    starts: Sequence[float],
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> list[float]:
    """Vectorised `find_root`: ``fun`` evaluates all functions at a sequence of arguments, one per function."""
    low = [-math.inf] * len(starts) if low is None else low
    high = [math.inf] * len(starts) if high is None else high
    searches = [_search(*ends) for ends in zip(starts, low, high, strict=True)]
    places = [next(search) for search in searches]
    running = dict(enumerate(searches))
    while running:
        looks = fun(places)
        for j, search in list(running.items()):
            try:
                places[j] = search.send(looks[j])
            except StopIteration as end:
                places[j] = end.value
                del running[j]
    return places


def _search(start: float, low: float, high: float) -> Generator[float, Look, float]:
    """Yield arguments, receive (value, slope, noise) at them and return the root."""
    x, untried, reach = min(max(start, low), high), {low, high}, 1.0
    last_x, last_value, refinements = math.nan, math.nan, 0
    while refinements < REFINEMENTS:
        value, slope, noise = yield x
        if abs(value) <= noise or (value < 0 and x == high) or (value > 0 and x == low):
            return x
        low, high = (low, x) if value > 0 else (x, high)
        untried.discard(x)
        if not slope > 0 and x != last_x:
            slope = (value - last_value) / (x - last_x)
        newton = x - value / slope if slope > 0 else -math.copysign(math.inf, value)
        halved = not abs(value) > abs(last_value) / 2
        last_x, last_value = x, value
        end, sign = (low, -1.0) if value > 0 else (high, 1.0)
        if math.isinf(end):
            if newton == x:  # the step is below rounding
                return x
            if reach > sys.float_info.max / 8:  # the roots for huge predictions are nearly as large
                raise NoRootError
            if halved and abs(newton - x) <= reach:
                x = newton
            else:
                x, reach = x + sign * reach, 2.0 * reach
            continue
        refinements += 1
        if high - low <= 2.0 * sys.float_info.epsilon * max(abs(low), abs(high)):  # adjacent floating-point numbers
            return end if end in untried else x
        if newton == x:  # the adjacent number closes the bracket
            newton = math.nextafter(x, end)
        # An endpoint that was not evaluated may be the root. Bisect if the last step did not halve the value, so that
        # the search terminates.
        if not low < newton < high and end in untried:
            x = end
        else:
            x = newton if low < newton < high and halved else low + (high - low) / 2
    return x
