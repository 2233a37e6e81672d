"""Sparse tables in memory: compressed rows, read once a pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, count
from projfree.data.blocks import THREADED_BYTES, Partials, over_ranges
from projfree.data.compiled import compiled
from projfree.data.compressed import compressed, row_pieces, widened
from projfree.data.dense import marked_rows
from projfree.data.local import LocalData, TableColumns, checked_targets, checked_weights
from projfree.data.moments import measures
from projfree.data.once import Once
from projfree.data.row_products import RowTile
from projfree.data.rows import Pass
from projfree.data.sparse_blocks import by_columns, mean_row, pieces, row_norms, sparse_cut, stepped, turned
from projfree.data.spectrum import largest_eigenvalue
from projfree.runtime import default_threads, over_blocks, single_blas

#: Bytes of one entry, for sizes that must not depend on how wide the stored indices are.
ENTRY_BYTES = 12
#: From so many numbers on, sums of products in a step would use the threads of BLAS, and add in another order.
BLAS_NUMBERS = 8192
#: Tables of float32 with fewer bytes have their values kept as float64 too, once a pass has asked for them.
WIDE_BYTES = 1 << 26
#: Adjoints of so many outputs or more that take so many bytes or more are formed column by column: each entry is then
#: written once, where row by row most of them are fetched from memory for every row. The copy that this needs is not
#: made of larger tables than this.
TURNED_OUTPUTS, TURNED_BYTES, MOST_TURNED = 8, 1 << 22, 1 << 30
#: So many vectors are read together where they have no more entries other than zero than so many full ones.
MANY, FULL = 4, 4


def gathered(vectors: tuple[Array, ...]) -> Any:
    """Many vectors with few entries other than zero as the columns of one sparse matrix; None where they are not such.

    A read then costs about one product for all of them, where each by itself would cost one.
    """
    if len(vectors) < MANY:
        return None
    width, d = math.prod(vectors[0].shape[1:]), len(vectors[0])
    places: list[Array] = []
    entries = 0
    for w in vectors:
        places.append(np.flatnonzero(w))
        entries += len(places[-1])
        if entries > FULL * d:
            return None
    rows, columns = np.divmod(np.concatenate(places), width)
    columns += np.repeat(np.arange(len(vectors)) * width, [len(place) for place in places])
    values = np.concatenate([np.ravel(w)[place] for w, place in zip(vectors, places, strict=True)])
    return sp.csr_array((values, (rows, columns)), shape=(d, width * len(vectors)))


class SparseData(LocalData):
    """A SciPy sparse matrix or array with targets.

    CSR with float32 or float64 values is held without a copy and must not be changed afterwards; other formats are
    converted to CSR once. Where columns are unsorted or occur twice,
    they are sorted and summed in a copy. Explicit zeros are fine, and indices may be int32 or int64. Construction
    checks all entries and indices; norms and means of the rows, and the table by columns, are found when they are first
    asked for, once for all copies.

    Parameters
    ----------
    X : scipy.sparse matrix or array of shape (n, d)
    y, sample_weight, threads
        As for `as_data`.

    Attributes
    ----------
    X : csr_array
        The table, with increasing columns in each row.

    Notes
    -----
    A pass costs one read of the stored entries. One output and tables of 64 MB and more go through code that is
    compiled for them, the rest through SciPy's compiled products, block by block. Results do not depend on the number
    of threads.
    """

    keeps_images = True
    #: The features whose columns were asked for last, and these.
    _selected: tuple[Array, TableColumns] | None = None

    def __init__(self, X: Any, y: Array, sample_weight: Array | None = None, threads: int | None = None) -> None:
        squares = self._take(X)
        self.threads = default_threads() if threads is None else count("threads", threads)
        self.y, self.weight = checked_targets(y, self.n), checked_weights(sample_weight, self.n)
        self._norms, self._mean = self._measures()
        #: With equal weights the squares of all entries say it, without those of each row.
        self._square = None if squares is None or self.weight is not None else measures(0.0, squares / self.n)[1]

    def _take(self, X: Any) -> float | None:
        """Hold a table in canonical form; returns the sum of the squares of all entries where it is known."""
        rows, columns, squares = compressed(X)
        self._hold(rows, columns)
        return squares

    def _measures(self) -> tuple[Once[tuple[float, float]], Once[Array]]:
        """The norms of the rows and their mean, which are found when they are asked for."""
        own = (self.X, self.weight, self.cut, self._workers())
        return Once(partial(row_norms, *own)), Once(partial(mean_row, *own))

    def _hold(self, X: sp.csr_array, columns: sp.csc_array | None = None) -> None:
        self.X = self._given = X
        self._size(X)
        self._columns = Once(partial(by_columns, X), columns)
        self._wide = Once(partial(widened, X), None if self.nbytes < WIDE_BYTES else X)
        self._turned = Once(partial(turned, self._wide, self.cut))

    def _size(self, table: Any) -> None:
        self.n, self.d = table.shape
        self.cut = sparse_cut(self.n, self.d, table.nnz)
        self.stored, self.nbytes = int(table.nnz), ENTRY_BYTES * int(table.nnz)

    @property
    def row_norm(self) -> float:  # type: ignore[override]  # which nobody sets
        return self._norms.get()[0]

    @property
    def mean_square(self) -> float:  # type: ignore[override]  # as above
        return self._norms.get()[1] if self._square is None else self._square

    def mean_row(self) -> Array:
        return self._mean.get()

    def columns(self) -> sp.csc_array:
        return self._columns.get()

    def _workers(self) -> int:
        return self.threads if self.nbytes >= THREADED_BYTES else 1

    def tables(self, nbytes: int = 1 << 20) -> Iterator[tuple[slice, Any]]:
        for rows, tile in row_pieces(self.X, nbytes // ENTRY_BYTES):
            yield rows, widened(tile)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return (self.d, *outputs)

    def run(self, work: Pass) -> tuple[Array, Any]:
        found, threads = compiled(work, self.d, self.cut, self.nbytes), self._workers()
        blocks = None if found is None else found.csr(self.X.data, self.X.indices, self.X.indptr)
        partials = Partials(self.cut.count, found if blocks is not None else None)
        if blocks is not None:
            over_ranges(blocks, 0, self.cut.count, threads)
        else:
            many = self.n * math.prod(work.outputs) >= BLAS_NUMBERS
            with single_blas(many or self.nbytes >= THREADED_BYTES):
                together = gathered(work.vectors)
                over_blocks(lambda k: self._scipy_block(k, work, together, partials), self.cut.count, threads)
        return partials.total()

    def _turns(self, outputs: int) -> bool:
        """Whether adjoints are formed column by column, from a copy of the table."""
        large = outputs >= TURNED_OUTPUTS and 8 * self.d * outputs >= TURNED_BYTES
        return large and self.nbytes <= MOST_TURNED and (self.nbytes < WIDE_BYTES or self.X.dtype == np.float64)

    def copied(self, outputs: int) -> int:
        entries, each = int(self.X.nnz), int(self.X.indices.itemsize)
        wide = 8 * entries if self.X.dtype != np.float64 and self.nbytes < WIDE_BYTES else 0
        if not self._turns(outputs):
            return wide
        turned: int = (8 + each) * entries + each * (self.d + 1) * self.cut.count
        return wide + turned

    def _scipy_block(self, k: int, work: Pass, together: Any, partials: Partials) -> None:
        total: Array | None = None
        X, outputs, place = self._wide.get(), math.prod(work.outputs), work.formed_in
        residuals: list[Array] | None = [] if self._turns(outputs) else None
        for rows in pieces(X, self.cut, k, outputs * max(1, len(work.vectors) // MANY)):
            piece, out = RowTile.of(X, rows), None if place is None else place[rows]
            if together is None:
                images = [piece.image(w, out) for w in work.vectors]
            else:
                images = piece.images(together, work.vectors[0].shape[1:])
            residual, sums = stepped(work, rows, images, outputs)
            total = sums if total is None else total + sums
            if residual is not None and residuals is not None:
                residuals.append(residual)
            elif residual is not None:
                piece.add_adjoint(residual, partials.adjoints_of((self.d, *residual.shape[1:]))[k])
        if residuals:
            whole = residuals[0] if len(residuals) == 1 else np.concatenate(residuals)
            self._turned.get()[k].image(whole, partials.adjoints_of((self.d, *whole.shape[1:]))[k])
        partials.sums[k] = total

    def subset(self, rows: Array) -> SparseData:
        part = self.alike()
        part._hold(self.X[rows])
        part.y, part.weight = self.y[rows], self.sample_weights(rows)
        part._selected = None
        return part

    def feature_columns(self, features: Array, *, centred: bool) -> TableColumns:
        from projfree.numerics.group_l1_kernels import SPARSE, select_columns

        kept = self._selected
        if kept is None or not np.array_equal(kept[0], features):
            table = self.columns()
            ptr = np.append(0, np.cumsum(np.diff(table.indptr)[features]))
            rows, x = np.empty(ptr[-1], dtype=np.int32), np.empty(ptr[-1])
            select_columns(table.indptr, table.indices, table.data, features, ptr, rows, x)
            self._selected = kept = features, (SPARSE, ptr, rows, x)
        return kept[1]

    def smoothness(self, *, centred: bool) -> float:
        return largest_eigenvalue(self, np.zeros(self.d), np.ones(self.d), self.mean_square, centred=centred)

    def summation(self) -> float:
        # A column has at most one entry in a row, because the table is canonical. So a block of B rows adds at most B
        # terms to an entry of its adjoint, whose order is that of the rows: B products and B - 1 sums are rounded. The
        # sums of a block are added tile by tile, which is an order of its B rows too.
        return self.cut.units()

    def fingerprint(self) -> str:
        values = self._given.data
        marked = self._some_rows(marked_rows(self.n, 2 * len(values) // self.n))  # an entry has a place and a value
        marked.sort_indices()
        marked.eliminate_zeros()
        # The sum of the bits changes with any entry, and is the same by rows and by columns; the place of an entry
        # alone would cost a product to tell.
        bits = values.view(f"u{values.itemsize}").sum(dtype=np.uint64)
        parts = (marked.indptr.astype(np.int64), marked.indices.astype(np.int64), marked.data, self.y, self.weight)
        return short_hash(f"sparse {(self.n, self.d)} {values.dtype} {self.y.shape} {bits}", *parts)

    def _some_rows(self, rows: Array) -> sp.csr_array:
        """A copy of some rows."""
        return self.X[rows]
