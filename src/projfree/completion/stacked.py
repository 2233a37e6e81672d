"""`StackedPattern`: three sparse matrices as the blocks of a larger one, whose fourth block is zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.algebra.pattern import OnPattern, Pattern, added, products
from projfree.algebra.structured import FactoredShape, Structured
from projfree.checks import Array


class StackedPattern(Structured):
    """The matrix ``[[A, C], [D, 0]]`` of blocks that each have a `Pattern`, or share one.

    Parameters
    ----------
    A, C, D : OnPattern
        The blocks: C has as many rows as A, and D as many columns.
    """

    def __init__(self, A: OnPattern, C: OnPattern, D: OnPattern) -> None:
        self.A, self.C, self.D = A, C, D
        self.shape = FactoredShape((A.shape[0] + D.shape[0], A.shape[1] + C.shape[1]))

    @property
    def on(self) -> Any:
        return self

    def __mul__(self, a: Any) -> StackedPattern:
        return StackedPattern(self.A * a, self.C * a, self.D * a)

    def plus(self, others: list[Any]) -> StackedPattern:
        """The sum with other stacks."""
        blocks = [[getattr(part, name) for part in (self, *others)] for name in "ACD"]
        return StackedPattern(*(added(parts) for parts in blocks))

    def times(self, block: Array) -> Array:
        n = self.A.shape[1]
        first, second = block[:n], block[n:]
        return np.concatenate([self.A.times(first) + self.C.times(second), self.D.times(first)])

    def transposed_times(self, block: Array) -> Array:
        m = self.A.shape[0]
        first, second = block[:m], block[m:]
        left = self.A.transposed_times(first) + self.D.transposed_times(second)
        return np.concatenate([left, self.C.transposed_times(first)])

    def of_pairs(self, rows: Array, cols: Array) -> Array:
        m, n = self.A.shape
        out = np.zeros(len(rows))
        for part, low, right in ((self.A, False, False), (self.C, False, True), (self.D, True, False)):
            at = ((rows >= m) == low) & ((cols >= n) == right)
            out[at] = part.of_pairs(rows[at] - m * low, cols[at] - n * right)
        return out

    def slab(self, start: int, stop: int) -> Array:
        m, n = self.A.shape
        out, middle = np.zeros((stop - start, self.shape[1])), min(max(m, start), stop)
        if start < middle:
            out[: middle - start] = np.hstack([self.A.slab(start, middle), self.C.slab(start, middle)])
        if middle < stop:
            out[middle - start :, :n] = self.D.slab(middle - m, stop - m)
        return out

    def scaled(self, rows: Array, cols: Array) -> StackedPattern:
        m, n = self.A.shape
        A, C = self.A.scaled(rows[:m], cols[:n]), self.C.scaled(rows[:m], cols[n:])
        return StackedPattern(A, C, self.D.scaled(rows[m:], cols[:n]))

    def inner(self, other: Any) -> float:
        if isinstance(other, np.ndarray):
            return sum(part.inner(other[at]) for part, at in zip(self.blocks(), self.slices(), strict=True))
        return float(sum(self._with(part) for part in other.parts()))

    def _with(self, part: Any) -> float:
        if isinstance(part, StackedPattern):
            return sum(one.inner(two) for one, two in zip(self.blocks(), part.blocks(), strict=True))
        return sum(one.inner(part.block(*at)) for one, at in zip(self.blocks(), self.slices(), strict=True))

    def blocks(self) -> tuple[OnPattern, OnPattern, OnPattern]:
        return self.A, self.C, self.D

    def slices(self) -> list[tuple[slice, slice]]:
        (m, n), (rows, cols) = self.A.shape, self.shape
        low, high = (slice(0, m), slice(0, n)), (slice(m, rows), slice(n, cols))
        return [low, (low[0], high[1]), (high[0], low[1])]

    @property
    def scale(self) -> float:
        return self.size()

    @property
    def count(self) -> int:
        """The number of places of all blocks."""
        return sum(part.count for part in self.blocks())

    def any(self) -> bool:
        return any(part.any() for part in self.blocks())

    def finite(self) -> bool:
        return all(part.finite() for part in self.blocks())

    def gram(self) -> Array:
        """The Gram matrix of the smaller side."""
        A, C, D, by_rows = self.A, self.C, self.D, self.shape[0] < self.shape[1]
        if by_rows:  # that of the rows is the one of the transpose, whose blocks beside and below change places
            C, D = D, C
        side, ends = A.shape[0 if by_rows else 1], min(self.shape)
        out, near, far = np.zeros((ends, ends)), slice(0, side), slice(side, ends)
        for G, H, first, second in ((A, A, near, near), (D, D, near, near), (A, C, near, far), (C, C, far, far)):
            out[first, second] += products(G, H, by_rows)
        out[far, near] = out[near, far].T
        return out

    @property
    def pattern(self) -> Pattern:
        """The pattern of the first block."""
        return self.A.pattern

    def describe(self) -> str:
        """A few words."""
        return f"three blocks of {', '.join(f'{part.pattern.count:,}' for part in self.blocks())} entries"
