"""Tables of features in memory or in files: A w = X w for vectors, and for matrices with several outputs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from projfree.checks import Array, count, is_sparse, real_array, shown
from projfree.data.local import LocalData, checked_targets, checked_weights
from projfree.data.rows import (
    CHUNK_BYTES,
    MEMORY,
    NATIVE_BYTES,
    THREADED_BYTES,
    TILE_BYTES,
    TILE_ROWS,
    Blocks,
    Pass,
    compiled,
)
from projfree.numerics.sums import tree_sum
from projfree.runtime import default_threads, parallel_for, single_blas_thread

if TYPE_CHECKING:
    from projfree.data.sources import Source


class Table(LocalData):
    """Base class of tables of features: passes and statistics over blocks of rows in a fixed order.

    Rows are partitioned into the blocks of ``cut``; NumPy processes ``tile`` rows at a time. Blocks of float32 are
    converted one at a time, so that all sums are float64. A converted row takes ``row_bytes``, and ``memory`` limits
    the bytes of the rows that are read at a time.
    """

    d: int
    dtype: np.dtype[Any]
    cut: Blocks
    tile: int
    row_bytes: float
    memory: float = math.inf

    @abstractmethod
    def _chunks(self, step: int) -> Generator[tuple[int, Any]]:
        """Yield the first row and the rows of each chunk; chunks begin at multiples of ``step`` rows."""

    @abstractmethod
    def _name_entry(self, row: int, column: int, value: float) -> str:
        """Describe an entry for an error message."""

    def _set_rows(self, n: int, y: Array, weight: Array | None) -> None:
        self.n, self.y, self.weight = n, y, weight
        self.nbytes, self.row_bytes = n * self.d * self.dtype.itemsize, 8.0 * self.d
        # A power of two, so that chunks of a file can end at the end of a tile.
        self._set_blocks(Blocks.of(n), 1 << max(4, (TILE_BYTES // (8 * self.d)).bit_length() - 1))

    def _set_blocks(self, cut: Blocks, tile: int) -> None:
        self.cut, self.tile, self.rounding_units = cut, tile, cut.units()

    def _set_given(self, n: int, y: Any, sample_weight: Any) -> None:
        """Set the rows, and validate and set targets and weights; `total_weight` is the sum of the given weights."""
        self._set_rows(n, checked_targets(y, n), checked_weights(sample_weight, n))
        if sample_weight is not None:
            with np.errstate(over="ignore"):
                self.total_weight = float(min(np.sum(sample_weight, dtype=np.float64), np.finfo(np.float64).max))

    def run(self, work: Pass) -> tuple[Array, Any]:
        # Use threads depending on the size of the table only, so that results do not depend on how the table is read.
        cut, threads = self.cut, self.threads if self.nbytes >= THREADED_BYTES else 1
        vectors = [np.reshape(w, (self.d, *work.outputs)) for w in work.vectors]
        sums: list[Any] = [None] * cut.count  # one entry per block
        adjoints = sums.copy()

        def plain(start: int, X: Any, first: int, last: int) -> None:
            """Process the rows of blocks ``first`` to ``last`` that are in a chunk, tile by tile."""
            for k in range(first, last):
                begin, end = max(k * cut.rows, start), min((k + 1) * cut.rows, start + X.shape[0])
                for tile in range(begin, end, self.tile):
                    stop = min(tile + self.tile, end)
                    part = float_rows(X, tile - start, stop - start)
                    residual, own = work(slice(tile, stop), *[part @ w for w in vectors])
                    sums[k] = own if sums[k] is None else sums[k] + own
                    if residual is not None:
                        adjoint = part.T @ residual
                        adjoints[k] = adjoint if adjoints[k] is None else np.add(adjoints[k], adjoint, out=adjoint)

        kernel = compiled(work, self.d, cut) if self.nbytes >= NATIVE_BYTES else None
        with closing(self._chunks(min(max(self.tile, TILE_ROWS), cut.rows))) as chunks, single_blas_thread():
            for start, X in chunks:
                first, last = start // cut.rows, -(-(start + X.shape[0]) // cut.rows)
                blocks = None if kernel is None else kernel.over(X, start)
                if blocks is None:
                    kernel, blocks = None, partial(plain, start, X)
                if threads == 1:
                    blocks(first, last)
                else:
                    over_ranges(blocks, first, last, threads)
        g: Any
        if kernel is not None:
            total, g = kernel.total()
        else:
            total, g = tree_sum(np.stack(sums)), None if adjoints[0] is None else tree_sum(np.stack(adjoints))
        return total, None if g is None else g.reshape(self.shape(work.outputs))

    def tables(self, nbytes: int = TILE_BYTES) -> Iterator[tuple[slice, Any]]:
        step = max(64, int(min(nbytes, self.memory // 4) / max(self.row_bytes, 1.0)))
        with closing(self._chunks(step)) as chunks:
            for start, X in chunks:
                for first in range(0, X.shape[0], step):
                    last = min(first + step, X.shape[0])
                    yield slice(start + first, start + last), float_rows(X, first, last)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return (self.d, *outputs)

    def not_finite(self, rows: slice, table: Any) -> ValueError | None:
        bad = np.argwhere(~np.isfinite(table.data if is_sparse(table) else table))
        if not len(bad):
            return None
        if is_sparse(table):
            (at,) = bad[0]
            i, j, value = int(np.searchsorted(table.indptr, at, side="right")) - 1, table.indices[at], table.data[at]
        else:
            (i, j), value = bad[0], table[tuple(bad[0])]
        return ValueError(f"{self._name_entry(rows.start + int(i), int(j), value)}; drop or impute such entries first.")


class MemoryTable(Table):
    """A table in memory, which is never copied.

    The constructor reads X once: it checks that all entries are finite and computes the `column_stats`.
    """

    def __init__(
        self,
        X: Any,
        y: Array,
        sample_weight: Array | None = None,
        threads: int | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        X, self.feature_names = self._checked(X), names
        self.X, self.d, self.dtype = X, X.shape[1], X.dtype
        self.threads = default_threads() if threads is None else count("threads", threads)
        self._set_given(X.shape[0], y, sample_weight)
        self.measure()

    @abstractmethod
    def _checked(self, X: Any) -> Any:
        """Validate the table and return it in the form that is used."""

    def _chunks(self, step: int) -> Generator[tuple[int, Any]]:
        yield 0, self.X

    def _name_entry(self, row: int, column: int, value: float) -> str:
        names = self.feature_names
        where = f"index {(row, column)}" if names is None else f"row {row} of {names[column]!r}"
        return f"`X` must be finite, got {shown(value)} at {where}"

    def take(self, rows: Array, weight: Array | None) -> Self:
        part = self.shallow_copy()
        part.X = self.X[rows]
        part._set_rows(len(rows), self.y[rows], weight)
        return part


class DenseData(MemoryTable):
    """A two-dimensional float array with targets."""

    def _checked(self, X: Any) -> Array:
        table = real_array("X", X)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(f"`X` must be a table with at least one row and one column, got shape {table.shape}.")
        return table

    def columns(self, features: Array | slice) -> Array:
        return np.array(self.X[:, features].T, dtype=np.float64, order="C").T


class ChunkedData(Table):
    """The rows of a `Source` with targets; results are bit-identical to those of the same rows in memory.

    The constructor reads the source once: it checks that all entries are finite and computes the statistics.
    Predictions, targets and weights are in memory. A pass that fails leaves the data unchanged. If a file has changed
    since construction, every later pass raises an error.

    Parameters
    ----------
    source : Source
        The table to read rows from.
    y, sample_weight : array
        As for `as_data`.
    memory : int
        Bytes that a pass may use in addition to vectors with one entry per row. A chunk takes at most a quarter of it:
        one chunk is in use, one is being read, and the rest is for decoding.
    threads : int, optional
        Number of threads that process a chunk, in addition to the one that reads.
    """

    def __init__(
        self, source: Source, y: Any, sample_weight: Any = None, memory: int = MEMORY, threads: int | None = None
    ) -> None:
        self.source, self.d, self.dtype, self.memory = source, source.d, source.dtype, count("memory", memory)
        self.threads = default_threads() if threads is None else count("threads", threads)
        self.feature_names = None if source.columns is None else tuple(source.columns)
        self.sample_run = source.run
        self._set_given(source.n, y, sample_weight)
        self.measure()

    def _chunks(self, step: int) -> Generator[tuple[int, Array]]:
        """Yield the first row and the rows of each chunk, while a thread reads the next one."""
        row = self.d * self.dtype.itemsize
        fit, needed = int(min(CHUNK_BYTES, self.memory // 4)) // row, 4 * min(step, self.n) * row
        if fit < step and needed > self.memory:
            raise ValueError(
                f"`memory` must be at least {needed} bytes for rows of {self.d} columns, got {self.memory}."
            )
        size = max(step, fit // step * step)
        bounds = [(start, min(start + size, self.n)) for start in range(0, self.n, size)]
        order = "F" if self.source.fortran else "C"
        self.source.check()
        tables = self.source.tables(bounds)
        with ThreadPoolExecutor(1, "projfree-reader") as reader:
            following = reader.submit(next, tables)
            for start, stop in bounds:
                X = following.result()
                if stop < self.n:
                    following = reader.submit(next, tables)
                yield start, np.asarray(X, order=order)  # type: ignore[call-overload]
        self.source.check()

    def _name_entry(self, row: int, column: int, value: float) -> str:
        return f"{self.source.place(row, column)} is {value}"

    def take(self, rows: Array, weight: Array | None) -> Self:
        """Return the data restricted to the given increasing rows, which are read when they are used."""
        from projfree.data.sources import SourceSubset

        part = self.shallow_copy()
        part.source = SourceSubset(self.source, rows)
        part._set_rows(len(rows), self.y[rows], weight)
        return part


def over_ranges(work: Any, first: int, last: int, threads: int) -> None:
    """Call ``work(start, stop)`` on ranges of blocks in threads, four per thread: a call costs 50 microseconds."""
    size = -(-(last - first) // (4 * threads))
    starts = range(first, last, size)
    parallel_for(lambda i: work(starts[i], min(starts[i] + size, last)), len(starts), threads)


def float_rows(X: Any, first: int, last: int) -> Any:
    """Return consecutive rows of a dense or CSR table in float64, as views if no conversion is needed."""
    part = X
    if last - first < X.shape[0] and not is_sparse(X):
        part = X[first:last]
    elif last - first < X.shape[0]:  # no slicing or constructor arguments, because SciPy would copy
        part, start, stop = type(X)((last - first, X.shape[1])), X.indptr[first], X.indptr[last]
        part.data, part.indices = X.data[start:stop], X.indices[start:stop]
        part.indptr = X.indptr[first : last + 1] - start
    return part.astype(np.float64, copy=False)
