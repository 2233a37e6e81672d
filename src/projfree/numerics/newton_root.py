"""The root of one increasing function whose slope is known, by Newton steps that bisection guards."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence

#: ``fun(x) -> (value, slope, noise)``: an increasing function, its derivative and the rounding of its value.
Look = tuple[float, float, float]
Increasing = Callable[[float], Look]
#: A search that asks for looks at places and ends with the root, so that several can go on together.
Steps = Generator[float, Look, float]

#: A bracket is grown by doubling so often, then by a larger factor up to the range of doubles: predictions may be huge.
DOUBLINGS, LEAP, FARTHEST = 60, 1e3, 1e300
NEWTON_STEPS = 20
REFINEMENTS = 100


class NoRootError(ValueError):
    """The function does not change sign within the range that was searched."""


def bracketed_root(fun: Increasing, low: float, high: float, start: float) -> float:
    """The root of ``fun`` in ``[low, high]``.

    Where the sign does not change within the interval the end nearest to the root is returned. The search stops
    once the value is within its noise, or the bracket within rounding, of zero.
    """
    return _driven(fun, _in_bracket(low, high, start))


def _driven(fun: Increasing, steps: Steps) -> float:
    """Run a search on its function."""
    try:
        x = next(steps)
        while True:
            x = steps.send(fun(x))
    except StopIteration as end:
        root: float = end.value
        return root


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


def increasing_root(fun: Increasing, start: float, width: float = 1.0, bend: float = math.inf) -> float:
    r"""The root of ``fun`` on the whole line; `NoRootError` where there is none within 1e300.

    From a good start Newton alone ends it; once a step fails to halve the value, a bracket is grown by doubling. Where
    the slope changes by at most ``bend`` times itself a unit, what a step leaves is known beforehand, and a last look
    that would only find noise is spared.
    """
    return _driven(fun, _on_line(start, width, bend))


def increasing_roots(
    looks: Callable[[Sequence[float]], Sequence[Look]], starts: Sequence[float], bend: float = math.inf
) -> list[float]:
    """`increasing_root` of several functions at once: each look is at one place of all of them."""
    searches = {j: _on_line(start, 1.0, bend) for j, start in enumerate(starts)}
    places = [next(search) for search in searches.values()]
    while searches:
        found = looks(places)
        for j, search in list(searches.items()):
            try:
                places[j] = search.send(found[j])
            except StopIteration as end:
                places[j] = end.value
                del searches[j]
    return places


def _on_line(start: float, width: float, bend: float) -> Steps:
    x = start
    value, slope, noise = yield x
    for _ in range(NEWTON_STEPS):
        if abs(value) <= noise:
            return x
        if not slope > 0 or not abs(value / slope) <= 64 * width:
            break
        trial = x - value / slope
        if trial == x or _settles(trial - x, slope, noise, bend):
            return trial
        new_value, new_slope, noise = yield trial
        if not abs(new_value) <= abs(value) / 2:
            break
        x, value, slope = trial, new_value, new_slope
    return (yield from _by_expansion(x, value, width))


def _settles(step: float, slope: float, noise: float, bend: float) -> bool:
    """Whether the value after a Newton step is noise, by the mean value theorem for the slope."""
    return bend * abs(step) <= 1.0 and 0.5 * bend * step**2 * slope * math.e <= noise


def _by_expansion(start: float, value: float, width: float) -> Steps:
    sign, inner, reach = (-1.0 if value > 0 else 1.0), start, width
    doubled = 0
    while reach <= FARTHEST:
        outer = start + sign * reach
        value_out, _, noise_out = yield outer
        if value_out * sign >= -noise_out:
            between = _secant(inner, value, outer, value_out)
            return (yield from _in_bracket(min(inner, outer), max(inner, outer), between))
        inner, value, doubled = outer, value_out, doubled + 1
        reach *= 2.0 if doubled < DOUBLINGS else LEAP
    raise NoRootError


def _secant(a: float, fa: float, b: float, fb: float) -> float:
    return b - fb * (b - a) / (fb - fa) if fb != fa else (a + b) / 2
