"""Roots of increasing functions by Newton or secant steps, safeguarded by bisection; one or several at a time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator, Sequence

#: ``fun(x) -> (value, slope, noise)``: an increasing function, its derivative and the rounding error of its value.
Look = tuple[float, float, float]
Increasing = Callable[[float], Look]

#: Bisection alone takes 53 for all digits, and every second step bisects.
REFINEMENTS = 100


class NoRootError(ValueError):
    """The function does not change sign within the range that was searched."""


def find_root(fun: Increasing, start: float, low: float = -math.inf, high: float = math.inf) -> float:
    """The root of ``fun`` in ``[low, high]``, or the end nearest to it.

    The search stops once the value is within its noise, or the bracket within rounding, of zero. A slope that is not
    positive is replaced by that of the secant. Where an end is infinite the bracket is found by steps that double;
    `NoRootError` where there is no root among the floating-point numbers.
    """
    return find_roots(lambda places: [fun(places[0])], [start], [low], [high])[0]


def find_roots(
    fun: Callable[[Sequence[float]], Sequence[Look]],
    starts: Sequence[float],
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> list[float]:
    """`find_root` for several functions at once, which ``fun`` evaluates at one place each."""
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
    """Yield places, receive looks at them and return the root."""
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
            if reach > sys.float_info.max / 8:  # intercepts of huge predictions are nearly as large
                raise NoRootError
            if halved and abs(newton - x) <= reach:
                x = newton
            else:
                x, reach = x + sign * reach, 2.0 * reach
            continue
        refinements += 1
        if high - low <= 2.0 * sys.float_info.epsilon * max(abs(low), abs(high)):  # neighbouring numbers
            return end if end in untried else x
        if newton == x:  # the neighbour closes the bracket
            newton = math.nextafter(x, end)
        # An end that was never tried may be the answer. A step that did not halve the value gives way to bisection, so
        # that the search ends.
        if not low < newton < high and end in untried:
            x = end
        else:
            x = newton if low < newton < high and halved else low + (high - low) / 2
    return x
