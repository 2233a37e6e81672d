"""`.npy` files, read with plain reads: a memory map would fill the process with pages that it has passed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from projfree.checks import Array, shown
from projfree.data.sources.base import Source, Stamp, existing

#: Bytes that are converted at a time where the file does not hold floats of the machine.
PIECE_BYTES = 1 << 20


class NpySource(Source):
    """A table of numbers in a file, in C or Fortran order; numbers other than float32 and float64 are converted.

    Parameters
    ----------
    path : path
        A file written by `numpy.save`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        found = existing(path)
        stamp = Stamp.of(found)
        shape, fortran, dtype, offset = _header(found)
        self._set(stamp, shape, fortran, dtype, offset)

    def _set(self, stamp: Stamp, shape: tuple[int, ...], fortran: bool, dtype: np.dtype[Any], offset: int) -> None:
        self.stamp, self.name, self.offset, self.stored = stamp, str(stamp.path), offset, dtype
        self._be_table(shape, dtype)
        # A single column is both: C order, as for an array in memory.
        self.fortran = fortran and 1 not in shape
        self.run = 64 if self.fortran else 1
        held, due = stamp.seen[2] - offset, self.n * self.d * dtype.itemsize
        if held < due:
            whole = "" if self.fortran else f" (up to row {held // (self.d * dtype.itemsize)} of {self.n})"
            raise ValueError(f"{self.name} is truncated: it holds {held} of {due} bytes{whole}; write it again.")

    @classmethod
    def mapped(cls, X: np.memmap[Any, Any]) -> NpySource | None:
        """The file behind a memory map; None where the map is no whole run of rows of a file, or may differ from it."""
        pages = getattr(X, "_mmap", None)
        order = X.flags.c_contiguous or X.flags.f_contiguous
        if X.filename is None or X.mode == "c" or X.ndim != 2 or not order or pages is None:
            return None
        base = np.frombuffer(pages, dtype=np.uint8)
        before = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY  # where the map begins in the file
        offset = before + X.ctypes.data - base.ctypes.data  # `X.offset` is wrong for slices of a map
        source = object.__new__(cls)
        source._set(Stamp.of(Path(X.filename)), X.shape, not X.flags.c_contiguous, X.dtype, offset)
        return source

    def read(self, start: int, stop: int, out: Array) -> Array:
        with self._opened() as file:
            return self._read(file, start, stop, out)

    def take(self, rows: Array, out: Array) -> Array:
        with self._opened() as file:  # once for all rows
            return self._gather(rows, out, partial(self._read, file))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        self.stamp.check()
        with open(self.stamp.path, "rb", buffering=0) as file:
            self.stamp.check(file.fileno())  # another file may have come to this path in between
            yield file

    def _read(self, file: Any, start: int, stop: int, out: Array) -> Array:
        table, item = self.table(out, stop - start), self.stored.itemsize
        if self.fortran:
            for j in range(self.d):
                self._fill(file, table[:, j], (j * self.n + start) * item)
        else:
            self._fill(file, table.reshape(-1), start * self.d * item)
        return table

    def _fill(self, file: Any, flat: Array, place: int) -> None:
        """The numbers at a place of the file, converted where they are not what is asked for."""
        file.seek(self.offset + place)
        if self.stored == self.dtype and self.stored.isnative:
            self._exactly(file, flat)
            return
        step = PIECE_BYTES // self.stored.itemsize
        space = np.empty(min(step, len(flat)), self.stored)
        for first in range(0, len(flat), step):
            part = space[: min(step, len(flat) - first)]
            self._exactly(file, part)
            flat[first : first + len(part)] = part

    def _exactly(self, file: Any, flat: Array) -> None:
        view = flat.view(np.uint8).data
        done = 0
        while done < len(view):  # one read stops at two gigabytes, and where a signal arrives
            got = file.readinto(view[done:])
            if not got:
                self.stamp.check(file.fileno())  # cut off while it was read
                raise ValueError(f"{self.name} ends {len(view) - done} bytes too early at byte {file.tell()}.")
            done += got

    def check(self) -> None:
        self.stamp.check()


def _header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    if path.suffix == ".npz":
        raise ValueError(f"{path} is an archive; load it, or save the table alone with `numpy.save`.")
    with open(path, "rb") as file:
        try:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except ValueError as error:
            raise ValueError(f"{path} is no .npy file, or its head is damaged: {shown(str(error))}") from None
        return shape, fortran, dtype, file.tell()
