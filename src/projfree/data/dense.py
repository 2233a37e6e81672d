"""Dense tables, in memory or larger than that: A w = X w for vectors and for matrices of several outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, count, plain_array, real_array
from projfree.data.local import LocalData, checked_targets, checked_weights
from projfree.data.rows import (
    CHUNK_BYTES,
    MEMORY,
    THREADED_BYTES,
    TILE_BYTES,
    Blocks,
    Partials,
    Pass,
    compiled,
    run_blocks,
    tile_rows,
)
from projfree.runtime import default_threads, single_blas

if TYPE_CHECKING:
    from projfree.data.sources import Ranges, Source


class DenseTable(LocalData):
    """What dense rows share, wherever they are stored: passes and measures, from blocks in a fixed order.

    Attributes
    ----------
    d : int
        Number of columns.
    dtype : dtype
        float64, or float32: its blocks are converted one at a time, so that sums are float64 throughout.
    cut : Blocks
        How a pass cuts the rows.
    """

    d: int
    dtype: np.dtype[Any]
    cut: Blocks

    @abstractmethod
    def _chunks(self, step: int | None = None) -> Generator[tuple[int, Array]]:
        """First row and rows of each chunk; chunks are made of pieces of ``step`` rows, or of the blocks of a pass."""

    def _set_rows(self, n: int, y: Array, weight: Array | None) -> None:
        self.n, self.y, self.weight = n, y, weight
        self.cut, self.nbytes = Blocks.of(n), n * self.d * self.dtype.itemsize

    def run(self, work: Pass) -> tuple[Array, Any]:
        found = compiled(work, self.d, self.cut, self.nbytes)
        partials = Partials(self.cut.count, 0 if found else self.d, work.outputs)
        step = tile_rows(self.d)

        def block(k: int, start: int, X: Array) -> None:
            stop = min((k + 1) * self.cut.rows, start + len(X))
            for first in range(max(k * self.cut.rows, start), stop, step):
                tile = slice(first, min(first + step, stop))
                part = X[tile.start - start : tile.stop - start].astype(np.float64, copy=False)
                residual, sums = work(tile, *[part @ w for w in work.vectors])
                partials.add(k, sums, None if residual is None else part.T @ residual)

        with closing(self._chunks()) as chunks:
            for start, X in chunks:  # each begins where a block or at least a tile begins
                ranges = None if found is None else found.dense(X, start)
                if found is not None and ranges is None:
                    if start:  # what the first chunks have summed would be lost
                        raise RuntimeError("a later chunk is laid out in another way than the first; read them alike.")
                    found, partials = None, Partials(self.cut.count, self.d, work.outputs)
                last = -(-(start + len(X)) // self.cut.rows)
                run_blocks(
                    partial(block, start=start, X=X), ranges, start // self.cut.rows, last, self.threads, self.nbytes
                )
        return partials.total() if found is None else found.total()

    def tables(self, nbytes: int = TILE_BYTES) -> Iterator[tuple[slice, Array]]:
        most = getattr(self, "memory", 4 * nbytes) // 4  # of tables outside memory
        step = max(64, min(nbytes, most) // (8 * self.d))
        with closing(self._chunks(step)) as chunks:
            for start, X in chunks:
                for first in range(0, len(X), step):
                    part = X[first : first + step].astype(np.float64, copy=False)
                    yield slice(start + first, start + first + len(part)), part

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return (self.d, *outputs)

    @property
    def rounding_units(self) -> float:  # type: ignore[override]  # read-only here
        # The inner product over columns that forms an image does not count: a tangent is valid for any image.
        return self.cut.units()

    def fingerprint(self) -> str:
        own = self.column_stats
        sums = own.mean, own.squares, own.largest, own.checksum
        return short_hash(f"{(self.n, self.d)} {self.dtype} {self.y.shape}", self.y, self.weight, *sums)


class DenseData(DenseTable):
    """A two-dimensional float array with targets; X is never copied.

    Construction reads X once: it checks that all entries are finite and finds the `column_stats`.
    """

    def __init__(self, X: Array, y: Array, sample_weight: Array | None = None, threads: int | None = None) -> None:
        X = real_array("X", X)
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"`X` must be a table with at least one row and one column, got shape {X.shape}.")
        self.X, self.d, self.dtype = X, X.shape[1], X.dtype
        self.threads = default_threads() if threads is None else count("threads", threads)
        self._set_rows(len(X), checked_targets(y, len(X)), checked_weights(sample_weight, len(X)))
        self.measure()

    def _chunks(self, step: int | None = None) -> Generator[tuple[int, Array]]:
        yield 0, self.X

    def not_finite(self, rows: slice, table: Array) -> ValueError | None:
        all_finite("X", self.X)
        return None

    def run(self, work: Pass) -> tuple[Array, Any]:
        if self.n > min(self.cut.rows, tile_rows(self.d)) or self.nbytes >= THREADED_BYTES:
            return super().run(work)
        X = self.X.astype(np.float64, copy=False)  # a single tile: there are no sums to add
        with single_blas():
            residual, sums = work(slice(0, self.n), *[X @ w for w in work.vectors])
            return sums, None if residual is None else X.T @ residual

    def columns(self, features: Array | slice) -> Array:
        return self.X[:, features].astype(np.float64, copy=False)

    def feature_columns(self, features: Array, *, centred: bool) -> Array:
        columns = np.ascontiguousarray(self.X[:, features].T, dtype=np.float64)
        if centred:
            columns -= columns.mean(axis=1, keepdims=True)
        return columns.T

    def take(self, rows: Array, weight: Array | None) -> DenseData:
        part = self.alike()
        part.X = self.X[rows]
        part._set_rows(len(rows), self.y[rows], weight)
        return part


#: Chunks that begin within a block begin at a multiple of so many rows: a multiple of the tiles of compiled passes.
GRAIN_ROWS = 512


class ChunkedData(DenseTable):
    """The rows of a source with targets; results are those of the same rows in memory, to the last bit.

    Construction reads the source once: it checks that all entries are finite and measures the rows. Predictions,
    targets and weights stay in memory. A pass that fails for any reason returns nothing and leaves the data as they
    were; a file that has changed since construction makes every further pass fail.

    Parameters
    ----------
    source : Source
        Where rows are read from.
    y, sample_weight : array
        As for `as_data`.
    memory : int
        Bytes that a pass may use besides vectors with one entry a row. A chunk takes at most a quarter: one is used,
        one is read, and the rest is for decoding.
    threads : int, optional
        Threads that work on a chunk, besides the one that reads.
    """

    def __init__(
        self, source: Source, y: Any, sample_weight: Any = None, memory: int = MEMORY, threads: int | None = None
    ) -> None:
        self.source, self.d, self.dtype, self.memory = source, source.d, source.dtype, count("memory", memory)
        self.threads = default_threads() if threads is None else count("threads", threads)
        self.feature_names = None if source.columns is None else tuple(source.columns)
        y = plain_array("y", y)
        if y.ndim and len(y) != source.n:
            raise ValueError(f"`y` must have one entry for each row of {source.name}, {source.n}, got {len(y)}.")
        self._set_rows(source.n, checked_targets(y, source.n), checked_weights(sample_weight, source.n))
        self.measure()

    def _chunk_rows(self, step: int) -> int:
        """Rows of a chunk that is made of pieces of ``step`` rows."""
        row = self.d * self.dtype.itemsize
        fit, needed = min(CHUNK_BYTES, self.memory // 4) // row, 4 * min(step, self.n) * row
        if fit < step and needed > self.memory:
            raise ValueError(
                f"`memory` must be at least {needed} bytes for rows of {self.d} columns, got {self.memory}."
            )
        return max(step, fit // step * step)

    def _bounds(self) -> Ranges:
        """The chunks of a pass: whole blocks, or parts of one that end where a tile ends."""
        block = self.cut.rows
        if min(block, self.n) * self.d * self.dtype.itemsize <= min(CHUNK_BYTES, self.memory // 4):
            return _cut(0, self.n, self._chunk_rows(block))
        grain = max(GRAIN_ROWS, tile_rows(self.d))
        parts = -(-block // self._chunk_rows(grain))
        step = -(-block // (parts * grain)) * grain  # of equal size: a small one would not hide the read of a large one
        return [part for first in range(0, self.n, block) for part in _cut(first, min(first + block, self.n), step)]

    def _chunks(self, step: int | None = None) -> Generator[tuple[int, Array]]:
        """First row and rows of each chunk; the next one is read in a thread meanwhile."""
        bounds = self._bounds() if step is None else _cut(0, self.n, self._chunk_rows(step))
        self.source.check()
        tables = self.source.tables(bounds)
        with ThreadPoolExecutor(1, "projfree-reader") as reader:
            following = reader.submit(next, tables)
            for start, stop in bounds:
                X = following.result()
                if stop < self.n:
                    following = reader.submit(next, tables)
                yield start, X
        self.source.check()

    def not_finite(self, rows: slice, table: Array) -> ValueError | None:
        bad = np.argwhere(~np.isfinite(table))
        if not len(bad):
            return None
        place = self.source.place(rows.start + int(bad[0, 0]), int(bad[0, 1]))
        return ValueError(f"{place} is {table[tuple(bad[0])]}; drop or impute such rows first.")

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """``m`` rows, drawn singly or in short runs as the source prefers; see `draw_runs`."""
        return draw_runs(self.n, m, self.source.run, rng) if self.source.run > 1 else super().sample(m, rng)

    def take(self, rows: Array, weight: Array | None) -> ChunkedData:
        """The given increasing rows, read when they are used."""
        from projfree.data.sources import SourceSubset

        part = self.alike()
        part.source = SourceSubset(self.source, rows)
        part._set_rows(len(rows), self.y[rows], weight)
        return part


def _cut(first: int, last: int, step: int) -> Ranges:
    return [(start, min(start + step, last)) for start in range(first, last, step)]


def draw_runs(n: int, m: int, run: int, rng: np.random.Generator) -> Array:
    r"""``m`` different rows in increasing order, in runs of up to ``run`` neighbours.

    Cells of ``run`` rows are drawn without replacement, the last one in part, and then all rows are shifted around
    the circle of n by one uniform number. The shift alone gives every row the probability :math:`m / n`, whatever the
    cells were, so that a mean over the sample is unbiased. Its variance is that of single rows where the order of
    the rows is random, and larger where neighbours are alike: shuffle sorted files once.

    Costs O(m), nothing of order n. Samples of nearly all rows, which leave no cell free, are drawn as single rows.

    Examples
    --------
    >>> draw_runs(100, 6, 3, np.random.default_rng(0))
    array([ 7,  8,  9, 89, 90, 91])
    """
    needed, cells = -(-m // run), n // run
    if needed > cells:
        return np.sort(rng.choice(n, size=m, replace=False, shuffle=False))
    firsts = rng.choice(cells, size=needed, replace=False) * run
    rows = (firsts[:, None] + np.arange(run)).reshape(-1)[:m]
    return np.sort((rows + rng.integers(n)) % n)
