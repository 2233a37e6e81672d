"""How a sparse table is cut into blocks and tiles, and what is measured of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array
from projfree.data.blocks import MOST_BLOCKS, Blocks
from projfree.data.compressed import row_pieces, row_slice, row_squares, rows_for
from projfree.data.moments import measures
from projfree.data.once import Once
from projfree.data.row_products import RowTile
from projfree.data.rows import Pass
from projfree.numerics.sums import tree_sum
from projfree.runtime import over_blocks

#: Entries of a block, at least, so that its numbers pay for the calls that it takes.
BLOCK_ENTRIES = 1 << 17
#: Numbers of images, and entries of float32 that are widened, for which products are formed at a time.
PIECE_NUMBERS, PIECE_ENTRIES = 1 << 20, 1 << 20
#: Numbers of images that a step works on at a time. They take less than 128 KB: beyond that, a temporary array is new
#: memory of the system, whose first use costs more than the arithmetic.
STEP_NUMBERS = 15 << 10
#: And so many rows at least.
FEWEST_ROWS = 64
#: Bytes of a parameter and an adjoint that stay in the cache together.
CACHE_BYTES = 1 << 19
#: Entries that are squared at a time while rows are measured: they stay in the cache.
MEASURED = 1 << 16
#: Entries of the table for each entry of the adjoints of all blocks: clearing and adding them then costs a few percent.
SHARE = 16


def sparse_cut(n: int, d: int, entries: int) -> Blocks:
    """How a pass cuts sparse rows: as for dense ones, but blocks pay for themselves and their adjoints stay small.

    Few blocks are a power of two, so that two or four threads have equal shares.
    """
    most = max(1, min(MOST_BLOCKS, entries // BLOCK_ENTRIES, entries // (SHARE * d)))
    most = most if most > 16 else 1 << (most.bit_length() - 1)
    return Blocks(n, max(Blocks.of(n).rows, 64 * math.ceil(n / (64 * most))))


def pieces(X: sp.csr_array, cut: Blocks, k: int, outputs: int = 1) -> Iterator[slice]:
    """The rows of block k in pieces whose products are formed together.

    A parameter and an adjoint that fit into the cache stay there, so pieces are as small as a step likes them. Larger
    ones push each other out between the two products: pieces are then as large as memory allows.
    """
    small = 16 * X.shape[1] * outputs <= CACHE_BYTES
    most = max(64, (STEP_NUMBERS if small else PIECE_NUMBERS) // outputs)
    if X.dtype != np.float64:
        most = min(most, rows_for(X, PIECE_ENTRIES))
    return even_slices(k * cut.rows, min((k + 1) * cut.rows, cut.n), most)


def steps(rows: slice, outputs: int) -> Iterator[slice]:
    """Some rows in tiles for a step."""
    return even_slices(rows.start, rows.stop, max(FEWEST_ROWS, STEP_NUMBERS // outputs))


def stepped(work: Pass, rows: slice, formed: list[Array], outputs: int) -> tuple[Array | None, Array]:
    """The step of a pass on the images of a piece, tile by tile: its residuals, if there are any, and its sums."""
    residual: Array | None = None
    total: Array | None = None
    for tile in steps(rows, outputs):
        here = slice(tile.start - rows.start, tile.stop - rows.start)
        own, sums = work(tile, *(image[here] for image in formed))
        total = sums if total is None else total + sums
        if own is not None and tile == rows:
            return own, total
        if own is not None:
            residual = np.empty((rows.stop - rows.start, *own.shape[1:])) if residual is None else residual
            residual[here] = own
    return residual, cast("Array", total)  # there is at least one tile


def even_slices(first: int, last: int, most: int) -> Iterator[slice]:
    """A range cut into slices of about the same size: a small one would cost as many calls as a large one."""
    size = -(-(last - first) // -(-(last - first) // most))
    for start in range(first, last, size):
        yield slice(start, min(start + size, last))


def row_norms(X: sp.csr_array, weight: Array | None, cut: Blocks, threads: int) -> tuple[float, float]:
    """`Data.row_norm` and `Data.mean_square` of a table."""
    found = np.zeros((cut.count, 2))

    def block(k: int) -> None:
        last = min((k + 1) * cut.rows, cut.n)
        scratch = np.empty(0)
        for rows, tile in row_pieces(X, MEASURED, k * cut.rows, last):
            scratch = scratch if tile.nnz <= len(scratch) else np.empty(tile.nnz)
            squares = row_squares(tile, scratch)
            mean = squares.sum() / cut.n if weight is None else weight[rows] @ squares
            found[k] = max(found[k, 0], squares.max()), found[k, 1] + mean

    over_blocks(block, cut.count, threads)
    return measures(found[:, 0].max(), float(tree_sum(found[:, 1:])[0]))


def mean_row(X: sp.csr_array, weight: Array | None, cut: Blocks, threads: int) -> Array:
    """The weighted mean of the rows."""
    found = np.zeros((cut.count, X.shape[1]))

    def block(k: int) -> None:
        for rows in pieces(X, cut, k):
            s = np.full(rows.stop - rows.start, 1.0 / cut.n) if weight is None else weight[rows]
            RowTile.of(X, rows).add_adjoint(s, found[k])

    over_blocks(block, cut.count, threads)
    return tree_sum(found)


def turned(table: Once[sp.csr_array], cut: Blocks) -> list[RowTile]:
    """The transposes of the blocks of a table: their rows are its columns."""
    X, found = table.get(), []
    for start in range(0, cut.n, cut.rows):
        block = row_slice(X, start, min(start + cut.rows, cut.n)).tocsc()
        found.append(RowTile(block.data, block.indices, block.indptr, block.shape[0]))
    return found


def by_columns(X: sp.csr_array) -> sp.csc_array:
    """The table by columns, whose rows increase."""
    columns = X.tocsc()
    columns.has_canonical_format = True
    return columns
