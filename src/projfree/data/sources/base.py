"""What a source is: rows that are kept outside memory and read a chunk at a time."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array, shown

#: Rows of a sample are read through windows of about this many bytes.
WINDOW_BYTES = 1 << 20
#: A window of which at least one row in so many is wanted is read as a whole.
DENSE_WINDOW = 8


class Source(ABC):
    """A table outside memory.

    A source keeps nothing open between passes but what it can do without, so it survives a fork and needs no closing.

    Attributes
    ----------
    name : str
        What sentences call the source: the path of the file.
    n, d : int
        Numbers of rows and columns.
    dtype : dtype
        float64 or float32.
    fortran : bool
        Whether chunks come in Fortran order; results are those of an array in memory of the same order.
    run : int
        How many consecutive rows a sample takes at a time: one where single rows are cheap to read.
    columns : list of str or None
        Names of the columns.
    batch_bytes : int
        Size of what is decoded or copied at a time; set by the data that read from the source.
    """

    name: str
    n: int
    d: int
    dtype: np.dtype[Any]
    fortran: bool = False
    run: int = 1
    columns: list[str] | None = None
    batch_bytes: int = 1 << 23

    @abstractmethod
    def read(self, start: int, stop: int, out: Array) -> Array:
        """Rows ``start`` to ``stop``, as a table in (part of) the flat buffer ``out``."""

    @abstractmethod
    def check(self) -> None:
        """Raise where what was opened has changed since."""

    def take(self, rows: Array, out: Array) -> Array:
        """The given increasing rows, as a table in ``out``; neighbours are read together."""
        return self._gather(rows, out, self.read)

    def _gather(self, rows: Array, out: Array, read: Callable[[int, int, Array], Array]) -> Array:
        if rows[-1] - rows[0] == len(rows) - 1:
            return read(int(rows[0]), int(rows[-1]) + 1, out)
        table = self.table(out, len(rows))
        window = max(DENSE_WINDOW, WINDOW_BYTES // (self.d * self.dtype.itemsize))
        space, done = np.empty(window * self.d, self.dtype), 0
        for part in _windows(rows, window):
            first, last = int(part[0]), int(part[-1]) + 1
            table[done : done + len(part)] = read(first, last, space)[part - first]
            done += len(part)
        return table

    def table(self, out: Array, m: int) -> Array:
        """The first part of the flat buffer ``out`` as a table of ``m`` rows, in the order of this source."""
        flat = out[: m * self.d]
        return flat.reshape(self.d, m).T if self.fortran else flat.reshape(m, self.d)

    def _be_table(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Take the sizes and the dtype of a table of numbers, or say that this is none."""
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{self.name} must hold a table with at least one row and one column, got shape {shape}.")
        if dtype.kind not in "fiub" or dtype.itemsize > 8:
            raise TypeError(f"{self.name} must hold real numbers, got dtype {dtype}; convert it first.")
        self.n, self.d = (int(side) for side in shape)
        self.dtype = np.dtype(np.float32 if dtype.newbyteorder("=") == np.float32 else np.float64)

    def place(self, row: int, column: int) -> str:
        """Where an entry is, for a sentence."""
        return f"row {row}, column {column} of {self.name}"


def _windows(rows: Array, window: int) -> list[Array]:
    """Cut increasing rows into parts that are read at once: well filled windows, else runs of neighbours."""
    parts: list[Array] = []
    for part in np.split(rows, np.flatnonzero(np.diff(rows // window)) + 1):
        if len(part) * DENSE_WINDOW >= part[-1] - part[0] + 1:
            parts.append(part)
        else:
            parts.extend(np.split(part, np.flatnonzero(np.diff(part) > 1) + 1))
    return parts


@dataclass(frozen=True)
class Stamp:
    """What tells a file from a later version of it: place, size and time of the last change."""

    path: Path
    seen: tuple[int, int, int, int]

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of a file as it is now."""
        return cls(path, _seen(os.stat(path)))

    def check(self, descriptor: int | None = None) -> None:
        """Raise unless the file, or the open descriptor of it, is still the one that was stamped."""
        try:
            now = _seen(os.stat(self.path) if descriptor is None else os.fstat(descriptor))
        except FileNotFoundError:
            raise ChangedError(f"{self.path} has gone since it was opened; open the data anew.") from None
        if now != self.seen:
            raise ChangedError(
                f"{self.path} has changed since it was opened ({self.seen[2]} bytes then, {now[2]} now); sums over two "
                "versions of a file mean nothing, so open the data anew."
            )


class ChangedError(RuntimeError):
    """A file is no longer the one that was opened."""


def _seen(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def existing(path: str | os.PathLike[str]) -> Path:
    """``path``, or a sentence that there is no such file."""
    if not os.fspath(path):  # of which `Path` makes the current folder
        raise ValueError("`X` must name a .npy or Parquet file or a folder, got ''; the current folder is '.'.")
    found = Path(path)
    if not found.exists():
        raise FileNotFoundError(f"There is no file {shown(str(path))}; `X` names a .npy or Parquet file or a folder.")
    return found
