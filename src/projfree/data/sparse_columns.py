"""Sparse tables that are given by columns, and read so."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array
from projfree.data.blocks import THREADED_BYTES
from projfree.data.compressed import by_rows, canonical, checked_values
from projfree.data.moments import measures
from projfree.data.once import Once
from projfree.data.row_products import RowTile
from projfree.data.rows import Pass
from projfree.data.sparse import BLAS_NUMBERS, ENTRY_BYTES, WIDE_BYTES, SparseData
from projfree.data.sparse_blocks import FEWEST_ROWS, STEP_NUMBERS, even_slices, stepped
from projfree.runtime import over_blocks, single_blas

if TYPE_CHECKING:
    from projfree.data.chosen_columns import Columns

#: Into so many parts the columns are cut where several threads form an adjoint.
PARTS = 8


def sparse_data(X: Any, y: Array, sample_weight: Array | None = None, threads: int | None = None) -> SparseData:
    """The data of a sparse table: CSC as it is where that is worth while, all else by rows."""
    double = X.dtype.newbyteorder("=") == np.float64
    columns = X.format == "csc" and double and ENTRY_BYTES * X.nnz < WIDE_BYTES
    return (SparseColumns if columns else SparseData)(X, y, sample_weight, threads)


class SparseColumns(SparseData):
    """A table of compressed columns with targets, held without a copy and read as it is.

    Images are added up column by column, and an entry of an adjoint is the sum over one column. The rows are made when
    something asks for them, such as a sample or a matrix of all features; tables of 64 MB and more, for which there is
    compiled code by rows, and values other than float64 are turned at once by `SparseData`.
    """

    def _take(self, X: Any) -> float | None:
        own = canonical(X.tocsc())
        squares = checked_values(own)
        self._given = own
        self._size(own)
        self._columns, self._rows = Once[sp.csc_array](None, own), Once(partial(by_rows, own))
        self._longest = int(np.diff(own.indptr).max())
        return squares

    def _measures(self) -> tuple[Once[tuple[float, float]], Once[Array]]:
        own = (self._given, self.weight)
        return Once(partial(_row_norms, *own)), Once(partial(_mean_row, *own))

    @property
    def X(self) -> sp.csr_array:
        return self._rows.get()

    def copied(self, outputs: int) -> int:
        return 0

    def run(self, work: Pass) -> tuple[Array, Any]:
        outputs, table = math.prod(work.outputs), _transposed(self._given)
        many = self.n * outputs >= BLAS_NUMBERS
        with single_blas(many or self.nbytes >= THREADED_BYTES):
            images = [self._image(table, w) for w in work.vectors]
            residual, sums = stepped(work, slice(0, self.n), images, outputs)
            return sums, None if residual is None else self._adjoint(table, residual)

    def _image(self, table: RowTile, w: Array) -> Array:
        short = self._short_image(w)
        if short is not None:
            return short
        image = np.zeros((self.n, *w.shape[1:]))
        table.add_adjoint(w, image)
        return image

    def _adjoint(self, table: RowTile, r: Array) -> Array:
        out = np.empty((self.d, *r.shape[1:]))
        parts = list(even_slices(0, self.d, -(-self.d // (PARTS if self._workers() > 1 else 1))))

        def form(k: int) -> None:
            ends = table.pointers[parts[k].start : parts[k].stop + 1]
            table._replace(pointers=ends).image(r, out[parts[k]])

        over_blocks(form, len(parts), self._workers())
        return out

    def subset(self, rows: Array) -> SparseData:
        by_rows = object.__new__(SparseData)
        by_rows.__dict__.update(self.__dict__)
        by_rows._hold(self.X)
        return by_rows.subset(rows)

    def summation(self) -> float:
        # An entry of an adjoint has one term for each entry of its column. Other sums are added in some order within a
        # tile, and then one tile after the other; with many outputs tiles have as few rows as the second number.
        tiles = (min(self.n, STEP_NUMBERS), min(self.n, FEWEST_ROWS))
        return float(max(self._longest, *(tile + math.ceil(self.n / tile) for tile in tiles)) + 8)

    def _chosen_of(self, features: Array) -> Columns:
        from projfree.data.chosen_columns import Columns

        some = self._given[:, features].tocsr()
        return Columns(features, some.indptr.astype(np.int64), some.indices, some.data)

    def _some_rows(self, rows: Array) -> sp.csr_array:
        wanted, place = np.zeros(self.n, dtype=bool), np.zeros(self.n, dtype=np.int64)
        wanted[rows], place[rows] = True, np.arange(len(rows))
        kept = np.flatnonzero(wanted.take(self._given.indices))
        columns = np.searchsorted(self._given.indptr, kept, side="right") - 1
        entries = self._given.data[kept], (place[self._given.indices[kept]], columns)
        return sp.csr_array(entries, shape=(len(rows), self.d))


def _transposed(X: sp.csc_array) -> RowTile:
    """Columns as the rows of the transpose."""
    return RowTile(X.data, X.indices, X.indptr, X.shape[0])


def _row_norms(X: sp.csc_array, weight: Array | None) -> tuple[float, float]:
    """`Data.row_norm` and `Data.mean_square` of a table."""
    squares = np.bincount(X.indices, weights=X.data * X.data, minlength=X.shape[0])
    shares = squares / len(squares) if weight is None else squares * weight  # whose sum does not overflow
    return measures(float(squares.max()), float(shares.sum()))


def _mean_row(X: sp.csc_array, weight: Array | None) -> Array:
    """The weighted mean of the rows."""
    return _transposed(X).image(np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight)
