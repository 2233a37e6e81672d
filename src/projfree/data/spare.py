"""Arrays that are used again: fresh memory costs the system more to hand out than a pass costs to fill."""

from __future__ import annotations

import math
import sys
from threading import Lock

import numpy as np

from projfree.checks import Array

#: Bytes from which an array is worth keeping.
LARGE = 1 << 20


class Spare:
    """Float arrays that come back by themselves: one that nobody holds any longer is given out again.

    A view keeps the array that it looks into alive, so the count of references to a kept array says whether any view
    of it is still in use. At most ``most`` arrays are kept.
    """

    def __init__(self, most: int = 4) -> None:
        self._kept: list[Array] = []
        self._most, self._lock = most, Lock()

    def empty(self, shape: tuple[int, ...]) -> Array:
        """An array of float64 with any content, as `numpy.empty` gives it."""
        size = math.prod(shape)
        if 8 * size < LARGE:
            return np.empty(shape)
        with self._lock:  # the view must exist before another thread counts
            flat = self._free(size)
            return flat[:size].reshape(shape)

    def _free(self, size: int) -> Array:
        for k in range(len(self._kept)):
            # The list and the argument of the call.
            if self._kept[k].size == size and sys.getrefcount(self._kept[k]) == 2:
                return self._kept[k]
        fresh: Array = np.empty(size)
        self._kept = [*self._kept[-self._most + 1 :], fresh]
        return fresh

    def __deepcopy__(self, memo: object) -> Spare:
        return Spare(self._most)

    def __reduce__(self) -> tuple[type[Spare], tuple[int]]:
        return Spare, (self._most,)
