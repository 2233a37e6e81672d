"""Observed entries of a matrix: (A W)_i = W[row_i, col_i]."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.checks import Array, count, plain_array, shown
from projfree.data.base import Data, checked_targets, checked_weights
from projfree.data.rows import Pass

#: Entries in one block; sums within a block may be added in any order, so the block bounds their rounding.
BLOCK_ROWS = 1 << 13
#: Matrices of at least so many entries are not formed, unless asked for.
FACTORED = 1_000_000


@dataclass(frozen=True, eq=False)
class Entries:
    """The places of the observed entries of a matrix.

    Parameters
    ----------
    rows, cols : array of int
        Zero-based places, one pair for each observed entry; a pair may occur more than once.
    shape : tuple of int
        The shape of the matrix.
    factored : bool, optional
        Whether the matrix is never formed: gradients live on the observed entries, iterates in factors (`LowRank`).
        By default from a million entries on.

    Examples
    --------
    >>> from projfree import Entries, as_data
    >>> ratings = as_data(Entries([0, 2], [1, 0], shape=(3, 2)), [4.0, 5.0])
    >>> ratings.shape(())
    (3, 2)
    """

    rows: Array
    cols: Array
    shape: tuple[int, int]
    factored: bool | None = None

    def __post_init__(self) -> None:
        if len(self.shape) != 2:
            raise ValueError(f"`shape` must be that of a matrix, two whole numbers, got {shown(self.shape)}.")
        m, n = (count("shape", side) for side in self.shape)
        for name, side in (("rows", m), ("cols", n)):
            index = plain_array(name, getattr(self, name))
            if index.ndim != 1 or not len(index) or index.dtype.kind not in "iu":
                raise ValueError(
                    f"`{name}` must be a non-empty vector of whole numbers, got {index.dtype} {index.shape}."
                )
            if index.min() < 0 or index.max() >= side:
                raise ValueError(
                    f"`{name}` must lie between 0 and {side - 1}, got {index.min()} to {index.max()}; "
                    "map labels to places first, e.g. with `np.unique(labels, return_inverse=True)`."
                )
            object.__setattr__(self, name, index.astype(np.intp, copy=False))
        if self.factored is None:
            object.__setattr__(self, "factored", m * n >= FACTORED)
        if len(self.rows) != len(self.cols):
            raise ValueError(f"`rows` and `cols` must be of one length, got {len(self.rows)} and {len(self.cols)}.")


class EntriesData(Data):
    """Targets at observed entries; the parameter is the dense matrix."""

    keeps_images = True
    diagonal = True
    products = 0.0

    def __init__(self, entries: Entries, y: Array, sample_weight: Array | None = None) -> None:
        self.entries, self.n = entries, len(entries.rows)
        self.y, self.weight = checked_targets(y, self.n), checked_weights(sample_weight, self.n)
        if self.y.ndim != 1:
            raise ValueError(f"`y` must be a vector, one value for each observed entry, got shape {self.y.shape}.")
        self.row_norm = self.mean_square = 1.0

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        if outputs:
            raise ValueError(f"Observed entries have one prediction each; the loss asks for {outputs[0]}.")
        return self.entries.shape

    def run(self, work: Pass) -> tuple[Array, Any]:
        at, sums, residuals = self.entries, np.zeros(()), []
        for start in range(0, self.n, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, self.n))
            residual, part = work(rows, *(w[at.rows[rows], at.cols[rows]] for w in work.vectors))
            sums = sums + part
            if residual is not None:
                residuals.append(residual)
        return sums, self._scatter(np.concatenate(residuals)) if residuals else None

    def _scatter(self, r: Array) -> Array:
        m, n = self.entries.shape
        flat = self.entries.rows * n + self.entries.cols
        return np.bincount(flat, weights=r, minlength=m * n).reshape(m, n)

    def subset(self, rows: Array) -> EntriesData:
        part = object.__new__(EntriesData)
        at = self.entries
        part.entries = object.__new__(Entries)
        for name, value in (("rows", at.rows[rows]), ("cols", at.cols[rows]), ("shape", at.shape)):
            object.__setattr__(part.entries, name, value)
        part.n, part.y = len(rows), self.y[rows]
        part.weight = None if self.weight is None else self.weight[rows] * (self.n / len(rows))
        part.row_norm = part.mean_square = 1.0
        return part

    def smoothness(self, *, centred: bool) -> float:
        # A^T S A is diagonal: the weight of each place. Centring only lowers the eigenvalues.
        return float(self.mean_row().max()) * (1.0 + 2.0 * np.finfo(float).eps * self.summation())

    def mean_row(self) -> Array:
        return self._mean

    @cached_property
    def _mean(self) -> Array:
        return self._scatter(np.broadcast_to(self.weights(slice(None)), (self.n,)))

    @cached_property
    def _most(self) -> int:
        """How often a place occurs at most: so many terms the adjoint adds there, one after the other."""
        return int(np.bincount(self.entries.rows * self.entries.shape[1] + self.entries.cols).max())

    def summation(self) -> float:
        blocks = -(-self.n // BLOCK_ROWS)
        return float(max(min(self.n, BLOCK_ROWS) + blocks, self._most) + 8)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"entries {self.entries.shape} {self.n}".encode())
        weight = np.zeros(0) if self.weight is None else self.weight
        for part in (self.entries.rows, self.entries.cols, self.y, weight):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]
