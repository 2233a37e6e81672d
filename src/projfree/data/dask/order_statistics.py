"""The median of numbers that cannot be gathered, from counts of how many are at most some places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from projfree.checks import Array

#: Places that a round counts at for each output: their distance shrinks by this factor.
PLACES = 255


def middle(count_below: Callable[[Array], Array], n: int, outputs: int) -> Array:
    """The median of ``n`` numbers for each output, exactly.

    ``count_below(places)`` says how many are at most each of the places, of shape ``(m, outputs)``. Floating-point
    numbers are ordered as the integers that their bits stand for, so that eight rounds find any of them.
    """
    lower = _order_statistic(count_below, (n - 1) // 2, outputs)
    upper = lower if n % 2 else _order_statistic(count_below, n // 2, outputs)
    return np.asarray(0.5 * lower + 0.5 * upper)


def _order_statistic(count_below: Callable[[Array], Array], rank: int, outputs: int) -> Array:
    """The smallest number that more than ``rank`` numbers are at most equal to."""
    ends = np.array([_rank(-np.finfo(np.float64).max), _rank(np.finfo(np.float64).max)])
    low, high = np.full(outputs, ends[0] - 1), np.full(outputs, ends[1])
    while (high > low + 1).any():
        # As Python's integers, because differences may take 64 bits and a sign.
        step = np.maximum((high.astype(object) - low.astype(object)) // (PLACES + 1), 1)
        ranks = [np.minimum(low.astype(object) + step * (j + 1), high.astype(object)) for j in range(PLACES)]
        places = np.array(ranks, dtype=np.int64)
        enough = count_below(_number(places)) > rank
        first = np.where(enough.any(axis=0), enough.argmax(axis=0), PLACES)
        columns = np.arange(outputs)
        high = np.where(first < PLACES, places[np.minimum(first, PLACES - 1), columns], high)
        low = np.where(first > 0, places[np.maximum(first, 1) - 1, columns], low)
    return _number(high)


def _rank(x: float) -> int:
    """The place of a number among all floating-point numbers, zero for zero."""
    bits = int(np.array(x, dtype=np.float64).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def _number(rank: Array) -> Array:
    """The floating-point numbers that have these places."""
    sign = np.where(rank < 0, -1.0, 1.0)
    return sign * np.abs(rank).view(np.float64)
