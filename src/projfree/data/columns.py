# mypy: disallow-untyped-decorators=False
"""Some columns of a sparse table: compressed rows with few columns, and weighted products of these, compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit

from projfree.checks import Array
from projfree.numerics.compilation import watch

watch()

FAST = {"reassoc", "nsz", "contract"}


@dataclass(frozen=True, eq=False)
class Columns:
    """The chosen columns of a table of compressed rows.

    Attributes
    ----------
    features : ndarray of int
        Which columns, in the order of the new ones.
    indptr, indices, values : ndarray
        The rows that are left, indices being places in ``features``.
    """

    features: Array
    indptr: Array
    indices: Array
    values: Array

    @classmethod
    def of(cls, X: sp.csr_array, features: Array, counts: Array) -> Columns:
        """Choose columns of ``X``, in one read; ``counts`` says how many entries each column of ``X`` has."""
        place = np.full(X.shape[1], -1, dtype=np.int32)
        place[features] = np.arange(len(features), dtype=np.int32)
        total = int(counts[features].sum())
        indptr = np.zeros(X.shape[0] + 1, dtype=np.int64)
        indices, values = np.empty(total, dtype=np.int32), np.empty(total)
        _choose(X.indptr, X.indices, X.data, place, indptr, indices, values)
        return cls(features, indptr, indices, values)

    def cover(self, w: Array) -> bool:
        """Whether a vector is zero in all other columns."""
        return bool(np.count_nonzero(w) == np.count_nonzero(w[self.features]))

    def image(self, w: Array) -> Array:
        """The image of a parameter whose entries elsewhere are zero."""
        shape = (len(self.indptr) - 1, len(self.features))
        chosen = sp.csr_array((self.values, self.indices, self.indptr), shape=shape)
        image: Array = chosen @ w[self.features]
        return image

    def moments(self, h: Array, places: Array | None = None) -> Array:
        r""":math:`\sum_i h_i z_i z_i^T` with :math:`z_i = (x_i, 1)`; of some features only their rows and the last."""
        m = len(self.features)
        rows = np.arange(m + 1) if places is None else np.append(places, m)
        row_of = np.full(m, -1, dtype=np.int64)
        row_of[rows[:-1]] = np.arange(len(rows) - 1)
        out = np.zeros((len(rows), m + 1))
        _products(self.indptr, self.indices, self.values, h, row_of, places is None, out)
        out[-1, -1] = h.sum()
        if places is None:
            below = np.tril_indices(m, -1)
            out[below] = out.T[below]
        return out


@njit(nogil=True, cache=True)
def _choose(
    indptr: Array, indices: Array, data: Array, place: Array, ends: Array, chosen: Array, values: Array
) -> None:
    count = 0
    for i in range(len(indptr) - 1):
        for a in range(indptr[i], indptr[i + 1]):
            j = place[indices[a]]
            if j >= 0:
                chosen[count] = j
                values[count] = data[a]
                count += 1
        ends[i + 1] = count


@njit(nogil=True, cache=True, fastmath=FAST)
def _products(indptr: Array, indices: Array, values: Array, h: Array, row_of: Array, half: bool, out: Array) -> None:
    """Add the products of the entries of each row, and their sums in the last row and column.

    ``row_of`` says which row of ``out`` belongs to a column, -1 for none; if ``half``, what is below the diagonal is
    left as it is.
    """
    bottom, last = out.shape[0] - 1, out.shape[1] - 1
    for i in range(len(indptr) - 1):
        for a in range(indptr[i], indptr[i + 1]):
            j, v = indices[a], h[i] * values[a]
            out[bottom, j] += v
            row = row_of[j]
            if row < 0:
                continue
            out[row, last] += v
            if half:
                for b in range(a, indptr[i + 1]):
                    c = indices[b]
                    out[min(j, c), max(j, c)] += v * values[b]
            else:
                for b in range(indptr[i], indptr[i + 1]):
                    out[row, indices[b]] += v * values[b]
