"""Anything with a shape and row slices: h5py data sets, Zarr arrays, memory maps that are no plain files."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.data.sources.base import Source


class SliceSource(Source):
    """A table behind ``X[a:b]``.

    Parameters
    ----------
    X : object
        With a ``shape`` of two numbers, a ``dtype``, and slices that NumPy understands.
    """

    run = 64

    def __init__(self, X: Any) -> None:
        shape, dtype = tuple(X.shape), np.dtype(X.dtype)
        kind = type(X)
        self.name = f"{kind.__module__.partition('.')[0]}.{kind.__name__} {getattr(X, 'name', None) or ''}".rstrip()
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{self.name} must be a table with at least one row and one column, got shape {shape}.")
        if dtype.kind not in "fiub" or dtype.itemsize > 8:
            raise TypeError(f"{self.name} must hold real numbers, got dtype {dtype}; convert it first.")
        self.X, self.shape, (self.n, self.d) = X, shape, (int(side) for side in shape)
        self.dtype = np.dtype(np.float32 if dtype.newbyteorder("=") == np.float32 else np.float64)

    def read(self, start: int, stop: int, out: Array) -> Array:
        table = self.table(out, stop - start)
        # In pieces, because each slice is an array of its own before it is copied.
        step = max(1, self.batch_bytes // (self.d * self.dtype.itemsize))
        for first in range(start, stop, step):
            last = min(first + step, stop)
            part = self.X[first:last]
            if np.ma.is_masked(part):  # netCDF marks missing entries so
                row, column = np.argwhere(np.ma.getmaskarray(part))[0].tolist()
                raise ValueError(f"{self.place(first + row, column)} is masked; drop or impute such rows first.")
            part = np.asarray(part)
            if part.shape != (last - first, self.d):
                raise ValueError(f"Rows {first} to {last} of {self.name} came as {shown(part.shape)}.")
            table[first - start : last - start] = part
        return table

    def check(self) -> None:
        if tuple(self.X.shape) != self.shape:
            raise ValueError(f"{self.name} has changed from {self.shape} to {self.X.shape}; open the data anew.")
