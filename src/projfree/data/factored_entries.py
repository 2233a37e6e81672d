"""Observed entries of a matrix that is never formed: images by factors, adjoints on the pattern."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import OnPattern, Pattern, is_structured
from projfree.checks import Array
from projfree.data.base import Data, checked_targets, checked_weights
from projfree.data.entries import Entries
from projfree.data.rows import Pass

#: Entries in one block; sums within a block may be added in any order, so the block bounds their rounding.
BLOCK_ROWS = 1 << 16


class FactoredEntriesData(Data):
    """Targets at observed entries; the parameter is a matrix in factors or on the pattern.

    Rows of the data are the entries in the order of their places; entries at one place are rows of their own.
    """

    pattern: Pattern
    keeps_images = True
    diagonal = True
    adjoint_reads = False
    products = 0.0

    def __init__(self, entries: Entries, y: Array, sample_weight: Array | None = None) -> None:
        y, weight = checked_targets(y, len(entries.rows)), checked_weights(sample_weight, len(entries.rows))
        if y.ndim != 1:
            raise ValueError(f"`y` must be a vector, one value for each observed entry, got shape {y.shape}.")
        self.pattern, order, self.place = Pattern.of(entries.rows, entries.cols, entries.shape)
        self.n = len(order)
        self.y, self.weight = y[order], None if weight is None else weight[order]
        self.row_norm = self.mean_square = 1.0

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        if outputs:
            raise ValueError(f"Observed entries have one prediction each; the loss asks for {outputs[0]}.")
        return self.pattern.shape

    def run(self, work: Pass) -> tuple[Array, Any]:
        images = [self.image(w) for w in work.vectors]
        sums, residual = in_blocks(self.n, images, work)
        return sums, None if residual is None else self.scatter(residual)

    def image(self, w: Any) -> Array:
        """The entries of ``w``, one for each row of the data."""
        if is_structured(w):
            values = np.zeros(self.pattern.count)
            for part in w.parts():
                values = values + part.on_places(self.pattern)
        else:
            values = w[self.pattern.rows, self.pattern.indices]
        return values if self.place is None else values[self.place]

    @cached_property
    def places(self) -> tuple[Array, Array]:  # type: ignore[override]  # read-only here: formed when first asked for
        at = self.pattern
        return (at.rows, at.indices) if self.place is None else (at.rows[self.place], at.indices[self.place])

    def most_in_line(self) -> int:
        """The most entries in one row or one column of the matrix."""
        return max(int(np.bincount(index).max()) for index in self.places)

    def scatter(self, r: Array) -> Any:
        """The adjoint of the image."""
        if self.place is not None:
            r = np.bincount(self.place, weights=r, minlength=self.pattern.count)
        return OnPattern(self.pattern, r)

    def subset(self, rows: Array) -> Data:
        return _Part(self, rows)

    def smoothness(self, *, centred: bool) -> float:
        # A^T S A is diagonal: the weight of each place. Centring only lowers the eigenvalues.
        most: float = float(self.mean_row().values.max())
        return most * (1.0 + 2.0 * float(np.finfo(float).eps) * self.summation())

    def mean_row(self) -> Any:
        return self.scatter(np.array(np.broadcast_to(self.weights(slice(None)), (self.n,))))

    def summation(self) -> float:
        blocks, most = -(-self.n // BLOCK_ROWS), 1
        if self.place is not None:
            most = int(np.bincount(self.place).max())
        return float(max(min(self.n, BLOCK_ROWS) + blocks, most) + 8)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"factored entries {tuple(self.pattern.shape)} {self.n}".encode())
        parts = (self.pattern.indptr, self.pattern.indices, self.place, self.y, self.weight)
        for part in parts:
            digest.update(b"-" if part is None else np.ascontiguousarray(part).data)
        return digest.hexdigest()[:16]


class _Part(Data):
    """Some entries of the data, with adjoints on the pattern of all."""

    def __init__(self, whole: FactoredEntriesData, rows: Array) -> None:
        self.whole, self.n, self.y = whole, len(rows), whole.y[rows]
        self.place = rows if whole.place is None else whole.place[rows]
        self.weight = None if whole.weight is None else whole.weight[rows] * (whole.n / len(rows))
        self.row_norm = self.mean_square = 1.0
        at = whole.pattern
        self.places = (at.rows[self.place], at.indices[self.place])

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return self.whole.shape(outputs)

    def run(self, work: Pass) -> tuple[Array, Any]:
        at = self.whole.pattern
        rows, cols = at.rows[self.place], at.indices[self.place]
        images = [w.of_pairs(rows, cols) if is_structured(w) else w[rows, cols] for w in work.vectors]
        sums, residual = in_blocks(self.n, images, work)
        if residual is None:
            return sums, None
        gradient: Any = OnPattern(at, np.bincount(self.place, weights=residual, minlength=at.count))
        return sums, gradient

    def subset(self, rows: Array) -> Data:
        raise TypeError("a sample is not sampled again; take it from the data.")

    def smoothness(self, *, centred: bool) -> float:
        return self.whole.smoothness(centred=centred)

    def mean_row(self) -> Any:
        return self.adjoint(np.array(np.broadcast_to(self.weights(slice(None)), (self.n,))))

    def summation(self) -> float:
        return self.whole.summation()

    def fingerprint(self) -> str:
        return f"part of {self.whole.fingerprint()}"


def in_blocks(n: int, images: list[Array], work: Pass) -> tuple[Array, Array | None]:
    """The added sums of a pass over blocks of rows, and its residuals in one array."""
    sums, residuals = np.zeros(()), None
    for start in range(0, n, BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, n))
        residual, part = work(rows, *(u[rows] for u in images))
        sums = sums + part
        if residual is not None:
            residuals = np.empty(n) if residuals is None else residuals
            residuals[rows] = residual
    return sums, residuals
