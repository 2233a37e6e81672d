r"""Side information: implicit feedback (which entries were observed) and features, as further blocks of the matrix.

With B the 0/1 matrix of observed entries, F and H features of rows and columns, and X, S and T blocks of one larger
matrix, the objective gets the terms

.. math:: M = \begin{pmatrix} X & S \\ T & \cdot \end{pmatrix}, \qquad
          \bigl\|([B, F] - S)\, Q^{1/2}\bigr\|_F^2 + \bigl\|P^{1/2} ([B; H^T] - T)\bigr\|_F^2

with diagonal weights Q and P: w/n for B, 1/n for features. The rows of X and S share factors, and so do the columns of
X and T, so that which items a user has rated informs the ratings. These terms have as many entries as the matrix, which
are never formed: for factors U and V

.. math:: \|B - U V^T\|_F^2 = |B| - 2 \sum_{(i,j) \in B} U_i \cdot V_j + \operatorname{tr}(U^T U\, V^T V).

The tangent of the squares at :math:`S_0` is :math:`|B| - \|S_0\|^2 + 2 \langle S_0 - B, S\rangle`, sparse plus low
rank.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import UNIT, LowRank, OnPattern, Pattern
from projfree.algebra.hashing import short_hash
from projfree.algebra.pattern import added, products
from projfree.algebra.structured import FactoredShape, Structured
from projfree.checks import Array
from projfree.completion.bias_terms import Tangent

#: Features of rows and of columns, each with one row of numbers per row or column of the matrix, or None.
Features = tuple[OnPattern | None, OnPattern | None]


class SideInformation:
    """Squared losses of the blocks S (side 0, with the rows of the matrix) and T (side 1, with its columns).

    ``implicit`` is the weight of each entry of B, zero to leave it out. ``weight`` is the weight of each entry of the
    features, of shapes m x d and n x e. ``weights`` are the weights of the columns of S and the rows of T, ``counts``
    the number of those that belong to B, and ``zero_value`` is the value of the squares at zero.
    """

    def __init__(self, pattern: Pattern, implicit: float, features: Features, weight: float) -> None:
        self.pattern, self.implicit, self.features = pattern, implicit, features
        self.counts = (pattern.shape[1], pattern.shape[0]) if implicit else (0, 0)
        widths = [0 if table is None else table.shape[1] for table in features]
        each = zip(self.counts, widths, strict=True)
        self.weights = tuple(np.repeat([implicit, weight], [lines, width]) for lines, width in each)
        squares = [0.0 if table is None else math.fsum(table.values**2) for table in features]
        self.zero_value = 2.0 * self.implicit * (pattern.count if implicit else 0) + weight * math.fsum(squares)

    @property
    def any(self) -> bool:
        """Whether there is any side information."""
        return self.implicit > 0.0 or self.features != (None, None)

    @property
    def extra(self) -> tuple[int, int]:
        """The numbers of rows of T and of columns of S."""
        return len(self.weights[1]), len(self.weights[0])

    @cached_property
    def targets(self) -> tuple[OnPattern, OnPattern]:
        """The targets of S and T, ``[B, F]`` and ``[B; H.T]``; B alone shares its pattern with the ratings."""
        return self._target_block(0), self._target_block(1)

    def _target_block(self, side: int) -> OnPattern:
        at, table, values = self.pattern, self.features[side], np.broadcast_to(1.0, self.pattern.count)
        if table is None and self.implicit:
            return OnPattern(at, values)
        own, far = (at.rows, at.indices) if side == 0 else (at.indices, at.rows)
        if not self.implicit:
            own, far, values = own[:0], far[:0], values[:0]
        if table is not None:
            own, far = np.append(own, table.pattern.rows), np.append(far, self.counts[side] + table.pattern.indices)
            values = np.append(values, table.values)
        rows, cols = (own, far) if side == 0 else (far, own)
        shape = (at.shape[0], len(self.weights[0])) if side == 0 else (len(self.weights[1]), at.shape[1])
        pattern, order, _ = Pattern.of(rows, cols, shape)
        return OnPattern(pattern, values[order])

    @cached_property
    def gradients_at_zero(self) -> tuple[OnPattern, OnPattern]:
        """The gradients of the squares with respect to S and T at zero."""
        gradients = []
        for known, lines, q in zip(self.targets, ("indices", "rows"), self.weights, strict=True):
            if known.values.strides == (0,):  # B alone, in which all have one weight
                gradients.append(OnPattern(known.pattern, np.broadcast_to(-2.0 * self.implicit, len(known.values))))
            else:
                gradients.append(OnPattern(known.pattern, -2.0 * known.values * q[getattr(known.pattern, lines)]))
        return gradients[0], gradients[1]

    def _parts(self, left: Array, right: Array) -> list[tuple[Array, Array, Array]]:
        """Return for S and for T the shared factors, the factors of side information, and their weights."""
        m, n = self.pattern.shape
        return [(left[:m], right[n:], self.weights[0]), (right[:n], left[m:], self.weights[1])]

    def _squared_norm(self, left: Array, right: Array) -> float:
        """Return the weighted squared norms of S and T for factors of the larger matrix."""
        parts = self._parts(left, right)
        return sum(float(np.sum((own.T @ own) * (far.T @ (far * q[:, None])))) for own, far, q in parts)

    def value(self, left: Array, right: Array) -> float:
        """Return the sum of all squares for factors of the larger matrix."""
        if not self.any:
            return 0.0
        m, n = self.pattern.shape
        blocks = LowRank.of(left[:m], right[n:]), LowRank.of(left[m:], right[:n])
        linear = sum(pull.inner(block) for pull, block in zip(self.gradients_at_zero, blocks, strict=True))
        return max(self.zero_value + linear + self._squared_norm(left, right), 0.0)

    def tangent(self, left: Array, right: Array) -> Tangent:
        """Return the tangent; its gradient is relative to `gradients_at_zero`, which have to be added."""
        (m, n), (below, beside), k = self.pattern.shape, self.extra, left.shape[1]
        (own0, far0, q0), (own1, far1, q1) = self._parts(left, right)
        lefts = np.block([[own0, np.zeros((m, k))], [np.zeros((below, k)), 2.0 * far1 * q1[:, None]]])
        rights = np.block([[np.zeros((n, k)), own1], [2.0 * far0 * q0[:, None], np.zeros((beside, k))]])
        constant = self.zero_value - self._squared_norm(left, right)
        squares = sizes = 0.0  # upper bounds: the weighted sum of squares, the sum of norms of the weighted matrices
        for own, far, q in ((own0, far0, q0), (own1, far1, q1)):
            size, lines = float(np.sum(own**2)), np.sum(far**2, axis=1)
            squares, sizes = squares + size * float(q @ lines), sizes + math.sqrt(size * float(q**2 @ lines))
        # Gram matrices sum over all rows, and products of their entries may cancel.
        units = m + n + below + beside + 8.0 * k + 16.0
        error = UNIT * (units * (self.zero_value + squares) + abs(constant))
        moved = sum(pull.size() for pull in self.gradients_at_zero) + 2.0 * sizes
        return Tangent(self.value(left, right), constant, LowRank.of(lefts, rights), error, 8.0 * UNIT * moved)

    def fingerprint(self) -> str:
        """Return a short hash of the side information."""
        tables = [table for table in self.features if table is not None]
        parts = [part for table in tables for part in (table.pattern.indptr, table.pattern.indices, table.values)]
        return short_hash(f"side information {self.implicit!r}", *parts)


class BlockMatrix(Structured):
    """Sparse matrix of blocks, which may share a pattern to save memory.

    Each block has its first row and column. Blocks that share a row or a column start there together and have the same
    size.
    """

    def __init__(self, shape: tuple[int, ...], blocks: list[tuple[OnPattern, int, int]]) -> None:
        self.shape, self.blocks = FactoredShape(shape), blocks

    @property
    def on(self) -> Any:  # type: ignore[override]  # read-only here
        return self

    @property
    def _places(self) -> list[tuple[OnPattern, slice, slice]]:
        return [(part, slice(i, i + part.shape[0]), slice(j, j + part.shape[1])) for part, i, j in self.blocks]

    def __mul__(self, a: Any) -> BlockMatrix:
        return BlockMatrix(self.shape, [(part * a, i, j) for part, i, j in self.blocks])

    def plus(self, others: list[Any]) -> BlockMatrix:
        """Return the sum with matrices of the same block structure."""
        each = zip(*(one.blocks for one in (self, *others)), strict=True)
        return BlockMatrix(self.shape, [(added([part for part, *_ in same]), *same[0][1:]) for same in each])

    def times(self, block: Array) -> Array:
        out = np.zeros((self.shape[0], block.shape[1]))
        for part, rows, cols in self._places:
            out[rows] += part.times(block[cols])
        return out

    def transposed_times(self, block: Array) -> Array:
        out = np.zeros((self.shape[1], block.shape[1]))
        for part, rows, cols in self._places:
            out[cols] += part.transposed_times(block[rows])
        return out

    def slab(self, start: int, stop: int) -> Array:
        out = np.zeros((stop - start, self.shape[1]))
        for part, rows, cols in self._places:
            first, last = max(start, rows.start), min(stop, rows.stop)
            if first < last:
                out[first - start : last - start, cols] = part.slab(first - rows.start, last - rows.start)
        return out

    def scaled(self, rows: Array, cols: Array) -> BlockMatrix:
        each = zip(self._places, self.blocks, strict=True)
        return BlockMatrix(self.shape, [(part.scaled(rows[i], cols[j]), *at[1:]) for (part, i, j), at in each])

    def inner(self, other: Any) -> float:
        if isinstance(other, BlockMatrix):
            return sum(one.inner(two) for (one, *_), (two, *_) in zip(self.blocks, other.blocks, strict=True))
        if other.parts() != [other]:
            return float(sum(self.inner(part) for part in other.parts()))
        return sum(part.inner(other.block(rows, cols)) for part, rows, cols in self._places)

    def size(self) -> float:
        return math.hypot(*(part.size() for part, *_ in self.blocks))

    @property
    def scale(self) -> float:
        return self.size()

    @property
    def count(self) -> int:
        """The number of entries of all blocks."""
        return sum(part.count for part, *_ in self.blocks)

    def any(self) -> bool:
        return any(part.any() for part, *_ in self.blocks)

    def finite(self) -> bool:
        return all(part.finite() for part, *_ in self.blocks)

    def gram(self) -> Array:
        """Return the Gram matrix of the smaller dimension."""
        by_rows, out = self.shape[0] < self.shape[1], np.zeros((min(self.shape),) * 2)
        for one, *at in self._places:
            for two, *there in self._places:
                if at[by_rows] == there[by_rows]:  # the blocks share columns, or rows
                    out[at[not by_rows], there[not by_rows]] += products(one, two, by_rows)
        return out
