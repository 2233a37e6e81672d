"""Products of neighbouring compressed rows with vectors and matrices, without wrapping, cutting or copying them.

SciPy's own compiled products take any part of the pointers together with all entries, add to an array that is given,
and run without the interpreter's lock. They are not part of its public interface, so where they are missing the same
products go through `csr_array`, at the price of some temporaries.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array
from projfree.data.compressed import assembled

try:
    from scipy.sparse import _sparsetools as tools
except ImportError:  # pragma: no cover
    tools = None
#: Whether SciPy has all the products that are used here.
DIRECT = all(hasattr(tools, name) for name in ("csr_matvec", "csr_matvecs", "csc_matvec", "csc_matvecs"))


class RowTile(NamedTuple):
    """Some neighbouring rows of a canonical table, with float64 values.

    Attributes
    ----------
    values, columns : ndarray
        Entries, at least those of the rows.
    pointers : ndarray
        Where among them each row begins, and the last one ends.
    d : int
        Number of columns of the table.
    """

    values: Array
    columns: Array
    pointers: Array
    d: int

    @classmethod
    def of(cls, X: sp.csr_array, rows: slice) -> RowTile:
        """Rows of a table: views of it, but for float32 values, which are widened."""
        pointers = X.indptr[rows.start : rows.stop + 1]
        if X.dtype == np.float64:
            return cls(X.data, X.indices, pointers, X.shape[1])
        first, last = pointers[0], pointers[-1]
        return cls(X.data[first:last].astype(np.float64), X.indices[first:last], pointers - first, X.shape[1])

    def image(self, w: Array, out: Array | None = None) -> Array:
        """The rows times a vector, or times each column of a matrix, in ``out`` where it is given."""
        w, rows = np.ascontiguousarray(w, dtype=np.float64), len(self.pointers) - 1
        if out is None:
            out = np.zeros((rows, *w.shape[1:]))
        else:
            out[...] = 0.0
        if not DIRECT:
            out += self._table() @ w
            return out
        if w.ndim == 1:
            tools.csr_matvec(rows, self.d, self.pointers, self.columns, self.values, w, out)
        else:
            own = (self.pointers, self.columns, self.values)
            tools.csr_matvecs(rows, self.d, w.shape[1], *own, w.reshape(-1), out.reshape(-1))
        return out

    def images(self, together: Any, outputs: tuple[int, ...]) -> list[Array]:
        """The rows times several vectors or matrices that are the columns of a sparse matrix, side by side."""
        columns, width = (self._table() @ together).toarray(order="F"), math.prod(outputs)
        starts = range(0, together.shape[1], width)
        return [columns[:, k : k + width].reshape(-1, *outputs) for k in starts]

    def add_adjoint(self, r: Array, out: Array) -> None:
        """Add the transpose of the rows times ``r`` to ``out``, which is C-ordered, one row after the other."""
        if not DIRECT:
            out += self._table().T @ r
            return
        # Compressed rows are the compressed columns of the transpose.
        r, rows = np.ascontiguousarray(r, dtype=np.float64), len(self.pointers) - 1
        if r.ndim == 1:
            tools.csc_matvec(self.d, rows, self.pointers, self.columns, self.values, r, out)
        else:
            own = (self.pointers, self.columns, self.values)
            tools.csc_matvecs(self.d, rows, r.shape[1], *own, r.reshape(-1), out.reshape(-1))

    def _table(self) -> sp.csr_array:
        first, last, shape = self.pointers[0], self.pointers[-1], (len(self.pointers) - 1, self.d)
        entries = self.values[first:last], self.columns[first:last]
        return assembled(sp.csr_array, *entries, self.pointers - first, shape)
