"""Dense arrays in memory: A w = X w for vectors and for matrices of several outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, all_finite, real_array, shown
from projfree.data.base import Data, Kernel, Meter, checked_targets, checked_weights

#: Bytes of X in one block: small enough that the adjoint finds the block in the cache that `X_b @ w` filled.
BLOCK_BYTES = 1 << 20
#: Up to this many rows or columns the largest eigenvalue is taken from a Gram matrix; beyond, it is bounded.
GRAM_SIDE = 3_000
#: How many evenly spread rows of X tell one data set from another.
FINGERPRINT_ROWS = 1_000


class DenseData(Data):
    """A two-dimensional float array with targets; X is never copied.

    Construction reads X once: it checks that all entries are finite and measures the rows for the rounding
    allowance of certificates. float32 blocks are widened one at a time, so that sums are float64 throughout.
    """

    def __init__(self, X: Array, y: Array, sample_weight: Array | None = None) -> None:
        X = real_array("X", X)
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"`X` must be a table with at least one row and one column, got shape {X.shape}.")
        self.X, self.n, self.meter = X, len(X), Meter()
        self.y, self.weight = checked_targets(y, self.n), checked_weights(sample_weight, self.n)
        self._scan()

    def _scan(self) -> None:
        largest, mean_square, mean = 0.0, 0.0, np.zeros(self.X.shape[1])
        for rows, block in self._blocks():
            with np.errstate(over="ignore", invalid="ignore"):
                squares = np.einsum("ij,ij->i", block, block)
            if not np.isfinite(squares).all():
                all_finite("X", self.X)  # names the entry, unless only the squares overflow
                raise ValueError(f"`X` has entries as large as {shown(np.abs(block).max())}; rescale its columns.")
            s = self.weights(rows)
            largest = max(largest, float(squares.max()))
            mean_square += float(np.sum(squares * s))
            mean += np.sum(block * s, axis=0) if isinstance(s, float) else s @ block
        self.row_norm, self.mean_square, self._mean = float(np.sqrt(largest)), mean_square, mean

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        step = self._block_rows()
        for start in range(0, self.n, step):
            rows = slice(start, min(start + step, self.n))
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def _block_rows(self) -> int:
        return max(64, BLOCK_BYTES // (8 * int(self.X.shape[1])))

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return (self.X.shape[1], *outputs)

    def accumulate(self, vectors: Sequence[Array], kernel: Kernel) -> tuple[Array, Array | None]:
        sums: Array = np.zeros(())
        adjoint: Array | None = None
        for rows, block in self._blocks():
            residual, part = kernel(rows, *(block @ w for w in vectors))
            sums = sums + part
            if residual is not None:
                term = block.T @ residual
                adjoint = term if adjoint is None else np.add(adjoint, term, out=adjoint)
        self.meter.rows += self.n
        return sums, adjoint

    def subset(self, rows: Array) -> DenseData:
        """The given rows; a weight of ``n s_i / m`` keeps sums unbiased under uniform sampling."""
        part = object.__new__(DenseData)
        part.X, part.y, part.n = self.X[rows], self.y[rows], len(rows)
        part.weight = None if self.weight is None else self.weight[rows] * (self.n / len(rows))
        part.row_norm, part.mean_square, part._mean = self.row_norm, self.mean_square, self._mean
        part.meter = self.meter
        return part

    def smoothness(self, *, centred: bool) -> float:
        side = min(self.X.shape)
        if side > GRAM_SIDE:
            return self._row_sum_bound()
        gram = self._gram(centred) if side < self.n else self._outer_gram(centred)
        # The Gram matrix and its eigenvalues are rounded; two units a row or column more than covers it.
        largest = float(np.linalg.eigvalsh(gram)[-1])
        return largest + 8.0 * UNIT * (self.summation() + float(side)) * float(np.trace(gram))

    def _gram(self, centred: bool) -> Array:
        gram = np.zeros((self.X.shape[1],) * 2)
        shift = self._mean if centred else np.zeros(self.X.shape[1])
        for rows, block in self._blocks():
            part = block - shift if centred else block
            gram += (part * np.reshape(self.weights(rows), (-1, 1))).T @ part
        self.meter.rows += self.n
        return gram

    def _outer_gram(self, centred: bool) -> Array:
        root = np.sqrt(np.broadcast_to(self.weights(slice(None)), (self.n,)))
        rows = (self.X.astype(np.float64, copy=False) - (self._mean if centred else 0.0)) * root[:, None]
        self.meter.rows += self.n
        gram: Array = rows @ rows.T
        return gram

    def _row_sum_bound(self) -> float:
        # lambda_max of a matrix with entries |sum_i s_i x_ij x_ik| is at most its largest row sum; centring
        # only subtracts a positive semidefinite matrix, so the bound serves both.
        ones = np.ones(self.X.shape[1])
        total = np.zeros(self.X.shape[1])
        for rows, block in self._blocks():
            size = np.abs(block)
            total += size.T @ (size @ ones * self.weights(rows))
        self.meter.rows += self.n
        return min(float(total.max()), self.mean_square) * (1.0 + 8.0 * UNIT * self.summation())

    def mean_row(self) -> Array:
        return self._mean

    def summation(self) -> float:
        blocks = -(-self.n // self._block_rows())
        # Any order within a block of B rows errs by at most B units, the blocks are added one by one; the
        # inner product over columns that forms an image does not count: a tangent is valid for any image.
        return float(min(self.n, self._block_rows()) + blocks + 8)

    def fingerprint(self) -> str:
        rows = np.linspace(0, self.n - 1, min(self.n, FINGERPRINT_ROWS)).astype(np.intp)
        digest = hashlib.sha256(f"{self.X.shape} {self.X.dtype} {self.y.shape}".encode())
        weight = np.zeros(0) if self.weight is None else self.weight
        for part in (self.X[rows], self.y, weight):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]
