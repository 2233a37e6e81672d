"""Averages of tangents, each with the average of the places where they were taken."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import Minorant, MinorantStack, zeros
from projfree.checks import Array
from projfree.sets.base import ConstraintSet

#: The constant of an average before the first tangent replaces it: zero lies below no negative function.
NOTHING = -math.inf


@dataclass
class Rung:
    """An average of tangents and, with the same weights, of the places where they were taken.

    Averages of matrices in factors would need a decomposition each; there ``z`` is None, and single tangents witness.
    """

    m: Minorant
    z: Array | None


class Separate:
    """Averages one by one, for matrices in factors."""

    def __init__(self, count: int, shape: tuple[int, ...]) -> None:
        self.rungs = [Rung(Minorant(NOTHING, zeros(shape)), None) for _ in range(count)]

    def add(self, old: Array, new: Array, m: Minorant, z: Array) -> None:
        """Average the tangent ``m`` into each of them."""
        for a, b, rung in zip(old.tolist(), new.tolist(), self.rungs, strict=True):
            rung.m = a * rung.m + b * m

    def minima(self, ball: ConstraintSet) -> tuple[list[float], list[float]]:
        """The bounds that they prove, and the rounding allowances contained in these."""
        bounds, allowances = zip(*(rung.m.minimum(ball) for rung in self.rungs), strict=True)
        return list(bounds), list(allowances)

    def place(self, k: int) -> None:
        """The place that witnesses average number ``k``: there is none."""
        return None


class Stacked:
    """Averages in common arrays. Arrays are replaced, never changed, so that a place can be kept as a witness."""

    def __init__(self, count: int, shape: tuple[int, ...]) -> None:
        self._stack = MinorantStack.constants(NOTHING, (count, *shape))
        self._places = np.zeros((count, *shape))

    @property
    def rungs(self) -> list[Rung]:
        """The averages one by one."""
        return [Rung(self._stack[k], self._places[k]) for k in range(len(self._stack))]

    @rungs.setter
    def rungs(self, rungs: list[Rung]) -> None:
        self._stack = MinorantStack.of([rung.m for rung in rungs])
        self._places = np.array([rung.z for rung in rungs])

    def add(self, old: Array, new: Array, m: Minorant, z: Array) -> None:
        """Average the tangent ``m`` taken at ``z`` into each of them."""
        self._stack = self._stack.averaged(old, new, m)
        columns = (-1,) + (1,) * z.ndim
        self._places = old.reshape(columns) * self._places + new.reshape(columns) * z

    def minima(self, ball: ConstraintSet) -> tuple[list[float], list[float]]:
        """The bounds that they prove, and the rounding allowances contained in these."""
        return self._stack.minima(ball)

    def place(self, k: int) -> Array:
        """The place that witnesses average number ``k``."""
        place: Array = self._places[k]
        return place
