"""The lowest place of a function on a grid, found by climbing down with large steps and then with small ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

#: Scores that differ by less than this part are equal, so that rounding never decides.
TIE = 1e-6


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


def rise(score: Callable[[int], float], count: int, patience: int) -> int:
    """The place of the lowest score from 0 upwards, until so many places in a row are no lower or one is infinite.

    Examples
    --------
    >>> rise(lambda k: (k - 3) ** 2, count=40, patience=2)
    3
    """
    best, lowest = 0, score(0)
    for k in range(1, count):
        value = score(k)
        if value < lowest - TIE * abs(lowest):
            best, lowest = k, value
        elif k - best >= patience or value == math.inf:
            break
    return best
