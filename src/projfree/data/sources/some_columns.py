"""Some columns of a source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from projfree.checks import Array
from projfree.data.sources.base import Source


class SomeColumns(Source):
    """The given columns of another source, which is read whole.

    Parameters
    ----------
    source : Source
        Where rows are read from.
    kept : sequence of int
        Numbers of the columns, in the order in which they are wanted.
    """

    def __init__(self, source: Source, kept: Sequence[int]) -> None:
        self.source, self.kept = source, list(kept)
        self.name, self.n, self.d, self.dtype = source.name, source.n, len(self.kept), source.dtype
        self.fortran, self.run = source.fortran, source.run
        self.columns = None if source.columns is None else [source.columns[j] for j in self.kept]

    def read(self, start: int, stop: int, out: Array) -> Array:
        table = self.table(out, stop - start)
        # In pieces, because all columns are in memory before some are kept.
        step = max(1, self.batch_bytes // (self.source.d * self.dtype.itemsize))
        space = np.empty(min(step, stop - start) * self.source.d, self.dtype)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            table[first - start : last - start] = self.source.read(first, last, space)[:, self.kept]
        return table

    def check(self) -> None:
        self.source.check()

    def place(self, row: int, column: int) -> str:
        return self.source.place(row, self.kept[column])
