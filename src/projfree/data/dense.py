"""Dense arrays in memory: A w = X w for vectors and for matrices of several outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, count, real_array, shown
from projfree.data.blocks import THREADED_BYTES, Blocks, Partials, dense_pass, tile_rows
from projfree.data.compiled import compiled
from projfree.data.local import LocalData, TableColumns, checked_targets, checked_weights
from projfree.data.moments import measures
from projfree.data.once import Once
from projfree.data.rows import Pass
from projfree.data.spectrum import largest_eigenvalue
from projfree.runtime import default_threads

#: Bytes of X in one block: small enough that the adjoint finds the block in the cache that `X_b @ w` filled.
BLOCK_BYTES = 1 << 20
#: How many evenly spread rows of X tell one data set from another.
FINGERPRINT_ROWS = 1_000
#: And about so many numbers of them, but never fewer rows than that: every run ends with a fingerprint.
FINGERPRINT_NUMBERS, FEWEST_MARKED = 1 << 15, 4


def weighted_sum(block: Array, s: Array | float) -> Array:
    """The sum of rows with their weights, without a scaled copy of them."""
    return np.asarray((np.full(len(block), s) if isinstance(s, float) else s) @ block)


def mean_row(X: Array, weight: Array | None) -> Array:
    """The weighted mean of the rows, in blocks."""
    step, mean = block_rows(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        mean += weighted_sum(X[rows].astype(np.float64, copy=False), 1.0 / len(X) if weight is None else weight[rows])
    return mean


def total(X: Array) -> float:
    """The sum of all entries, in blocks."""
    step, found = block_rows(X.shape[1]), 0.0
    for start in range(0, len(X), step):
        found += block_total(X[start : start + step])
    return found


def block_total(block: Array) -> float:
    """The sum of the entries of a block, which does not depend on the array that it is a view of."""
    return float(np.add.reduce(np.add.reduce(block, axis=1, dtype=np.float64)))


def block_rows(d: int) -> int:
    """Rows of a block that is read while something is measured."""
    return max(64, BLOCK_BYTES // (8 * d))


class DenseTable(LocalData):
    """What dense rows share, wherever they are kept: their measures and bounds, from blocks in a fixed order.

    Attributes
    ----------
    d : int
        Number of columns.
    cut : Blocks
        How a pass cuts the rows.
    """

    d: int
    cut: Blocks
    _mean: Once[Array]
    _total: Once[float]

    @abstractmethod
    def _pieces(self, step: int) -> Iterator[tuple[slice, Array]]:
        """The rows in pieces of ``step``, in order."""

    @abstractmethod
    def _not_finite(self, rows: slice, block: Array) -> ValueError | None:
        """The sentence about the first entry of a block that is not finite, None if all are."""

    def _scan(self) -> None:
        largest, mean_square = 0.0, 0.0
        for rows, block in self._blocks():
            with np.errstate(over="ignore", invalid="ignore"):
                squares = np.einsum("ij,ij->i", block, block)
            if not np.logical_and.reduce(np.isfinite(squares)):
                large = shown(np.abs(block).max())
                too_large = ValueError(f"`X` has entries as large as {large}; rescale its columns.")
                raise self._not_finite(rows, block) or too_large
            s = self.weights(rows)
            largest = max(largest, float(np.maximum.reduce(squares)))
            mean_square += float(np.add.reduce(squares * s))
            self._measured(block, s)
        self.row_norm, self.mean_square = measures(largest, mean_square)

    def _measured(self, block: Array, s: Array | float) -> None:
        """What else is to be known of a block and its weights while it is at hand."""

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        for rows, block in self._pieces(block_rows(self.d)):
            yield rows, block.astype(np.float64, copy=False)

    def tables(self, nbytes: int = 1 << 20) -> Iterator[tuple[slice, Any]]:
        most = getattr(self, "memory", 4 * nbytes) // 4  # of tables outside memory
        for rows, block in self._pieces(max(64, min(nbytes, most) // (8 * self.d))):
            yield rows, block.astype(np.float64, copy=False)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return (self.d, *outputs)

    def smoothness(self, *, centred: bool) -> float:
        return largest_eigenvalue(self, np.zeros(self.d), np.ones(self.d), self.mean_square, centred=centred)

    def mean_row(self) -> Array:
        return self._mean.get()

    def centre_row(self) -> Array:
        return self._mean.get()

    def summation(self) -> float:
        # The inner product over columns that forms an image does not count: a tangent is valid for any image.
        return self.cut.units()


class DenseData(DenseTable):
    """A two-dimensional float array with targets; X is never copied.

    Construction reads X once: it checks that all entries are finite and measures the rows for the rounding
    allowance of certificates. float32 blocks are widened one at a time, so that sums are float64 throughout.
    """

    def __init__(self, X: Array, y: Array, sample_weight: Array | None = None, threads: int | None = None) -> None:
        X = real_array("X", X)
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"`X` must be a table with at least one row and one column, got shape {X.shape}.")
        self.X, self.cut = X, Blocks.of(len(X))
        (self.n, self.d), self.nbytes = X.shape, X.nbytes
        self.threads = default_threads() if threads is None else count("threads", threads)
        self.y, self.weight = checked_targets(y, self.n), checked_weights(sample_weight, self.n)
        self._mean, self._total = Once(partial(mean_row, X, self.weight)), Once(partial(total, X))
        self._scan()

    def _pieces(self, step: int) -> Iterator[tuple[slice, Array]]:
        for start in range(0, self.n, step):
            rows = slice(start, min(start + step, self.n))
            yield rows, self.X[rows]

    def _not_finite(self, rows: slice, block: Array) -> ValueError | None:
        all_finite("X", self.X)
        return None

    def run(self, work: Pass) -> tuple[Array, Any]:
        if self.n <= min(self.cut.rows, tile_rows(self.d)) and self.nbytes < THREADED_BYTES:
            X = self.X.astype(np.float64, copy=False)  # a single tile: there are no sums to add
            residual, sums = work(slice(0, self.n), *[X @ w for w in work.vectors])
            return sums, None if residual is None else X.T @ residual
        partials = Partials(self.cut.count, compiled(work, self.d, self.cut, self.nbytes))
        dense_pass(self.X, 0, self.cut, work, partials, self.threads)
        return partials.total()

    def columns(self) -> Array:
        return self.X

    def feature_columns(self, features: Array, *, centred: bool) -> TableColumns:
        from projfree.numerics.group_l1_kernels import DENSE, NO_ROWS

        x = np.ascontiguousarray(self.X[:, features].T, dtype=np.float64)
        if centred:
            x -= x.mean(axis=1, keepdims=True)
        return DENSE, np.arange(0, x.size + 1, self.n), NO_ROWS, x.ravel()

    def subset(self, rows: Array) -> DenseData:
        part = self.alike()
        part.X, part.y, part.weight = self.X[rows], self.y[rows], self.sample_weights(rows)
        part.n, part.nbytes, part.cut = len(rows), part.X.nbytes, Blocks.of(len(rows))
        return part

    def fingerprint(self) -> str:
        return table_fingerprint(self, self.X.dtype, self.X[marked_rows(self.n, self.d)])


def marked_rows(n: int, width: int) -> Array:
    """The evenly spread rows that tell one data set from another, fewer where each holds many numbers."""
    most = min(FINGERPRINT_ROWS, max(FEWEST_MARKED, FINGERPRINT_NUMBERS // max(width, 1)))
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def table_fingerprint(data: DenseTable, dtype: np.dtype[Any], marked: Array) -> str:
    """A short hash of the shape, the dtype, the marked rows, the targets, the weights, and sums over all entries."""
    sums = np.array([data.row_norm, data.mean_square, data._total.get()])  # they tell values, not places in a row
    return short_hash(f"{(data.n, data.d)} {dtype} {data.y.shape}", marked, data.y, data.weight, sums)
