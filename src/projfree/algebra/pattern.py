"""`Pattern`, the positions of the observed entries of a matrix, and `OnPattern`, a matrix that is zero elsewhere."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra.structured import FactoredShape, Structured
from projfree.checks import Array
from projfree.numerics.lp_norm import lp_norm
from projfree.runtime import parallel_for_rows


def sorting_order(keys: Array, count: int) -> Array:
    """Return the stable sorting order of integers in ``[0, count)``, by the counting sort of a SciPy transposition."""
    from scipy.sparse import csr_array

    places = csr_array((np.zeros(len(keys), dtype=np.int8), keys, np.arange(len(keys) + 1)), shape=(len(keys), count))
    return np.asarray(places.tocsc().indices)


class Pattern:
    """Distinct index pairs of a matrix, sorted by row, then column; compared by identity.

    Attributes
    ----------
    shape : FactoredShape
        Shape of the matrix.
    indptr, indices : ndarray
        Row i has entries in the columns ``indices[indptr[i]:indptr[i + 1]]``.
    """

    def __init__(self, indptr: Array, indices: Array, shape: tuple[int, int]) -> None:
        self.shape = FactoredShape(shape)
        self.indptr, self.indices = indptr, indices

    @classmethod
    def of(cls, rows: Array, cols: Array, shape: tuple[int, int]) -> tuple[Pattern, Array, Array | None]:
        """Return the pattern of index pairs, their sorting order, and the entry of each sorted pair (None if 1:1)."""
        rows, cols = np.asarray(rows), np.asarray(cols)
        order = sorting_order(cols, shape[1])
        order = order[sorting_order(rows[order], shape[0])]
        new = np.arange(len(order)) == 0
        for side in (rows, cols):
            ordered = side[order]
            new[1:] |= ordered[1:] != ordered[:-1]
        place, first = None, order
        if not new.all():
            place = (np.cumsum(new) - 1).astype(order.dtype)
            first = order[new]
        indptr = np.zeros(shape[0] + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows[first], minlength=shape[0]), out=indptr[1:])
        return cls(indptr, cols[first].astype(np.int32, copy=False), shape), order, place

    @property
    def count(self) -> int:
        """Number of entries."""
        return len(self.indices)

    @cached_property
    def rows(self) -> Array:
        """Row index of each entry."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def by_column(self) -> tuple[Array, Array, Array]:
        """``(indptr, indices, order)`` of the transposed pattern, whose values are ``values[order]``."""
        order = sorting_order(self.indices, self.shape[1])
        counts = np.bincount(self.indices, minlength=self.shape[1])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return indptr, self.rows[order], order


class OnPattern(Structured):
    """A matrix that is zero outside a `Pattern`, such as a gradient in matrix completion.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries.
    values : ndarray
        Value of each entry.
    """

    def __init__(self, pattern: Pattern, values: Array) -> None:
        self.pattern, self.shape, self.values = pattern, pattern.shape, values

    @property
    def on(self) -> OnPattern:  # type: ignore[override]  # read-only here
        return self  # not an attribute: a reference cycle would delay freeing the memory until garbage collection

    def __mul__(self, a: Any) -> OnPattern:
        return self if a == 1.0 else OnPattern(self.pattern, self.values * float(a))

    def plus(self, others: list[Any]) -> OnPattern:
        """Return the sum with other matrices on patterns."""
        return added([self, *others])

    def times(self, block: Array) -> Array:
        at = self.pattern
        return _product(at.indptr, at.indices, self.values, block)

    def transposed_times(self, block: Array) -> Array:
        return _product(*self.by_column, block)

    @property
    def by_column(self) -> tuple[Array, Array, Array]:
        """``(indptr, indices, values)`` of the transpose."""
        indptr, indices, order = self.pattern.by_column
        return indptr, indices, self.values[order]

    def of_pairs(self, rows: Array, cols: Array) -> Array:
        n = self.shape[1]
        key = self.pattern.rows.astype(np.int64) * n + self.pattern.indices
        wanted = np.asarray(rows, dtype=np.int64) * n + cols
        place = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
        return np.where(key[place] == wanted, self.values[place], 0.0) if len(key) else np.zeros(len(wanted))

    def slab(self, start: int, stop: int) -> Array:
        out, at = np.zeros((stop - start, self.shape[1])), self.pattern
        part = slice(int(at.indptr[start]), int(at.indptr[stop]))
        out[at.rows[part] - start, at.indices[part]] = self.values[part]
        return out

    def scaled(self, rows: Array, cols: Array) -> OnPattern:
        out = self.values * rows[self.pattern.rows]
        out *= cols[self.pattern.indices]
        return OnPattern(self.pattern, out)

    def inner(self, other: Any) -> float:
        if isinstance(other, OnPattern) and other.pattern is self.pattern:
            return float(self.values @ other.values)
        if isinstance(other, np.ndarray):
            return float(self.values @ other[self.pattern.rows, self.pattern.indices])
        return float(sum(self.values @ part.on_places(self.pattern) for part in other.parts()))

    def on_places(self, pattern: Pattern) -> Array:
        """Return the entries at the positions of a pattern as a 1-d array."""
        return self.values if pattern is self.pattern else self.of_pairs(pattern.rows, pattern.indices)

    def size(self) -> float:
        return self._size

    @cached_property
    def _size(self) -> float:
        return lp_norm(self.values, 2.0)

    @property
    def scale(self) -> float:
        return self.size()

    @property
    def count(self) -> int:
        """Number of entries of the pattern."""
        return self.pattern.count

    def any(self) -> bool:
        return bool(self.values.any())

    def finite(self) -> bool:
        return bool(np.isfinite(self.values).all())

    def gram(self) -> Array:
        """Return ``A @ A.T`` or ``A.T @ A``, whichever is smaller, as a dense matrix."""
        return products(self, self, self.shape[0] <= self.shape[1])


def _product(indptr: Array, indices: Array, values: Array, block: Array) -> Array:
    from projfree.numerics.entries_kernels import times_block

    block = np.ascontiguousarray(block)
    out = np.empty((len(indptr) - 1, block.shape[1]))
    parallel_for_rows(lambda start, stop: times_block(indptr, indices, values, block, out, start, stop), indptr)
    return out


def products(G: OnPattern, H: OnPattern, by_rows: bool) -> Array:
    """Return the dense product of two matrices on patterns: ``G @ H.T`` if ``by_rows``, else ``G.T @ H``."""
    from projfree.numerics.entries_kernels import gram_rows, mirror

    kernel: Any = gram_rows
    one, two = (G, H) if by_rows else (H, G)
    rows, columns = (one.pattern.indptr, one.pattern.indices, one.values), two.by_column
    own, other = (rows, columns) if by_rows else (columns, rows)
    side = 0 if by_rows else 1
    out, symmetric = np.zeros((G.shape[side], H.shape[side])), G.values is H.values
    parallel_for_rows(lambda start, stop: kernel(*own, *other, symmetric, out, start, stop), own[0])
    if symmetric:
        mirror(out)
    return out


def added(parts: list[OnPattern]) -> OnPattern:
    """Return the sum of matrices on patterns, on the union of the patterns."""
    first, *rest = parts
    if not rest:
        return first
    if all(part.pattern is first.pattern for part in rest):
        total = first.values + rest[0].values
        for part in rest[1:]:
            total += part.values
        return OnPattern(first.pattern, total)
    rows = np.concatenate([part.pattern.rows for part in parts])
    cols = np.concatenate([part.pattern.indices for part in parts])
    pattern, order, place = Pattern.of(rows, cols, (first.shape[0], first.shape[1]))
    values = np.concatenate([part.values for part in parts])[order]
    return OnPattern(pattern, values if place is None else np.bincount(place, weights=values))
