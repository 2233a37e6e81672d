"""Tables in files: .npy, Parquet, and arrays that support row slices, read a range of rows at a time."""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from projfree.checks import Array, shown

#: Rows of a subset with at most this distance are read together, because a seek costs about as much as a few rows.
NEAR_ROWS = 8
#: Number of bytes that are decoded at a time.
BATCH_BYTES = 1 << 22

Ranges = Sequence[tuple[int, int]]


class ChangedError(RuntimeError):
    """A file has changed since it was opened."""


class FileVersion:
    """Device, inode, size and modification time of a file, which identify its version."""

    def __init__(self, path: Path) -> None:
        self.path, self.status = path, _status(os.stat(path))

    def check(self) -> None:
        """Raise ChangedError if the file has changed since this object was created."""
        try:
            now = _status(os.stat(self.path))
        except FileNotFoundError:
            raise ChangedError(f"{self.path} has gone since it was opened; open the data anew.") from None
        if now != self.status:
            raise ChangedError(
                f"{self.path} has changed since it was opened ({self.status[2]} bytes then, {now[2]} now); sums over "
                "two versions of a file mean nothing, so open the data anew."
            )


def _status(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class Source(ABC):
    """A table in a file. It keeps no file open, so that it can be pickled and used after a fork.

    Attributes
    ----------
    name : str
        Name of the table in error messages, for example the path of the file.
    n, d : int
        Number of rows and columns.
    dtype : dtype
        float64 or float32.
    fortran : bool
        Whether tables are in Fortran order; results are those of an array in memory of the same order.
    run : int
        Number of consecutive rows that are drawn together in a sample; 1 if single rows are cheap to read.
    columns : list of str or None
        Names of the columns.
    """

    name: str
    n: int
    d: int
    dtype: np.dtype[Any]
    fortran: bool = False
    run: int = 1
    columns: list[str] | None = None

    @abstractmethod
    def tables(self, ranges: Ranges) -> Iterator[Array]:
        """Yield the rows ``start`` to ``stop`` of each range as a new array; the ranges are increasing."""

    @abstractmethod
    def check(self) -> None:
        """Raise ChangedError or ValueError if the table has changed since it was opened."""

    def place(self, row: int, column: int) -> str:
        """Describe the position of an entry for an error message."""
        return f"row {row}, column {column} of {self.name}"

    def _empty(self, rows: int) -> Array:
        return np.empty((rows, self.d), self.dtype, order="F" if self.fortran else "C")

    def _set_table(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Set the shape and the dtype; raise an error if this is not a table of numbers."""
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{self.name} must hold a table with at least one row and one column, got shape {shape}.")
        if dtype.kind not in "fiub" or dtype.itemsize > 8:
            raise TypeError(f"{self.name} must hold real numbers, got dtype {dtype}; convert it first.")
        self.n, self.d = (int(side) for side in shape)
        self.dtype = np.dtype(np.float32 if dtype.newbyteorder("=") == np.float32 else np.float64)


class SourceSubset(Source):
    """Some rows of another source, in increasing order."""

    def __init__(self, source: Source, rows: Array) -> None:
        self.source, self.rows, self.n = source, rows, len(rows)
        self.name, self.d, self.columns = source.name, source.d, source.columns
        self.dtype, self.fortran, self.run = source.dtype, source.fortran, source.run

    def tables(self, ranges: Ranges) -> Iterator[Array]:
        chunks = [self._runs(self.rows[a:b]) for a, b in ranges]
        tables = self.source.tables([(int(run[0]), int(run[-1]) + 1) for runs in chunks for run in runs])
        for (start, stop), runs in zip(ranges, chunks, strict=True):
            out, done = self._empty(stop - start), 0
            for run in runs:
                out[done : done + len(run)] = next(tables)[run - run[0]]
                done += len(run)
            yield out

    def _runs(self, rows: Array) -> list[Array]:
        """Split the rows at large gaps, and such that each part reads a bounded number of rows."""
        window = max(1, BATCH_BYTES // (self.source.d * self.dtype.itemsize))
        return np.split(rows, np.flatnonzero((np.diff(rows) > NEAR_ROWS) | (np.diff(rows // window) > 0)) + 1)

    def check(self) -> None:
        self.source.check()

    def place(self, row: int, column: int) -> str:
        return self.source.place(int(self.rows[row]), column)


class SliceSource(Source):
    """A table that supports ``X[a:b]``: data sets of h5py, arrays of Zarr, memory maps."""

    run = 64

    def __init__(self, X: Any) -> None:
        kind = type(X)
        self.name = f"{kind.__module__.partition('.')[0]}.{kind.__name__} {getattr(X, 'name', None) or ''}".rstrip()
        self.X, self.shape = X, tuple(X.shape)
        self._set_table(self.shape, np.dtype(X.dtype))

    def tables(self, ranges: Ranges) -> Iterator[Array]:
        for start, stop in ranges:
            part = self.X[start:stop]
            if np.ma.is_masked(part):  # netCDF returns missing entries as a masked array
                row, column = np.argwhere(np.ma.getmaskarray(part))[0].tolist()
                raise ValueError(f"{self.place(start + row, column)} is masked; drop or impute such rows first.")
            table = np.array(part, self.dtype, order="C")
            if table.shape != (stop - start, self.d):
                raise ValueError(f"Rows {start} to {stop} of {self.name} came as {shown(table.shape)}.")
            yield table

    def check(self) -> None:
        if tuple(self.X.shape) != self.shape:
            raise ValueError(f"{self.name} has changed from {self.shape} to {self.X.shape}; open the data anew.")


class NpySource(Source):
    """A file written by `numpy.save`, in C or Fortran order; integers and booleans are converted to float.

    The file is read without a memory map: mapped pages would count as memory of the process, and truncating a mapped
    file kills the process.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        file = existing_path(path)
        self.version, self.name = FileVersion(file), str(file)
        if file.suffix == ".npz":
            raise ValueError(f"{file} is an archive; load it, or save the table alone with `numpy.save`.")
        try:
            table = open_memmap(file, mode="r")  # this compares the size of the file with its header
        except (ValueError, EOFError) as error:
            raise ValueError(
                f"{file} is no .npy file of numbers, or it is damaged or truncated ({shown(str(error))}); write it "
                "again with `numpy.save`."
            ) from None
        self._set_table(table.shape, table.dtype)
        self.stored, self.offset = table.dtype, table.offset
        self.fortran = not table.flags.c_contiguous
        self.run = 64 if self.fortran else 1

    def tables(self, ranges: Ranges) -> Iterator[Array]:
        self.check()
        with open(self.version.path, "rb") as file:
            self.check()  # the file may have been replaced before it was opened
            for start, stop in ranges:
                if self.fortran:
                    columns = [self._numbers(file, j * self.n + start, stop - start) for j in range(self.d)]
                    yield np.array(columns, self.dtype).T
                else:
                    numbers = self._numbers(file, start * self.d, (stop - start) * self.d)
                    yield numbers.reshape(-1, self.d).astype(self.dtype, copy=False)

    def _numbers(self, file: Any, first: int, count: int) -> Array:
        """Read ``count`` consecutive numbers of the file, starting at index ``first``."""
        file.seek(self.offset + first * self.stored.itemsize)
        numbers: Array = np.fromfile(file, self.stored, count)
        if len(numbers) < count:
            self.check()  # the file may have been truncated meanwhile
            raise ValueError(f"{self.name} ends {count - len(numbers)} numbers too early.")
        return numbers

    def check(self) -> None:
        self.version.check()


class ParquetSource(Source):
    """The numeric columns of a Parquet file, or of all files in a folder sorted by name.

    Tables are in Fortran order, because Parquet stores columns. Row groups are the unit of access: a sample decodes
    each row group that it needs from the beginning, so that small row groups (some ten thousand rows) make sampling
    cheap. While decoding, pyarrow stores a page and a dictionary of each column in memory.

    Parameters
    ----------
    path : path
        A file or a folder.
    columns : sequence of str, optional
        Names of the feature columns, in this order; by default all columns except ``without``.
    without : sequence of str
        Names of columns that are not features.
    """

    fortran = True
    run = 256
    columns: list[str]

    def __init__(
        self, path: str | os.PathLike[str], columns: Sequence[str] | None = None, without: Sequence[str] = ()
    ) -> None:
        self.name = str(path)
        self.versions = [FileVersion(file) for file in parquet_files(existing_path(path))]
        heads = [open_parquet(version.path).metadata for version in self.versions]
        schema = heads[0].schema.to_arrow_schema()
        self.columns = [name for name in schema.names if name not in without] if columns is None else list(columns)
        for version, head in zip(self.versions, heads, strict=True):
            _check_schema([*self.columns, *without], schema, version.path, head.schema.to_arrow_schema(), self.name)
        single = all(str(schema.field(name).type) in ("float", "halffloat") for name in self.columns)
        self.dtype, self.d = np.dtype(np.float32 if single else np.float64), len(self.columns)
        # File and index of each row group, its first row, and the first row of each file.
        self.groups = [(i, g) for i, head in enumerate(heads) for g in range(head.num_row_groups)]
        sizes = [heads[i].row_group(g).num_rows for i, g in self.groups]
        self.starts = [0, *np.cumsum(sizes).tolist()][:-1]
        self.file_starts = [0, *np.cumsum([head.num_rows for head in heads]).tolist()]
        self.n = self.file_starts.pop()
        if not self.n or not self.d:
            raise ValueError(f"{self.name} must have at least one row and one column, got {self.n} and {self.d}.")

    def tables(self, ranges: Ranges) -> Iterator[Array]:
        batch: Any = None  # rows `first` to `last`
        batches: Iterator[Any] = iter(())
        first, last = 0, -1
        for start, stop in ranges:
            group = bisect_right(self.starts, start) - 1
            if self.starts[group] > last:  # skip the row groups in between
                batches, last = self._batches(group, self.columns), self.starts[group]
            table, row = self._empty(stop - start), start
            while row < stop:
                while row >= last:
                    if (batch := next(batches, None)) is None:
                        raise ValueError(f"{self.name} ends after row {last}, before the {self.n} that it declares.")
                    first, last = last, last + len(batch)
                part = batch.slice(row - first, stop - row)
                for j, name in enumerate(self.columns):
                    table[row - start : row - start + len(part), j] = self._numbers(part, name, row)
                row += len(part)
            yield table

    def _batches(self, group: int, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches from the given row group to the end of the last file."""
        first, within = self.groups[group]
        for version in self.versions[first:]:
            version.check()
            try:
                file = open_parquet(version.path)
                groups = list(range(within, file.num_row_groups))
                yield from file.iter_batches(max(1024, BATCH_BYTES // (8 * self.d)), groups, columns=list(columns))
            except OSError as error:
                version.check()
                raise ValueError(f"{version.path} cannot be decoded: {shown(str(error))}") from error
            within = 0

    def _numbers(self, batch: Any, name: str, row: int) -> Array:
        """Return a column of a batch whose first row is row ``row`` of the source; missing values raise an error."""
        column = batch.column(batch.schema.get_field_index(name))
        if column.null_count:
            row += int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise ValueError(f"{self._row(row)}, column {name!r} is empty; drop or impute such rows first.")
        numbers: Array = column.to_numpy(zero_copy_only=False)
        return numbers

    def vector(self, name: str) -> Array:
        """Return one column in its dtype, for example the targets."""
        parts: list[Array] = []
        for batch in self._batches(0, [name]):
            parts.append(self._numbers(batch, name, sum(map(len, parts))))
        return np.concatenate(parts)

    def check(self) -> None:
        for version in self.versions:
            version.check()

    def place(self, row: int, column: int) -> str:
        return f"{self._row(row)}, column {self.columns[column]!r}"

    def _row(self, row: int) -> str:
        i = bisect_right(self.file_starts, row) - 1
        return f"Row {row - self.file_starts[i]} of {self.versions[i].path}"


def _check_schema(names: Sequence[str], first: Any, path: Path, schema: Any, whole: str) -> None:
    """Raise an error unless each column exists once, is numeric, and has the same type as in the first file."""
    types = import_arrow("pyarrow.types")
    for name in names:
        if (times := schema.names.count(name)) != 1:
            raise ValueError(f"{path} must have one column {name!r}, got {times}; it has {shown(schema.names)}.")
        kind, due = schema.field(name).type, first.field(name).type
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
            raise TypeError(f"Column {name!r} of {path} holds {kind}, not numbers; choose others with `columns=`.")
        if kind != due:
            raise TypeError(f"Column {name!r} is {kind} in {path}, but {due} in the first file of {whole}.")


def import_arrow(module: str) -> Any:
    """Import a module of pyarrow, which is needed for Parquet files only."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError("Parquet files need pyarrow; install it with `pip install projfree[io]`.") from None


def parquet_files(path: Path) -> list[Path]:
    """Return the file, or the Parquet files of a folder sorted by name."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(("_", ".")))
    if not found:
        raise FileNotFoundError(f"The folder {path} holds no .parquet files.")
    return found


def open_parquet(path: Path) -> Any:
    """Open a `pyarrow.parquet.ParquetFile` that reads each column page by page."""
    arrow, parquet = import_arrow("pyarrow"), import_arrow("pyarrow.parquet")
    try:
        return parquet.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
    except (arrow.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is no Parquet file, or is truncated: {shown(str(error))}") from None


def existing_path(path: str | os.PathLike[str]) -> Path:
    """Return ``path``, or raise FileNotFoundError if it does not exist."""
    if not os.fspath(path):  # `Path("")` is the current folder
        raise ValueError("`X` must name a .npy or Parquet file or a folder, got ''; the current folder is '.'.")
    found = Path(path)
    if not found.exists():
        raise FileNotFoundError(f"There is no file {shown(str(path))}; `X` names a .npy or Parquet file or a folder.")
    return found


def open_source(X: Any, y: Any, sample_weight: Any, columns: Sequence[str] | None) -> tuple[Source, Any, Any] | None:
    """Return source, targets and weights of a table in a file; None if X is in memory."""
    if isinstance(X, str | os.PathLike) and _is_parquet(existing_path(X)):
        several = isinstance(y, list | tuple) and len(y) > 0 and all(isinstance(name, str) for name in y)
        targets = [y] if isinstance(y, str) else list(y) if several else []
        weights = [sample_weight] if isinstance(sample_weight, str) else []
        table = ParquetSource(X, columns, [name for name in targets + weights if name not in (columns or ())])
        if targets:
            found = [table.vector(name) for name in targets]
            y = np.stack(found, axis=1) if several else found[0]
        return table, y, table.vector(weights[0]) if weights else sample_weight
    if isinstance(X, Source):
        source = X
    elif isinstance(X, str | os.PathLike):
        source = NpySource(X)
    elif isinstance(X, np.memmap) or _has_row_slices(X):
        source = SliceSource(X)
    else:
        return None
    if columns is not None or isinstance(y, str) or isinstance(sample_weight, str):
        raise ValueError(f"{source.name} has no names of columns; these are for Parquet files.")
    return source, y, sample_weight


def _has_row_slices(X: Any) -> bool:
    """Return whether X is an array in a file: it supports row slices, but none of the protocols of arrays in memory."""
    shares = ("__array_interface__", "__dlpack__", "__dataframe__", "__dask_graph__", "tocsr")
    has = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    return has and len(X.shape) == 2 and not any(hasattr(X, name) for name in shares)


def _is_parquet(path: Path) -> bool:
    if path.suffix in (".csv", ".gz", ".tsv", ".txt"):
        raise ValueError(
            f"{path} is text, which would be parsed in every pass; turn it into Parquet once, e.g. with "
            "`pyarrow.dataset.write_dataset(pyarrow.csv.open_csv(path), folder, format='parquet')`."
        )
    return path.is_dir() or path.suffix not in (".npy", ".npz")
