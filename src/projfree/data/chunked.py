"""Data larger than memory: a pass reads each row once, the next chunk while the current one is used."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from projfree.checks import Array, count, plain_array
from projfree.data.blocks import CHUNK_BYTES, MEMORY, Blocks, Partials, dense_pass, tile_rows
from projfree.data.compiled import compiled
from projfree.data.dense import DenseTable, block_total, marked_rows, table_fingerprint, weighted_sum
from projfree.data.local import checked_targets, checked_weights
from projfree.data.once import Once
from projfree.data.rows import Pass
from projfree.data.sources.ahead import Ahead
from projfree.data.sources.base import Source
from projfree.data.sources.sample import SourceRows, draw_runs
from projfree.runtime import default_threads

#: Chunks that begin within a block begin where a tile of the compiled kernels does, by layout.
C_GRAIN, F_GRAIN = 256, 512


class ChunkedData(DenseTable):
    """The rows of a source with targets; results are those of the same rows in memory, to the last bit.

    Construction reads the source once: it checks that all entries are finite and measures the rows. A pass has two
    buffers: a thread reads into one while the other is used, and ends with the pass. Images, targets and weights stay
    in memory. A pass that fails for any reason returns nothing and leaves the data as they were; a file that has
    changed since construction makes every further pass fail.

    Parameters
    ----------
    source : Source
        Where rows are read from.
    y, sample_weight : array
        As for `as_data`.
    memory : int
        Bytes that a pass may use besides vectors with one entry a row: two buffers of at most a quarter each, the rest
        for decoding and copies.
    threads : int, optional
        Threads that work on a chunk, besides the one that reads.
    """

    def __init__(
        self, source: Source, y: Any, sample_weight: Any = None, memory: int = MEMORY, threads: int | None = None
    ) -> None:
        self.source, self.n, self.d = source, source.n, source.d
        self.memory, self.cut = count("memory", memory), Blocks.of(source.n)
        self.nbytes = self.n * self._row_bytes
        self.threads = default_threads() if threads is None else count("threads", threads)
        self.feature_names = None if source.columns is None else tuple(source.columns)
        y = plain_array("y", y)
        if y.ndim and len(y) != self.n:
            raise ValueError(f"`y` must have one entry for each row of {source.name}, {self.n}, got {len(y)}.")
        self.y, self.weight = checked_targets(y, self.n), checked_weights(sample_weight, self.n)
        self._buffers_kept: list[tuple[Array, Array]] = []
        source.batch_bytes = self.memory // 8
        self._measure()

    def _measure(self) -> None:
        """Read all rows once."""
        self._marked: list[Array] | None = []
        self._mean, self._total = Once(None, np.zeros(self.d)), Once(None, 0.0)  # added up while rows are measured
        self._scan()
        self._marks, self._marked = np.concatenate(self._marked), None

    def _measured(self, block: Array, s: Array | float) -> None:
        mean = self._mean.get()
        mean += weighted_sum(block, s)
        self._total = Once(None, self._total.get() + block_total(block))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_buffers_kept": []}  # a copy has buffers of its own

    @property
    def _row_bytes(self) -> int:
        return self.d * self.source.dtype.itemsize

    def _most(self, step: int) -> int:
        """Rows of a chunk that is made of steps."""
        fit = min(CHUNK_BYTES, self.memory // 4) // self._row_bytes
        needed = 4 * min(step, self.n) * self._row_bytes
        if fit < step and needed > self.memory:
            raise ValueError(
                f"`memory` must be at least {needed} bytes for rows of {self.d} columns, got {self.memory}."
            )
        return max(step, fit // step * step)

    def _bounds(self) -> list[tuple[int, int]]:
        """The chunks of a pass: whole blocks, or parts of one that end where a tile ends."""
        block = self.cut.rows
        if min(block, self.n) * self._row_bytes <= min(CHUNK_BYTES, self.memory // 4):
            return _cut(0, self.n, self._most(block))
        grain = max(F_GRAIN if self.source.fortran else C_GRAIN, tile_rows(self.d))
        parts = -(-block // self._most(grain))
        step = -(-block // (parts * grain)) * grain  # of equal size: a small one would not hide the read of a large one
        return [part for first in range(0, self.n, block) for part in _cut(first, min(first + block, self.n), step)]

    def _stream(self, bounds: Sequence[tuple[int, int]]) -> Generator[tuple[int, Array]]:
        """First row and table of each chunk; a table is good until the next is asked for."""
        self.source.check()
        pair = self._buffers(max(stop - start for start, stop in bounds))
        ahead = Ahead(self.source, bounds, pair)
        try:
            yield from ahead
        finally:
            ahead.close()
        self.source.check()
        self._buffers_kept[:] = [pair]  # not after a failure: threads may still look at them

    def _buffers(self, rows: int) -> tuple[Array, Array]:
        """The buffers of the last pass, or new ones: passes may overlap."""
        size = rows * self.d
        pair = self._buffers_kept.pop() if self._buffers_kept else None
        if pair is None or len(pair[0]) < size:
            pair = np.empty(size, self.source.dtype), np.empty(size, self.source.dtype)
        return pair

    def run(self, work: Pass) -> tuple[Array, Any]:
        partials = Partials(self.cut.count, compiled(work, self.d, self.cut, self.nbytes))
        with closing(self._stream(self._bounds())) as chunks:
            for start, X in chunks:
                dense_pass(X, start, self.cut, work, partials, self.threads, self.nbytes)
        return partials.total()

    def _pieces(self, step: int) -> Iterator[tuple[slice, Array]]:
        marks = marked_rows(self.n, self.d)
        for start, X in self._stream(_cut(0, self.n, self._most(step))):
            if self._marked is not None:
                here = marks[(marks >= start) & (marks < start + len(X))]
                self._marked.append(X[here - start])
            for first in range(0, len(X), step):
                part = X[first : first + step]
                yield slice(start + first, start + first + len(part)), part

    def _not_finite(self, rows: slice, block: Array) -> ValueError | None:
        bad = np.argwhere(~np.isfinite(block))
        if not len(bad):
            return None
        place = self.source.place(rows.start + int(bad[0, 0]), int(bad[0, 1]))
        return ValueError(f"{place} is {block[tuple(bad[0])]}; drop or impute such rows first.")

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """``m`` rows, drawn singly or in short runs as the source likes it; see `draw_runs`."""
        return draw_runs(self.n, m, self.source.run, rng) if self.source.run > 1 else super().sample(m, rng)

    def subset(self, rows: Array) -> ChunkedData:
        """The given increasing rows, read when they are used."""
        part = self.alike()
        part.source, part.n, part.y = SourceRows(self.source, rows), len(rows), self.y[rows]
        part.weight = self.sample_weights(rows)
        part.cut, part.nbytes = Blocks.of(len(rows)), len(rows) * self._row_bytes
        part._marks = np.empty((0, self.d))
        return part

    def part(self, rows: Array) -> ChunkedData:
        """The given increasing rows as data of their own, which are measured; those of `subset` stand for all rows."""
        part = self.subset(rows)
        weight = None if self.weight is None else self.weight[rows]
        part.weight = checked_weights(weight, len(rows))
        if self.total_weight is not None and weight is not None:
            part.total_weight = self.total_weight * float(weight.sum())
        part._measure()
        return part

    def fingerprint(self) -> str:
        return table_fingerprint(self, self.source.dtype, self._marks)


def _cut(first: int, last: int, step: int) -> list[tuple[int, int]]:
    return [(start, min(start + step, last)) for start in range(first, last, step)]
