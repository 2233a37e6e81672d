"""Dense tables: A w = X w for vectors and for matrices of several outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, count, real_array
from projfree.data.blocks import THREADED_BYTES, Blocks, Partials, compiled, dense_pass, tile_rows
from projfree.data.local import LocalData, TableColumns, checked_targets, checked_weights
from projfree.data.rows import Pass
from projfree.runtime import default_threads


class DenseTable(LocalData):
    """What dense rows share, wherever they are stored: passes and measures, from blocks in a fixed order.

    Attributes
    ----------
    d : int
        Number of columns.
    dtype : dtype
        float64, or float32: its blocks are converted one at a time, so that sums are float64 throughout.
    cut : Blocks
        How a pass cuts the rows.
    """

    d: int
    dtype: np.dtype[Any]
    cut: Blocks

    @abstractmethod
    def _chunks(self, step: int | None = None) -> Generator[tuple[int, Array]]:
        """First row and rows of each chunk; chunks are made of pieces of ``step`` rows, or of the blocks of a pass."""

    def _set_rows(self, n: int, y: Array, weight: Array | None) -> None:
        self.n, self.y, self.weight = n, y, weight
        self.cut, self.nbytes = Blocks.of(n), n * self.d * self.dtype.itemsize

    def run(self, work: Pass) -> tuple[Array, Any]:
        partials = Partials(self.cut.count, compiled(work, self.d, self.cut, self.nbytes))
        with closing(self._chunks()) as chunks:
            for start, X in chunks:
                dense_pass(X, start, self.cut, work, partials, self.threads, self.nbytes)
        return partials.total()

    def tables(self, nbytes: int = 1 << 20) -> Iterator[tuple[slice, Array]]:
        most = getattr(self, "memory", 4 * nbytes) // 4  # of tables outside memory
        step = max(64, min(nbytes, most) // (8 * self.d))
        with closing(self._chunks(step)) as chunks:
            for start, X in chunks:
                for first in range(0, len(X), step):
                    part = X[first : first + step].astype(np.float64, copy=False)
                    yield slice(start + first, start + first + len(part)), part

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return (self.d, *outputs)

    @property
    def rounding_units(self) -> float:  # type: ignore[override]  # read-only here
        # The inner product over columns that forms an image does not count: a tangent is valid for any image.
        return self.cut.units()

    def fingerprint(self) -> str:
        own = self.column_stats
        sums = own.mean, own.squares, own.largest, own.checksum
        return short_hash(f"{(self.n, self.d)} {self.dtype} {self.y.shape}", self.y, self.weight, *sums)


class DenseData(DenseTable):
    """A two-dimensional float array with targets; X is never copied.

    Construction reads X once: it checks that all entries are finite and finds the `column_stats`.
    """

    #: The features whose columns were asked for last, whether they are centred, and these.
    _selected: tuple[Array, bool, TableColumns] | None = None

    def __init__(self, X: Array, y: Array, sample_weight: Array | None = None, threads: int | None = None) -> None:
        X = real_array("X", X)
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"`X` must be a table with at least one row and one column, got shape {X.shape}.")
        self.X, self.d, self.dtype = X, X.shape[1], X.dtype
        self.threads = default_threads() if threads is None else count("threads", threads)
        self._set_rows(len(X), checked_targets(y, len(X)), checked_weights(sample_weight, len(X)))
        self.measure()

    def _chunks(self, step: int | None = None) -> Generator[tuple[int, Array]]:
        yield 0, self.X

    def not_finite(self, rows: slice, table: Array) -> ValueError | None:
        all_finite("X", self.X)
        return None

    def run(self, work: Pass) -> tuple[Array, Any]:
        if self.n > min(self.cut.rows, tile_rows(self.d)) or self.nbytes >= THREADED_BYTES:
            return super().run(work)
        X = self.X.astype(np.float64, copy=False)  # a single tile: there are no sums to add
        residual, sums = work(slice(0, self.n), *[X @ w for w in work.vectors])
        return sums, None if residual is None else X.T @ residual

    def columns(self, features: Array | slice) -> Array:
        return self.X[:, features].astype(np.float64, copy=False)

    def feature_columns(self, features: Array, *, centred: bool) -> TableColumns:
        from projfree.numerics.group_l1_qp import DENSE, NO_ROWS

        kept = self._selected
        if kept is None or kept[1] != centred or not np.array_equal(kept[0], features):
            x = np.ascontiguousarray(self.X[:, features].T, dtype=np.float64)
            if centred:
                x -= x.mean(axis=1, keepdims=True)
            columns = (DENSE, np.arange(0, x.size + 1, self.n), NO_ROWS, x.ravel())
            self._selected = kept = features, centred, columns
        return kept[2]

    def take(self, rows: Array, weight: Array | None) -> DenseData:
        part = self.alike()
        part._selected = None
        part.X = self.X[rows]
        part._set_rows(len(rows), self.y[rows], weight)
        return part
