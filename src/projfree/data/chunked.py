"""Data larger than memory: a pass reads each row once, the next chunk while the current one is used."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from projfree.checks import Array, count, plain_array
from projfree.data.blocks import CHUNK_BYTES, MEMORY, tile_rows
from projfree.data.dense import DenseTable
from projfree.data.local import checked_targets, checked_weights
from projfree.data.sources import Ranges, Source, SourceSubset
from projfree.runtime import default_threads

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
