"""`Pattern`: the places of the observed entries of a matrix, by rows and by columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from projfree.checks import Array

if TYPE_CHECKING:
    from projfree.algebra.on_pattern import Stored


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
        m, n = shape
        key = np.asarray(rows, dtype=np.int64) * n + cols
        order = np.argsort(key, kind="stable")
        key = key[order]
        new = np.empty(len(key), dtype=bool)
        new[:1], new[1:] = True, key[1:] != key[:-1]
        place = None
        if not new.all():
            place = (np.cumsum(new) - 1).astype(np.int32 if len(key) < 2**31 else np.int64)
            key = key[new]
        indptr = np.searchsorted(key, np.arange(m + 1, dtype=np.int64) * n)
        return cls(indptr.astype(np.int64), (key % n).astype(np.int32), shape), order, place

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
        order = np.argsort(self.indices, kind="stable").astype(np.int32 if self.count < 2**31 else np.int64)
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

    def matrix(self, values: Array) -> Any:
        """A SciPy matrix of compressed sparse rows with these values."""
        from scipy.sparse import csr_array

        return csr_array((values, self.indices, self.indptr), shape=tuple(self.shape))
