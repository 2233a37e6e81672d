"""Sparse tables in memory: compressed rows, read once a pass."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array, count
from projfree.data.base import Data, checked_targets, checked_weights, measures
from projfree.data.blocks import (
    MOST_BLOCKS,
    THREADED_BYTES,
    Blocks,
    Partials,
    over_ranges,
)
from projfree.data.compiled import compiled
from projfree.data.compressed import compressed, row_pieces, row_squares, widened
from projfree.data.dense import marked_rows
from projfree.data.rows import Pass
from projfree.data.spectrum import largest_eigenvalue
from projfree.numerics.sums import tree_sum
from projfree.runtime import default_threads, over_blocks

#: Entries that SciPy works on at a time: enough to pay for wrapping them, few enough to widen.
TILE_ENTRIES = 1 << 17
#: Bytes of one entry, for sizes that must not depend on how wide the stored indices are.
ENTRY_BYTES = 12
#: Entries of the table for each entry of the adjoints of all blocks: clearing and adding them then costs a few percent.
SHARE = 20
#: So many vectors are read together where they have no more entries other than zero than so many full ones.
MANY, FULL = 4, 4


def sparse_cut(n: int, d: int, entries: int) -> Blocks:
    """How a pass cuts sparse rows: as for dense ones, but the adjoints of all blocks must stay small."""
    most = min(MOST_BLOCKS, max(1, entries // (SHARE * d)))
    return Blocks(n, max(Blocks.of(n).rows, 64 * math.ceil(n / (64 * most))))


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


class SparseData(Data):
    """A SciPy sparse matrix or array with targets.

    CSR with float32 or float64 values is held without a copy and must not be changed afterwards; other formats are
    converted to CSR once. Repeated entries are summed (in a copy), explicit zeros and unsorted columns are fine, and
    indices may be int32 or int64. Construction checks all entries and indices and measures the rows.

    Parameters
    ----------
    X : scipy.sparse matrix or array of shape (n, d)
    y, sample_weight, threads
        As for `as_data`.

    Notes
    -----
    A pass costs one read of the stored entries. One output and tables of 64 MB and more go through compiled code, the
    rest through SciPy on views of the rows. Results do not depend on the number of threads.
    """

    keeps_images = True

    def __init__(self, X: Any, y: Array, sample_weight: Array | None = None, threads: int | None = None) -> None:
        self._hold(compressed(X))
        self.threads = default_threads() if threads is None else count("threads", threads)
        self.y, self.weight = checked_targets(y, self.n), checked_weights(sample_weight, self.n)
        self._scan()

    def _hold(self, X: sp.csr_array) -> None:
        self.X = X
        self.n, self.d = X.shape
        self.cut = sparse_cut(self.n, self.d, X.nnz)
        self.stored, self.nbytes = int(X.nnz), ENTRY_BYTES * int(X.nnz)

    def _scan(self) -> None:
        blocks = self.cut.count
        mean, squares = np.zeros((blocks, self.d)), np.zeros((blocks, 2))

        def block(k: int) -> None:
            for rows, tile in self._tiles(k):
                size, s = row_squares(tile), np.broadcast_to(self.weights(rows), tile.shape[:1])
                mean[k] += tile.T @ s
                squares[k] = max(squares[k, 0], size.max()), squares[k, 1] + s @ size

        over_blocks(block, blocks, self._workers())
        self.row_norm, self.mean_square = measures(squares[:, 0].max(), float(tree_sum(squares[:, 1:])[0]))
        self._mean = tree_sum(mean)

    def _workers(self) -> int:
        return self.threads if self.nbytes >= THREADED_BYTES else 1

    def _tiles(self, k: int) -> Iterator[tuple[slice, Any]]:
        """Block k in pieces whose adjoint, of the length of a row, costs less than their entries."""
        last = min((k + 1) * self.cut.rows, self.n)
        for rows, tile in row_pieces(self.X, max(TILE_ENTRIES, 2 * self.d), k * self.cut.rows, last):
            yield rows, widened(tile)

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
            together = gathered(work.vectors)
            over_blocks(lambda k: self._scipy_block(k, work, together, partials), self.cut.count, threads)
        return partials.total()

    def _scipy_block(self, k: int, work: Pass, together: Any, partials: Partials) -> None:
        total: Array | None = None
        for rows, tile in self._tiles(k):
            if together is None:
                images = [tile @ w for w in work.vectors]
            else:
                width = together.shape[1] // len(work.vectors)
                columns = (tile @ together).toarray(order="F")
                starts = range(0, together.shape[1], width)
                images = [columns[:, k : k + width].reshape(-1, *work.outputs) for k in starts]
            residual, sums = work(rows, *images)
            total = sums if total is None else total + sums
            if residual is not None:
                partials.adjoints_of((self.d, *residual.shape[1:]))[k] += tile.T @ residual
        partials.sums[k] = total

    def subset(self, rows: Array) -> SparseData:
        """The given rows; a weight of ``n s_i / m`` keeps sums unbiased under uniform sampling."""
        part = object.__new__(SparseData)
        part._hold(self.X[rows])
        part.y, part.threads = self.y[rows], self.threads
        part.weight = None if self.weight is None else self.weight[rows] * (self.n / len(rows))
        part.row_norm, part.mean_square, part._mean = self.row_norm, self.mean_square, self._mean
        return part

    def smoothness(self, *, centred: bool) -> float:
        return largest_eigenvalue(self, np.zeros(self.d), np.ones(self.d), self.mean_square, centred=centred)

    def mean_row(self) -> Array:
        return self._mean

    def summation(self) -> float:
        # A column has at most one entry in a row, so a block of B rows adds at most B terms.
        return self.cut.units()

    def fingerprint(self) -> str:
        marked = self.X[marked_rows(self.n)]
        marked.sort_indices()
        marked.eliminate_zeros()
        digest = hashlib.sha256(f"sparse {self.X.shape} {self.X.dtype} {self.y.shape}".encode())
        weight = np.zeros(0) if self.weight is None else self.weight
        means = np.array([self.row_norm, self.mean_square, *self.mean_row()])  # these change with any row
        places = (marked.indptr.astype(np.int64), marked.indices.astype(np.int64))
        for part in (*places, marked.data, self.y, weight, means):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]
