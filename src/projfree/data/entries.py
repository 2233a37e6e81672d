"""Observed entries of a matrix, (A W)_i = W[row_i, col_i], where W is a dense matrix or a structured one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from projfree.algebra import OnPattern, Pattern, is_structured
from projfree.algebra.hashing import short_hash
from projfree.checks import Array, count, plain_array, shown
from projfree.data.column_stats import ColumnStats
from projfree.data.local import LocalData, checked_targets, checked_weights
from projfree.data.rows import BLOCK_ROWS, Pass

#: Matrices with at least this many entries are not formed by default.
FACTORED = 1_000_000


@dataclass(frozen=True, eq=False)
class Entries:
    """Positions of the observed entries of a matrix.

    Parameters
    ----------
    rows, cols : array of int
        Zero-based row and column indices, one pair for each observed entry; a pair may occur more than once.
    shape : tuple of int
        Shape of the matrix.
    factored : bool, optional
        Whether the matrix is never formed: gradients are stored on the observed entries and iterates in factors
        (`LowRank`). By default if the matrix has at least a million entries.

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


class EntriesData(LocalData):
    """Targets at observed entries of a matrix of shape ``sides``; each row of A has a single nonzero entry, 1.

    If the matrix is formed, ``place`` contains the flat index of each observed entry. Otherwise the parameter is a
    matrix in factors or on the ``pattern``, the rows of the data are the entries in the order of the pattern, repeated
    entries are separate rows, and ``place`` contains the index in the pattern of each row; None if these are ``0, 1,
    ...``. The entries of a block of ``block_rows`` may be summed in any order, so its size bounds the rounding error.
    """

    caches_predictions = True
    block_rows = 4 * BLOCK_ROWS

    def __init__(self, entries: Entries, y: Array, sample_weight: Array | None = None) -> None:
        self.n, self.sides = len(entries.rows), tuple[int, ...](entries.shape)
        self.y, self.weight = checked_targets(y, self.n), checked_weights(sample_weight, self.n)
        if self.y.ndim != 1:
            raise ValueError(f"`y` must be a vector, one value for each observed entry, got shape {self.y.shape}.")
        self.pattern: Pattern | None = None
        self.place: Array | None = None
        if entries.factored:
            self.pattern, order, self.place = Pattern.of(entries.rows, entries.cols, entries.shape)
            self.sides, self.adjoint_reads, self.y = self.pattern.shape, False, self.y[order]
            self.weight = None if self.weight is None else self.weight[order]
        else:
            self.place = np.ravel_multi_index((entries.rows, entries.cols), entries.shape)

    @cached_property
    def places(self) -> tuple[Array, Array]:  # type: ignore[override]  # read-only here
        if self.pattern is None:
            rows, columns = np.unravel_index(self.place, self.sides)  # type: ignore[arg-type]  # never None here
            return rows, columns
        at = slice(None) if self.place is None else self.place
        return self.pattern.rows[at], self.pattern.indices[at]

    def image(self, w: Any) -> Array:
        """Return the predictions: the entries of ``w``, one for each row of the data."""
        if not is_structured(w):
            return np.asarray(w[self.places])
        assert self.pattern is not None
        if self.n < self.pattern.count:  # the data are a sample
            sampled: Array = w.of_pairs(*self.places)
            return sampled
        values = np.zeros(self.pattern.count)
        for part in w.parts():
            values = values + part.on_places(self.pattern)
        return values if self.place is None else values[self.place]

    def scatter(self, r: Array) -> Any:
        """Return the adjoint: a matrix with the residuals ``r`` at the observed entries, added at repeated ones."""
        if self.place is not None:
            r = np.bincount(self.place, r, math.prod(self.sides) if self.pattern is None else self.pattern.count)
        return r.reshape(self.sides) if self.pattern is None else OnPattern(self.pattern, r)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        if outputs:
            raise ValueError(f"Observed entries have one prediction each; the loss asks for {outputs[0]}.")
        return self.sides

    def run(self, work: Pass) -> tuple[Array, Any]:
        images, residuals = [self.image(w) for w in work.vectors], []
        sums = np.zeros(())
        for start in range(0, self.n, self.block_rows):
            rows = slice(start, min(start + self.block_rows, self.n))
            residual, part = work(rows, *(u[rows] for u in images))
            sums = sums + part
            residuals.append(residual)
        found = [residual for residual in residuals if residual is not None]
        return sums, self.scatter(np.concatenate(found)) if found else None

    def take(self, rows: Array, weight: Array | None) -> Self:
        """Return the data restricted to ``rows``; adjoints still have the sparsity pattern of the full data."""
        part = self.shallow_copy()
        for name in ("column_stats", "rounding_units", "places"):  # recomputed when needed
            part.__dict__.pop(name, None)
        part.n, part.y, part.weight = len(rows), self.y[rows], weight
        part.place = rows if self.place is None else self.place[rows]
        return part

    @cached_property
    def column_stats(self) -> ColumnStats:  # type: ignore[override]  # found when it is first asked for
        # A^T S A is diagonal, with the total weight of each matrix entry; centring only reduces the eigenvalues.
        mean = self.scatter(np.array(np.broadcast_to(self.rows(slice(None)).s, (self.n,))))
        at = getattr(mean, "values", mean)
        one = np.ones(())
        return ColumnStats(self.n, mean, 1.0, at, at, one, at, one, one, row_norm=1.0, mean_square=1.0, terms=0)

    @cached_property
    def rounding_units(self) -> float:  # type: ignore[override]  # found when it is first asked for
        blocks = -(-self.n // self.block_rows)
        # The adjoint sums repeated entries sequentially.
        most = 1 if self.place is None else int(np.bincount(self.place).max())
        return float(max(min(self.n, self.block_rows) + blocks, most) + 8)

    def measure(self) -> None:
        self.__dict__.pop("column_stats", None)

    def fingerprint(self) -> str:
        at = () if self.pattern is None else (self.pattern.indptr, self.pattern.indices)
        return short_hash(f"entries {tuple(self.sides)} {self.n}", *at, self.place, self.y, self.weight)
