"""The lowest place of a function on a grid, found by climbing down with large steps and then with small ones."""

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
                if 0 <= k < count and at(k) < at(best) - TIE * abs(at(best)):
                    best, moved = k, True
    at(best)
    return best


def rise(score: Callable[[float], float], count: int, step: int, ended: Callable[[int, int], float | None]) -> float:
    """The place of a low score, from those of every so manieth from 0 upwards: the bottom of a parabola.

    ``ended(best, last)`` says where to go no further: the score to expect of the next place, or None to go on.

    Examples
    --------
    >>> rise(lambda k: (k - 3) ** 2, count=40, step=2, ended=lambda best, last: 1.0 if last > best else None)
    3.0
    """
    scores = [score(0)]
    best = 0
    while step * len(scores) < count:
        ahead = ended(step * best, step * (len(scores) - 1))
        if ahead is not None:
            scores.append(ahead)
            break
        scores.append(score(step * len(scores)))
        if scores[-1] < scores[best] - TIE * abs(scores[best]):
            best = len(scores) - 1
    if best < len(scores) - 1 and scores[best + 1] == math.inf:
        return _short_of(score, float(step * best), scores[best], float(step))
    away = _bottom(*scores[best - 1 : best + 2]) if 0 < best < len(scores) - 1 else 0.0
    return float(step * best + round(step * away))


def _short_of(score: Callable[[float], float], best: float, lowest: float, width: float) -> float:
    """The place of the lowest score up to where scores become infinite, by halving; a score may fall until there."""
    for _ in range(HALVINGS):
        width /= 2.0
        value = score(best + width)
        if value < lowest:
            best, lowest = best + width, value
    return best


def _bottom(left: float, middle: float, right: float) -> float:
    """How far from the middle a parabola through three places is lowest, over their distance."""
    bend = left - 2.0 * middle + right
    return 0.5 * (left - right) / bend if 0.0 < bend < math.inf else 0.0
