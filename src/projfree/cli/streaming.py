"""Parquet and npy files larger than memory: features that are read chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.cli.file_rows import targets_of
from projfree.cli.options import CLASSES
from projfree.cli.tables import check_path, column_of, refuse_twice
from projfree.data import ChunkedData
from projfree.data.sources import NpySource, ParquetSource, Source, SourceSubset, open_parquet, parquet_files
from projfree.solvers.choose import memory_limit

#: Rows that are held in memory at a time to score or predict.
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Features outside memory, targets in memory, and the loss for them."""

    source: Source
    y: Array
    loss: str
    named: bool
    remarks: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.y)

    def data(self, rows: Array) -> tuple[ChunkedData, Array | None]:
        """Some rows as data with numbers for targets, and the labels that these numbers stand for."""
        part = SourceSubset(self.source, rows)
        part.columns = self.source.columns if self.named else None
        labels, y = None, self.y[rows]
        if self.loss in CLASSES:
            labels, y = np.unique(y, return_inverse=True)
        return ChunkedData(part, y.astype(np.float64)), labels

    def tables(self, rows: Array) -> Iterator[tuple[Array, Any]]:
        """Numbers of rows and their features, a chunk at a time."""
        ranges = _chunks(len(rows))
        for (start, stop), table in zip(ranges, SourceSubset(self.source, rows).tables(ranges), strict=True):
            yield rows[start:stop], _framed(table, self.source.columns if self.named else None)


def _chunks(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]


def _framed(table: Array, names: Sequence[str] | None) -> Any:
    if names is None:
        return table
    import pandas as pd

    return pd.DataFrame(table, columns=list(names))


def too_large(path: Path) -> bool:
    """Whether a file takes more memory than half of the memory limit; text files are always read at once."""
    kind = check_path(path)
    if kind == ".npy":
        source = NpySource(path)
        size = source.n * source.d * 8
    elif kind == ".parquet":
        heads = [open_parquet(file).metadata for file in parquet_files(path)]
        size = sum(head.num_rows * head.num_columns * 8 for head in heads)
    else:
        return False
    return 2 * size > memory_limit()


def streamed_rows(path: Path, target: str, loss: str, drop: Sequence[str] | None) -> StreamedRows:
    """The rows of a file that stays where it is."""
    remarks = (f"{str(path)!r} is larger than the memory to use for it, so that it is read chunk by chunk.",)
    if check_path(path) == ".npy":
        whole = NpySource(path)
        names = [str(j) for j in range(whole.d)]
        column, gone = _left_out(names, target, drop, path)
        values = _column(whole, names.index(column))
        kept = [j for j, name in enumerate(names) if name not in (column, *gone)]
        source: Source = SourceSubset(whole, columns=kept)
    else:
        schema = open_parquet(parquet_files(path)[0]).schema_arrow
        refuse_twice(list(schema.names), path)
        column, gone = _left_out(list(schema.names), target, drop, path)
        values = _parquet_column(path, column)
        source = ParquetSource(path, [name for name in schema.names if name not in (column, *gone)])
    y, loss = targets_of(values, loss)
    return StreamedRows(source, y, loss, source.columns is not None, remarks)


def _left_out(names: list[str], target: str, drop: Sequence[str] | None, path: Path) -> tuple[str, list[str]]:
    return column_of(names, target, "--target", path), [column_of(names, one, "--drop", path) for one in drop or []]


def _column(source: NpySource, j: int) -> Any:
    import pandas as pd

    column = SourceSubset(source, columns=[j]).tables(_chunks(source.n))
    return pd.Series(np.concatenate([table[:, 0] for table in column]).astype(np.float64), name=str(j))


def _parquet_column(path: Path, name: str) -> Any:
    import pandas as pd

    return pd.read_parquet(path, columns=[name])[name].reset_index(drop=True)


def frames_of(path: Path) -> Iterator[Any]:
    """The frames of a Parquet or npy file, some rows at a time; their indices count the rows of the file."""
    import pandas as pd

    if check_path(path) == ".npy":
        source = NpySource(path)
        ranges = _chunks(source.n)
        for (start, stop), table in zip(ranges, source.tables(ranges), strict=True):
            yield pd.DataFrame(table, index=range(start, stop), columns=[str(j) for j in range(source.d)])
        return
    done = 0
    for file in parquet_files(path):
        for batch in open_parquet(file).iter_batches(CHUNK):
            frame = batch.to_pandas()
            frame.index = range(done, done + len(frame))
            done += len(frame)
            yield frame
