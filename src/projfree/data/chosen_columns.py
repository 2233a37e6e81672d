# mypy: disallow-untyped-decorators=False
"""Some columns of a sparse table: compressed rows with few columns, and weighted products of these, compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array
from projfree.numerics.compilation import FAST, compiled


def _unsigned(indices: Array) -> Array:
    """Indices as compiled code likes them: those that cannot be negative are not asked whether they are."""
    return indices.view(f"u{indices.itemsize}")


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
    def of(cls, X: sp.csr_array, features: Array) -> Columns:
        """Choose columns of ``X``, whose rows have increasing columns, in one read."""
        features = np.sort(features)
        place = np.full(X.shape[1], -1, dtype=np.int32)
        place[features] = np.arange(len(features), dtype=np.int32)
        # As long as if all columns were chosen: pages that are never written take no memory. One entry more is for
        # `_choose`, which may write there.
        indptr = np.zeros(X.shape[0] + 1, dtype=np.int64)
        kind = np.int32 if X.nnz < np.iinfo(np.int32).max else np.int64
        indices, values = np.empty(X.nnz + 1, dtype=kind), np.empty(X.nnz + 1)
        wanted = (place >= 0).astype(np.uint8)
        count = _choose(X.indptr, _unsigned(X.indices), X.data, place, wanted, indptr, _unsigned(indices), values)
        return cls(features, indptr, indices[:count], values[:count])

    def entries(self) -> tuple[Array, Array, Array]:
        """Pointers, places and values for compiled code."""
        return self.indptr, _unsigned(self.indices), self.values

    def cover(self, w: Array) -> bool:
        """Whether a vector is zero in all other columns."""
        return bool(np.count_nonzero(w) == np.count_nonzero(w[self.features]))

    def image(self, w: Array) -> Array:
        """The image of a parameter whose entries elsewhere are zero."""
        image = np.zeros(len(self.indptr) - 1)
        _add_image(*self.entries(), w[self.features], image)
        return image

    def moments(self, h: Array, features: Array, places: Array | None = None) -> Array:
        r""":math:`\sum_i h_i z_i z_i^T` with :math:`z_i = (x_i, 1)`, in the order of ``features``.

        One matrix for each column of ``h``; of the features at ``places`` only their rows and the last one.
        """
        m = len(features)
        order = np.append(np.searchsorted(self.features, features), m)
        rows = np.arange(m) if places is None else order[places]
        row_of = np.full(m, -1, dtype=np.int64)
        row_of[rows] = np.arange(len(rows))
        found, entries = np.zeros((h.shape[1], len(rows) + 1, m + 1)), self.entries()
        for own, out in zip(np.ascontiguousarray(h.T), found, strict=True):
            _products(*entries, own, row_of, places is None, out)
            out[-1, -1] = own.sum()
            if places is None:
                mirror(out)
        if (np.diff(order) > 0).all():
            return found
        return found[:, :, order] if places is not None else found[:, order[:, None], order]


@compiled()
def _choose(
    indptr: Array, indices: Array, data: Array, place: Array, wanted: Array, ends: Array, chosen: Array, values: Array
) -> int:
    """Write the entries of the chosen columns, and where each row ends; return how many there are.

    First the places of all entries are written, each over the last one unless that counts: a branch would be guessed
    wrong too often.
    """
    count = np.uint64(0)
    for i in range(len(indptr) - 1):
        for a in range(indptr[i], indptr[i + 1]):
            chosen[count] = a
            count += wanted[indices[np.uint64(a)]]
        ends[i + 1] = count
    for k in range(ends[-1]):
        a, own = chosen[k], np.uint64(k)
        values[own] = data[a]
        chosen[own] = place[indices[a]]
    return int(ends[-1])


@compiled()
def _add_image(indptr: Array, indices: Array, values: Array, w: Array, out: Array) -> None:
    """Add the products of the rows with ``w`` to ``out``.

    One after the other, each rounded, as SciPy does over all columns: so an image has the same bits whether columns
    were chosen before or not.
    """
    for i in range(len(out)):
        places, x = indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]]
        for a in range(len(x)):
            out[i] += x[a] * w[places[a]]


@compiled(fastmath=FAST)
def _products(indptr: Array, indices: Array, values: Array, h: Array, row_of: Array, half: bool, out: Array) -> None:
    """Add the products of the entries of each row, and their sums in the last row and column.

    ``row_of`` says which row of ``out`` belongs to a column, -1 for none; if ``half``, what is below the diagonal is
    left as it is.
    """
    bottom, last = out.shape[0] - 1, out.shape[1] - 1
    for i in range(len(indptr) - 1):
        columns, x = indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]]
        for a in range(len(x)):
            v, row = h[i] * x[a], row_of[columns[a]]
            out[bottom, columns[a]] += v
            if row < 0:
                continue
            line = out[row]
            line[last] += v
            for b in range(a if half else 0, len(x)):  # columns increase
                line[columns[b]] += v * x[b]


@compiled()
def mirror(out: Array) -> None:
    """Copy what is above the diagonal below it, block by block."""
    m, step = len(out), 64
    for first in range(0, m, step):
        for other in range(0, first + 1, step):
            for i in range(first, min(first + step, m)):
                for j in range(other, min(other + step, i)):
                    out[i, j] = out[j, i]
