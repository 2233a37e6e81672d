"""Parquet files and folders of them, decoded a batch at a time."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.data.sources.arrow import is_single, open_parquet, parquet_files, refuse_other_schema
from projfree.data.sources.base import Source, Stamp, existing


class ParquetSource(Source):
    """The numeric columns of Parquet files, which all have the same columns; a folder is read in order of names.

    Chunks come in Fortran order, because files are written by columns; results are those of an array in memory in
    that order. While it decodes, pyarrow holds a page and a dictionary of each column besides the buffers: with its
    defaults one to three megabytes a column, much less for files of `csv_to_parquet`. Row groups are the unit of
    access: a sample decodes every row group that it touches from its beginning, so small row groups (some ten
    thousand rows) make sampling cheap.

    Parameters
    ----------
    path : path
        A file or a folder.
    columns : sequence of str, optional
        Which columns, in this order; all but ``without`` by default.
    without : sequence of str
        Columns that are no features.
    """

    fortran = True
    run = 256

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        without: Sequence[str] = (),
    ) -> None:
        self.name = str(path)
        self.stamps = [Stamp.of(file) for file in parquet_files(existing(path))]
        heads = [open_parquet(stamp.path).metadata for stamp in self.stamps]
        self.heads: list[Any] = list(heads)  # None in a copy until the file is read
        schema = heads[0].schema.to_arrow_schema()
        names = [name for name in schema.names if name not in without] if columns is None else list(columns)
        self.columns = names
        for stamp, head in zip(self.stamps, heads, strict=True):
            refuse_other_schema(names + list(without), schema, stamp.path, head.schema.to_arrow_schema(), self.name)
        self.dtype = np.dtype(np.float32 if all(is_single(schema.field(c).type) for c in names) else np.float64)
        # Where each row group begins: (row, file, group), so that a read finds its place.
        self.groups: list[tuple[int, int, int]] = []
        self.n, self.d, self.begins = 0, len(names), []
        for i, head in enumerate(heads):
            self.begins.append(self.n)
            for g in range(head.num_row_groups):
                if head.row_group(g).num_rows:
                    self.groups.append((self.n, i, g))
                    self.n += head.row_group(g).num_rows
        if not self.n or not self.d:
            raise ValueError(f"{self.name} must have at least one row and one column, got {self.n} and {self.d}.")
        self._begin()

    columns: list[str]
    _next: int
    _batches: Iterator[Any]
    _rest: Any

    def _begin(self) -> None:
        """Nothing is open, and no other thread reads."""
        self._lock, self._process = Lock(), os.getpid()
        self._next, self._batches, self._rest = -1, iter(()), None

    def __getstate__(self) -> dict[str, Any]:
        """What a copy starts from; it opens the files itself when it reads first."""
        state = self.__dict__ | {"heads": [None] * len(self.heads)}
        for name in ("_lock", "_process", "_next", "_batches", "_rest"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def read(self, start: int, stop: int, out: Array) -> Array:
        table = self.table(out, stop - start)
        if self._process != os.getpid():  # after a fork the lock may belong to a thread that does not exist here
            self._begin()
        with self._lock:
            try:
                self._fill(table, start, stop)
            except BaseException:
                self._next = -1  # what the batches stand at is not known any more
                raise
        return table

    def _fill(self, table: Array, start: int, stop: int) -> None:
        self._seek(start)
        while self._next < stop:
            if not self._rest:
                self._rest = self._pull()
            part = self._rest.slice(0, stop - self._next)
            for j, name in enumerate(self.columns):
                table[self._next - start : self._next - start + len(part), j] = self._numbers(part, name, self._next)
            self._rest, self._next = self._rest.slice(len(part)), self._next + len(part)
        if stop == self.n:
            self._rest, self._batches, self._next = None, iter(()), -1  # close the file

    def _numbers(self, part: Any, name: str, row: int) -> Array:
        column = part.column(part.schema.get_field_index(name))
        if column.null_count:
            row += int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise ValueError(f"{self._row(row)}, column {name!r} is empty; drop or impute such rows first.")
        numbers: Array = column.to_numpy(zero_copy_only=False)
        return numbers

    def _seek(self, start: int) -> None:
        """Let the next batch be the one that holds row ``start``: go on if that is ahead, else open its row group."""
        k = bisect_right(self.groups, start, key=lambda group: group[0]) - 1
        if not self.groups[k][0] <= self._next <= start:
            self._next, file, group = self.groups[k]
            self._batches, self._rest = self._decoded(file, group, self.columns), None
        while self._next < start:
            if not self._rest:
                self._rest = self._pull()
            skipped = min(len(self._rest), start - self._next)
            self._rest, self._next = self._rest.slice(skipped), self._next + skipped

    def _pull(self) -> Any:
        batch = next(self._batches, None)
        if batch is None:
            raise ValueError(f"{self.name} ends after row {self._next}, before the {self.n} rows that it declares.")
        return batch

    def _decoded(self, file: int, group: int, columns: Sequence[str]) -> Iterator[Any]:
        """Batches from a row group on, to the end of the last file."""
        rows = max(1024, self.batch_bytes // (8 * self.d))
        for i in range(file, len(self.stamps)):
            stamp = self.stamps[i]
            stamp.check()
            head = self.heads[i] = self.heads[i] or open_parquet(stamp.path).metadata
            groups = range(group if i == file else 0, head.num_row_groups)
            try:
                largest = max((head.row_group(g).total_byte_size for g in groups), default=0)
                opened = open_parquet(stamp.path, head, pieces=largest > 2 * self.batch_bytes)
                yield from opened.iter_batches(rows, list(groups), columns=list(columns))
            except OSError as error:
                stamp.check()
                raise ValueError(f"{stamp.path} cannot be decoded: {shown(str(error))}") from error

    def vector(self, name: str) -> Array:
        """One column as an array, e.g. the targets."""
        parts, row = [], 0
        for part in self._decoded(0, 0, [name]):
            parts.append(self._numbers(part, name, row))
            row += len(part)
        return np.concatenate(parts)

    def check(self) -> None:
        for stamp in self.stamps:
            stamp.check()

    def place(self, row: int, column: int) -> str:
        return f"{self._row(row)}, column {self.columns[column]!r}"

    def _row(self, row: int) -> str:
        i = bisect_right(self.begins, row) - 1
        return f"Row {row - self.begins[i]} of {self.stamps[i].path}"
