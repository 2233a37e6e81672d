"""Roots of increasing functions by Newton steps that bisection guards, one or several at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired

#: ``fun(x) -> (value, slope, noise)``: an increasing function, its derivative and the rounding of its value.
Look = tuple[float, float, float]
Increasing = Callable[[float], Look]
#: A search yields places, receives looks at them and returns the root, so that several can go on together.
Steps = Generator[float, Look, float]

#: A bracket is grown by doubling so often, then by a larger factor up to the range of doubles: predictions may be huge.
DOUBLINGS, LEAP, FARTHEST = 60, 1e3, 1e300
NEWTON_STEPS = 20
REFINEMENTS = 100  # bisection alone takes 53 for all digits, and every second step bisects


class NoRootError(ValueError):
    """The function does not change sign within the range that was searched."""


def bracketed_root(fun: Increasing, low: float, high: float, start: float) -> float:
    """The root of ``fun`` in ``[low, high]``, or the end nearest to it.

    The search stops once the value is within its noise, or the bracket within rounding, of zero.
    """
    return _together(lambda places: [fun(places[0])], [_in_bracket(low, high, start)])[0]


def increasing_root(fun: Increasing, start: float) -> float:
    """The root of ``fun`` on the whole line; `NoRootError` where there is none within 1e300.

    From a good start Newton alone ends it; once a step fails to halve the value, a bracket is grown by doubling.
    """
    return _together(lambda places: [fun(places[0])], [_on_line(start)])[0]


def increasing_roots(looks: Callable[[Sequence[float]], Sequence[Look]], starts: Sequence[float]) -> list[float]:
    """`increasing_root` of several functions at once: each look is at one place of all of them."""
    return _together(looks, [_on_line(start) for start in starts])


def falling_roots(fun: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """The root in ``[low, high]`` of each of several decreasing functions whose slopes are not known.

    ``fun`` maps the vector of arguments to the vector of values; secants take the place of slopes. At the deadline the
    last places are returned.
    """
    last: list[tuple[float, float] | None] = [None] * len(low)

    def look(places: Sequence[float]) -> list[Look]:
        found: list[Look] = []
        if expired():  # a value of zero ends a search
            return [(0.0, 0.0, 0.0)] * len(places)
        for j, (x, value) in enumerate(zip(places, (-fun(np.array(places))).tolist(), strict=True)):
            before, slope = last[j], 0.0
            if before is not None and x != before[0]:
                slope = (value - before[1]) / (x - before[0])
            last[j] = x, value
            found.append((value, slope, 0.0))
        return found

    ends = zip(low.tolist(), high.tolist(), strict=True)
    return np.array(_together(look, [_in_bracket(a, b, 0.5 * (a + b)) for a, b in ends]))


def _together(looks: Callable[[Sequence[float]], Sequence[Look]], searches: list[Steps]) -> list[float]:
    """Run several searches in step."""
    places = [next(search) for search in searches]
    running = dict(enumerate(searches))
    while running:
        found = looks(places)
        for j, search in list(running.items()):
            try:
                places[j] = search.send(found[j])
            except StopIteration as end:
                places[j] = end.value
                del running[j]
    return places


def _in_bracket(low: float, high: float, start: float) -> Steps:
    ends, x, previous = {low, high}, min(max(start, low), high), math.inf
    for _ in range(REFINEMENTS):
        value, slope, noise = yield x
        if abs(value) <= noise or (value < 0 and x == high) or (value > 0 and x == low):
            return x
        low, high = (low, x) if value > 0 else (x, high)
        ends.discard(x)
        if high - low <= 4e-16 * max(abs(low), abs(high)):
            return x
        newton = x - value / slope if slope > 0 else -math.copysign(math.inf, value)
        if newton == x:  # a step below rounding: the neighbour closes the bracket
            newton = math.nextafter(x, low if value > 0 else high)
        # An end of the interval that was never tried may be the answer; a step that does not halve the value
        # gives way to bisection, so that the loop ends.
        if not low < newton < high and (end := low if newton <= low else high) in ends:
            x = end
        else:
            x = newton if low < newton < high and abs(value) <= previous / 2 else (low + high) / 2
        previous = abs(value)
    return x


def _on_line(start: float) -> Steps:
    x = start
    value, slope, noise = yield x
    for _ in range(NEWTON_STEPS):
        if abs(value) <= noise:
            return x
        if not slope > 0 or not abs(value / slope) <= 64.0:  # farther away, doubling is quicker
            break
        trial = x - value / slope
        if trial == x:
            return trial
        new_value, new_slope, noise = yield trial
        if not abs(new_value) <= abs(value) / 2:
            break
        x, value, slope = trial, new_value, new_slope
    return (yield from _by_expansion(x, value))


def _by_expansion(start: float, value: float) -> Steps:
    sign, inner, reach, doubled = (-1.0 if value > 0 else 1.0), start, 1.0, 0
    while reach <= FARTHEST:
        outer = start + sign * reach
        value_out, _, noise_out = yield outer
        if value_out * sign >= -noise_out:
            secant = outer - value_out * (outer - inner) / (value_out - value) if value_out != value else inner
            return (yield from _in_bracket(min(inner, outer), max(inner, outer), secant))
        inner, value, doubled = outer, value_out, doubled + 1
        reach *= 2.0 if doubled < DOUBLINGS else LEAP
    raise NoRootError
