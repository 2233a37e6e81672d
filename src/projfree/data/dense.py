"""Dense tables: A w = X w for vectors and for matrices of several outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, count, real_array, shown
from projfree.data.blocks import THREADED_BYTES, Blocks, Partials, dense_pass, tile_rows
from projfree.data.compiled import compiled
from projfree.data.local import LocalData, TableColumns, checked_targets, checked_weights
from projfree.data.moments import measures
from projfree.data.rows import Pass
from projfree.data.spectrum import largest_eigenvalue
from projfree.runtime import default_threads

#: Bytes of a piece of a table that is measured: half of a usual second-level cache.
PIECE_BYTES = 1 << 20
#: How many evenly spread rows of X tell one data set from another.
FINGERPRINT_ROWS = 1_000
#: And about so many numbers of them, but never fewer rows than that: every run ends with a fingerprint.
FINGERPRINT_NUMBERS, FEWEST_MARKED = 1 << 15, 4


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
    #: Sums of all rows with their weights, which is their mean, and with their numbers divided by n.
    _sums: Array

    @abstractmethod
    def _chunks(self, step: int | None = None) -> Generator[tuple[int, Array]]:
        """First row and rows of each chunk; chunks are made of pieces of ``step`` rows, or of the blocks of a pass."""

    @abstractmethod
    def _not_finite(self, rows: slice, block: Array) -> ValueError | None:
        """The error about the first entry of a block that is not finite, None if all are."""

    def _set_rows(self, n: int, y: Array, weight: Array | None) -> None:
        self.n, self.y, self.weight = n, y, weight
        self.cut, self.nbytes = Blocks.of(n), n * self.d * self.dtype.itemsize

    def _scan(self) -> None:
        """Read all rows once: check that they are finite, and measure them."""
        largest, mean_square, self._sums = 0.0, 0.0, np.zeros((2, self.d))
        for rows, block in self.tables(PIECE_BYTES):
            with np.errstate(over="ignore", invalid="ignore"):
                squares = np.einsum("ij,ij->i", block, block)
            if not np.logical_and.reduce(np.isfinite(squares)):
                large = shown(np.abs(block).max())
                too_large = ValueError(f"`X` has entries as large as {large}; rescale its columns.")
                raise self._not_finite(rows, block) or too_large
            factors = np.empty((2, len(block)))
            factors[0], factors[1] = self.weights(rows), np.arange(rows.start + 1, rows.stop + 1) / self.n
            self._sums += factors @ block
            largest = max(largest, float(np.maximum.reduce(squares)))
            mean_square += float(np.add.reduce(squares * factors[0]))
        self.row_norm, self.mean_square = measures(largest, mean_square)

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

    def smoothness(self, *, centred: bool) -> float:
        return largest_eigenvalue(self, np.zeros(self.d), np.ones(self.d), self.mean_square, centred=centred)

    def mean_row(self) -> Array:
        mean: Array = self._sums[0]
        return mean

    centre_row = mean_row

    def summation(self) -> float:
        # The inner product over columns that forms an image does not count: a tangent is valid for any image.
        return self.cut.units()

    def fingerprint(self) -> str:
        """A short hash of the shape, the dtype, the targets, the weights, and sums over all entries.

        Of the sums, those with the numbers of the rows as factors tell rows in another order.
        """
        sums = np.append(self._sums, (self.row_norm, self.mean_square))
        return short_hash(f"{(self.n, self.d)} {self.dtype} {self.y.shape}", self.y, self.weight, sums)


class DenseData(DenseTable):
    """A two-dimensional float array with targets; X is never copied.

    Construction reads X once: it checks that all entries are finite and measures the rows for the rounding
    allowance of certificates.
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
        self._scan()

    def _chunks(self, step: int | None = None) -> Generator[tuple[int, Array]]:
        yield 0, self.X

    def _not_finite(self, rows: slice, block: Array) -> ValueError | None:
        all_finite("X", self.X)
        return None

    def run(self, work: Pass) -> tuple[Array, Any]:
        if self.n > min(self.cut.rows, tile_rows(self.d)) or self.nbytes >= THREADED_BYTES:
            return super().run(work)
        X = self.X.astype(np.float64, copy=False)  # a single tile: there are no sums to add
        residual, sums = work(slice(0, self.n), *[X @ w for w in work.vectors])
        return sums, None if residual is None else X.T @ residual

    def columns(self) -> Array:
        return self.X

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

    def subset(self, rows: Array) -> DenseData:
        part = self.alike()
        part._selected = None
        part.X = self.X[rows]
        part._set_rows(len(rows), self.y[rows], self.sample_weights(rows))
        return part


def marked_rows(n: int, width: int) -> Array:
    """The evenly spread rows that tell one data set from another, fewer where each holds many numbers."""
    most = min(FINGERPRINT_ROWS, max(FEWEST_MARKED, FINGERPRINT_NUMBERS // max(width, 1)))
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)
