"""`StackedPattern`: three matrices on one pattern as the blocks of a larger one, whose fourth block is zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.algebra.on_pattern import OnPattern, added
from projfree.algebra.pattern import FactoredShape, Pattern
from projfree.algebra.structured import Structured
from projfree.checks import Array
from projfree.runtime import over_rows


class StackedPattern(Structured):
    """The matrix ``[[A, C], [D, 0]]`` of blocks on the places of one `Pattern`.

    Parameters
    ----------
    A, C, D : OnPattern
        The blocks, all on the same pattern.
    """

    def __init__(self, A: OnPattern, C: OnPattern, D: OnPattern) -> None:
        self.A, self.C, self.D = A, C, D
        m, n = A.shape
        self.shape = FactoredShape((2 * m, 2 * n))

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
        out, middle = np.zeros((stop - start, 2 * n)), min(max(m, start), stop)
        if start < middle:
            out[: middle - start] = np.hstack([self.A.slab(start, middle), self.C.slab(start, middle)])
        if middle < stop:
            out[middle - start :, :n] = self.D.slab(middle - m, stop - m)
        return out

    def column_slab(self, start: int, stop: int) -> Array:
        turned = [part.column_slab for part in (self.A, self.D, self.C)]
        m, n = self.A.shape
        out, middle = np.zeros((2 * m, stop - start)), min(max(n, start), stop)
        if start < middle:
            out[:, : middle - start] = np.vstack([turned[0](start, middle), turned[1](start, middle)])
        if middle < stop:
            out[:m, middle - start :] = turned[2](middle - n, stop - n)
        return out

    def scaled(self, rows: Array, cols: Array) -> StackedPattern:
        m, n = self.A.shape
        A, C = self.A.scaled(rows[:m], cols[:n]), self.C.scaled(rows[:m], cols[n:])
        return StackedPattern(A, C, self.D.scaled(rows[m:], cols[:n]))

    def inner(self, other: Any) -> float:
        if isinstance(other, np.ndarray):
            return sum(part.inner(other[at]) for part, at in zip(self._blocks(), self._slices(), strict=True))
        return float(sum(self._with(part) for part in other.parts()))

    def _with(self, part: Any) -> float:
        if isinstance(part, StackedPattern):
            return sum(one.inner(two) for one, two in zip(self._blocks(), part._blocks(), strict=True))
        return sum(one.inner(part.block(*at)) for one, at in zip(self._blocks(), self._slices(), strict=True))

    def _blocks(self) -> tuple[OnPattern, OnPattern, OnPattern]:
        return self.A, self.C, self.D

    def _slices(self) -> list[tuple[slice, slice]]:
        m, n = self.A.shape
        low, high = (slice(0, m), slice(0, n)), (slice(m, 2 * m), slice(n, 2 * n))
        return [low, (low[0], high[1]), (high[0], low[1])]

    def any(self) -> bool:
        return any(part.any() for part in self._blocks())

    def finite(self) -> bool:
        return all(part.finite() for part in self._blocks())

    def gram_blocks(self) -> tuple[Array, Array, Array]:
        """The blocks of the Gram matrix of the columns: upper left, upper right, lower right."""
        first = products(self.A, self.A) + products(self.D, self.D)
        return first, products(self.A, self.C), products(self.C, self.C)

    @property
    def pattern(self) -> Pattern:
        """The pattern of each block."""
        return self.A.pattern

    def describe(self) -> str:
        """A few words."""
        return f"three blocks of {self.A.pattern.count:,} entries"


def products(G: OnPattern, H: OnPattern) -> Array:
    """The dense matrix ``G.T @ H`` of two matrices on one pattern."""
    from projfree.numerics.entries_kernels import gram_rows

    kernel: Any = gram_rows
    at, n = G.pattern, G.shape[1]
    indptr, rows, order = at.by_column
    out = np.zeros((n, n))
    own, other = (indptr, rows, G.stored.array[order]), (at.indptr, at.indices, H.stored.array)
    over_rows(lambda start, stop: kernel(*own, *other, out, start, stop), indptr)
    out *= G.factor * H.factor
    return out
