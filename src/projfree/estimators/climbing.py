"""The lowest place of a function on a grid, of which few places are looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

#: Scores that differ by less than this part are equal, so that rounding never decides.
TIE = 1e-6
#: How often the way to an infinite score is halved.
HALVINGS = 2


def climb(score: Callable[[int], float], start: int, count: int, steps: Sequence[int] = (6, 2, 1)) -> int:
    """The place of a low score among ``0 .. count - 1``; each place is looked at once.

    Examples
    --------
    >>> climb(lambda k: (k - 17) ** 2, start=3, count=40)
    17
    """
    known: dict[int, float] = {}

    def at(k: int) -> float:
        if k not in known:
            known[k] = score(k)
        return known[k]

    best = min(max(start, 0), count - 1)
    for step in steps:
        moved = True
        while moved:
            moved = False
            for k in (best - step, best + step):
                if 0 <= k < count and _lower(at(k), at(best)):
                    best, moved = k, True
    at(best)
    return best


def ascend(
    score: Callable[[float], float],
    start: int,
    ends: tuple[int, int],
    ended: Callable[[float, float], float | None],
) -> float:
    """The place of a low score: upwards from a start, and below it only if nothing above was lower.

    It is half a place aside where the bottom of a parabola is nearer to that.
    ``ended(best, last)`` says where to go no further: the score to expect of the next place, or None to go on.

    Examples
    --------
    >>> ascend(lambda k: (k - 3) ** 2, 0, (0, 40), lambda best, last: 4.0 if last > best + 1 else None)
    3.0
    """
    known, best, last = {start: score(start)}, start, start
    while last < ends[1]:
        ahead = ended(best, last)
        last += 1
        known[last] = score(last) if ahead is None else ahead
        if ahead is not None:
            break
        best = last if _lower(known[last], known[best]) else best
    while best == min(known) and best > ends[0]:
        known[best - 1] = score(best - 1)
        if known[best] < math.inf and not _lower(known[best - 1], known[best]):
            break
        best -= 1
    if known.get(best + 1) == math.inf:
        return _short_of(score, float(best), known[best])
    return best + _bottom(*[known.get(best + move, math.inf) for move in (-1, 0, 1)])


def _lower(value: float, than: float) -> bool:
    return value < than - TIE * abs(than) if than < math.inf else value < than


def _short_of(score: Callable[[float], float], best: float, lowest: float) -> float:
    """The place of the lowest score up to where scores become infinite, by halving; a score may fall until there."""
    width = 1.0
    for _ in range(HALVINGS):
        width /= 2.0
        value = score(best + width)
        if value < lowest:
            best, lowest = best + width, value
    return best


def _bottom(left: float, middle: float, right: float) -> float:
    """How far from the middle a parabola through three places is lowest, to a half."""
    bend = left - 2.0 * middle + right
    return 0.5 * round((left - right) / bend) if 0.0 < bend < math.inf else 0.0
