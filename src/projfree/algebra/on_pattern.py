"""`OnPattern`: a matrix that is zero outside the observed entries, such as every gradient of matrix completion."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra.pattern import Pattern
from projfree.algebra.structured import Structured
from projfree.checks import Array
from projfree.runtime import over_rows

#: Numbers of this size can be multiplied lazily: even their fourth powers stay in the range of floating point.
LEAST, MOST = 1e-60, 1e60
#: Entries that are added at a time, so that no product of all of them takes memory.
BLOCK = 1 << 16


class Stored:
    """The numbers that scaled matrices share, with what was found out about them."""

    def __init__(self, array: Array) -> None:
        self.array = array

    @cached_property
    def size(self) -> float:
        """The Euclidean norm."""
        from projfree.algebra.minorant import size

        return size(self.array)


class OnPattern(Structured):
    """Values at the places of a `Pattern`, zero elsewhere; multiples share them.

    Parameters
    ----------
    pattern : Pattern
        The places.
    values : ndarray or Stored
        One number for each.
    factor : float
        What they are multiplied by.
    """

    def __init__(self, pattern: Pattern, values: Array | Stored, factor: float = 1.0) -> None:
        self.pattern, self.shape, self.factor = pattern, pattern.shape, factor
        self.stored = values if isinstance(values, Stored) else Stored(values)

    @property
    def on(self) -> OnPattern:
        return self  # no attribute: a cycle would keep the memory until it is looked for

    @property
    def values(self) -> Array:
        """One number for each place."""
        return self.stored.array if self.factor == 1.0 else self.stored.array * self.factor

    def __mul__(self, a: Any) -> OnPattern:
        factor = self.factor * float(a)
        if LEAST < abs(factor) < MOST and LEAST < self.stored.size < MOST:
            return OnPattern(self.pattern, self.stored, factor)
        return OnPattern(self.pattern, self.values * float(a))

    def plus(self, others: list[Any]) -> OnPattern:
        """The sum with other matrices on patterns."""
        return added([self, *others])

    def times(self, block: Array) -> Array:
        at = self.pattern
        return _product(at.indptr, at.indices, self.stored.array, block * self.factor)

    def transposed_times(self, block: Array) -> Array:
        indptr, indices, _ = self.pattern.by_column
        return _product(indptr, indices, self.pattern.column_values(self.stored), block * self.factor)

    def of_pairs(self, rows: Array, cols: Array) -> Array:
        n = self.shape[1]
        key = self.pattern.rows.astype(np.int64) * n + self.pattern.indices
        wanted = np.asarray(rows, dtype=np.int64) * n + cols
        place = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
        return (
            np.where(key[place] == wanted, self.stored.array[place] * self.factor, 0.0)
            if len(key)
            else np.zeros(len(wanted))
        )

    def slab(self, start: int, stop: int) -> Array:
        out, at = np.zeros((stop - start, self.shape[1])), self.pattern
        part = slice(int(at.indptr[start]), int(at.indptr[stop]))
        out[at.rows[part] - start, at.indices[part]] = self.stored.array[part] * self.factor
        return out

    def scaled(self, rows: Array, cols: Array) -> OnPattern:
        at, out = self.pattern, np.empty(self.pattern.count)
        for start in range(0, len(out), BLOCK):
            part = slice(start, start + BLOCK)
            np.multiply(self.stored.array[part], self.factor, out=out[part])
            out[part] *= rows[at.rows[part]]
            out[part] *= cols[at.indices[part]]
        return OnPattern(at, out)

    def inner(self, other: Any) -> float:
        own = self.stored.array
        if isinstance(other, OnPattern) and other.pattern is self.pattern:
            return float(own @ other.stored.array) * self.factor * other.factor
        if isinstance(other, np.ndarray):
            return float(own @ other[self.pattern.rows, self.pattern.indices]) * self.factor
        return float(sum(own @ part.on_places(self.pattern) for part in other.parts())) * self.factor

    def on_places(self, pattern: Pattern) -> Array:
        """The entries at the places of a pattern."""
        return self.values if pattern is self.pattern else self.of_pairs(pattern.rows, pattern.indices)

    def size(self) -> float:
        return abs(self.factor) * self.stored.size

    @property
    def scale(self) -> float:
        return self.size()

    @property
    def count(self) -> int:
        """The number of places."""
        return self.pattern.count

    def any(self) -> bool:
        return self.factor != 0.0 and bool(self.stored.array.any())

    def finite(self) -> bool:
        # A finite norm says it of all; only an infinite one, which finite numbers may have, needs a look at each.
        size = self.size()
        return bool(np.isfinite(size) or np.isfinite(self.values).all())

    @cached_property
    def gram_square(self) -> float:
        r""":math:`\|G G^T\|_F^2`, the fourth power of the Schatten-4 norm, without forming the Gram matrix."""
        from projfree.numerics.entries_kernels import gram_rows_square

        kernel: Any = gram_rows_square
        own, other = self._both()
        out = np.empty(min(self.shape))
        over_rows(lambda start, stop: kernel(*own, *other, len(out), out, start, stop), own[0])
        return float(out.sum()) * self.factor**4

    def gram(self) -> Array:
        """The Gram matrix of the smaller side, from the sparse rows."""
        return products(self, self, self.shape[0] <= self.shape[1])

    def _both(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Pointers, indices and stored values along the smaller side, and along the other."""
        by_row = (self.pattern.indptr, self.pattern.indices, self.stored.array)
        by_column = (*self.pattern.by_column[:2], self.pattern.column_values(self.stored))
        return (by_row, by_column) if self.shape[0] <= self.shape[1] else (by_column, by_row)

    def describe(self) -> str:
        """A few words."""
        return f"{self.pattern.count:,} entries"


def _product(indptr: Array, indices: Array, values: Array, block: Array) -> Array:
    from projfree.numerics.entries_kernels import times_block

    block = np.ascontiguousarray(block)
    out = np.empty((len(indptr) - 1, block.shape[1]))
    over_rows(lambda start, stop: times_block(indptr, indices, values, block, out, start, stop), indptr)
    return out


def products(G: OnPattern, H: OnPattern, by_rows: bool) -> Array:
    """The dense matrix ``G @ H.T`` of two matrices on patterns, or ``G.T @ H``."""
    from projfree.numerics.entries_kernels import gram_rows, mirror

    kernel: Any = gram_rows
    rows, columns = ((*at.pattern.by_column[:2], at.pattern.column_values(at.stored)) for at in (G, H))
    own, other = (G.pattern.indptr, G.pattern.indices, G.stored.array), columns
    if not by_rows:
        own, other = rows, (H.pattern.indptr, H.pattern.indices, H.stored.array)
    side = 0 if by_rows else 1
    out, symmetric = np.zeros((G.shape[side], H.shape[side])), G.stored is H.stored
    over_rows(lambda start, stop: kernel(*own, *other, symmetric, out, start, stop), own[0])
    if symmetric:
        mirror(out)
    out *= G.factor * H.factor
    return out


def added(parts: list[OnPattern]) -> OnPattern:
    """The sum of matrices on patterns, on the union of their places where they differ."""
    first, *rest = parts
    if not rest:
        return first
    if all(part.pattern is first.pattern for part in rest):
        total = np.empty(first.pattern.count)
        for start in range(0, len(total), BLOCK):
            at = slice(start, start + BLOCK)
            np.multiply(first.stored.array[at], first.factor, out=total[at])
            for part in rest:
                total[at] += part.stored.array[at] * part.factor
        return OnPattern(first.pattern, total)
    rows = np.concatenate([part.pattern.rows for part in parts])
    cols = np.concatenate([part.pattern.indices for part in parts])
    pattern, order, place = Pattern.of(rows, cols, (first.shape[0], first.shape[1]))
    values = np.concatenate([part.values for part in parts])[order]
    return OnPattern(pattern, values if place is None else np.bincount(place, weights=values))
