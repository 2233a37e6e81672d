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
        kind = type(X)
        self.name = f"{kind.__module__.partition('.')[0]}.{kind.__name__} {getattr(X, 'name', None) or ''}".rstrip()
        self.X, self.shape = X, tuple(X.shape)
        self._be_table(self.shape, np.dtype(X.dtype))

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
