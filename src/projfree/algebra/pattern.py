"""`Pattern`: the places of the observed entries of a matrix, by rows and by columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from projfree.checks import Array

if TYPE_CHECKING:
    from projfree.algebra.on_pattern import Stored


#: From so many entries on they are sorted by counting, which takes a compiled kernel and a part of the time.
MANY = 200_000


def sorting_order(keys: Array, count: int, given: Array | None = None) -> Array:
    """The stable order of whole numbers from 0 to below ``count``; of those at ``given``, where it is not None."""
    kind = np.int32 if len(keys) < 2**31 else np.int64
    if len(keys) < MANY:
        order = np.argsort(keys if given is None else keys[given], kind="stable")
        return (order if given is None else given[order]).astype(kind, copy=False)
    from projfree.numerics.entries_kernels import counted_order

    begin = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=begin[1:])
    given, out = np.arange(len(keys), dtype=kind) if given is None else given, np.empty(len(keys), dtype=kind)
    counted_order(keys.astype(np.int32 if count < 2**31 else np.int64, copy=False), given, begin, out)
    return out


class FactoredShape(tuple[int, ...]):
    """The shape of a matrix that is never formed: zeros of this shape are factors of rank nothing."""

    __slots__ = ()


class Pattern:
    """Distinct places of a matrix in the order of rows, then columns; compared by identity.

    Attributes
    ----------
    shape : FactoredShape
        The shape of the matrix.
    indptr, indices : ndarray
        Row i holds the columns ``indices[indptr[i]:indptr[i + 1]]``.
    """

    def __init__(self, indptr: Array, indices: Array, shape: tuple[int, int]) -> None:
        self.shape = FactoredShape(shape)
        self.indptr, self.indices = indptr, indices
        self._turned: tuple[Any, Array] | None = None

    @classmethod
    def of(cls, rows: Array, cols: Array, shape: tuple[int, int]) -> tuple[Pattern, Array, Array | None]:
        """The pattern of pairs, the order that sorts them, and the place of each sorted pair (None where distinct)."""
        rows, cols = np.asarray(rows), np.asarray(cols)
        order, new = cls.sorted_pairs(rows, cols, shape)
        place, first = None, order
        if not new.all():
            place = (np.cumsum(new) - 1).astype(order.dtype)
            first = order[new]
        indptr = np.zeros(shape[0] + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows[first], minlength=shape[0]), out=indptr[1:])
        return cls(indptr, cols[first].astype(np.int32, copy=False), shape), order, place

    @staticmethod
    def sorted_pairs(rows: Array, cols: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
        """The order that sorts pairs, equal ones as they were, and which of them differ from the one before."""
        order = sorting_order(rows, shape[0], sorting_order(cols, shape[1]))
        new = np.ones(len(order), dtype=bool)
        for side in (rows, cols):
            ordered = side[order]
            differs = ordered[1:] != ordered[:-1]
            new[1:] = differs if side is rows else new[1:] | differs
        return order, new

    @property
    def count(self) -> int:
        """How many places there are."""
        return len(self.indices)

    @cached_property
    def rows(self) -> Array:
        """The row of each place."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def by_column(self) -> tuple[Array, Array, Array]:
        """``(indptr, indices, order)`` of the transposed pattern; ``order`` takes values of this one to that one."""
        order = sorting_order(self.indices, self.shape[1])
        counts = np.bincount(self.indices, minlength=self.shape[1])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return indptr, self.rows[order], order

    def column_values(self, stored: Stored) -> Array:
        """The numbers in the order of `by_column`; those asked for last are kept."""
        kept = self._turned  # another thread may replace it
        if kept is None or kept[0]() is not stored:
            self._turned = kept = None  # before the next takes its memory
            self._turned = kept = ref(stored), stored.array[self.by_column[2]]
        return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_turned": None}
