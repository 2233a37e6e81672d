r"""Which entries were observed, and features: squares of blocks beside and below the matrix of ratings.

With B the 0/1 matrix of the observed places, F and H features of rows and columns, and X, S and T blocks of one larger
matrix, the problem of completion gets the further terms

.. math:: M = \begin{pmatrix} X & S \\ T & \cdot \end{pmatrix}, \qquad
          \bigl\|([B, F] - S)\, Q^{1/2}\bigr\|_F^2 + \bigl\|P^{1/2} ([B; H^T] - T)\bigr\|_F^2

with diagonal weights Q and P: w/n for B, 1/n for features. Rows of X and S share factors, and so do columns of X and T:
what somebody looked at says something about what they like. The terms have as many entries as the matrix and are never
formed: for factors

.. math:: \|B - U V^T\|_F^2 = |B| - 2 \sum_{(i,j) \in B} U_i \cdot V_j + \operatorname{tr}(U^T U\, V^T V).

The tangent of the squares at :math:`S_0` is :math:`|B| - \|S_0\|^2 + 2 \langle S_0 - B, S\rangle`, sparse plus low
rank.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from projfree.algebra import UNIT, LowRank, OnPattern, Pattern
from projfree.algebra.hashing import short_hash
from projfree.algebra.pattern import added, products
from projfree.algebra.structured import FactoredShape, Structured
from projfree.checks import Array

#: Features of the rows and of the columns of the matrix, a row of numbers for each; None is no table.
Features = tuple[OnPattern | None, OnPattern | None]


class SquaresTangent(NamedTuple):
    """The tangent of the squares: a low-rank gradient, the one on patterns apart (`SideInformation.pulls`)."""

    value: float
    constant: float
    gradient: LowRank
    constant_error: float
    gradient_error: float


class SideInformation:
    """The squares of one problem, for side 0, the rows of the matrix (S), and for side 1, its columns (T).

    Parameters
    ----------
    pattern : Pattern
        The observed places, of an m x n matrix.
    implicit : float
        The weight of a square of B; zero leaves B out.
    features : pair of OnPattern or None
        Of shapes m x d and n x e.
    weight : float
        The weight of a square of the features.

    Attributes
    ----------
    known : pair of OnPattern
        What S and T are compared with, ``[B, F]`` and ``[B; H.T]``; B alone shares its pattern with the ratings.
    weights : pair of ndarray
        The weights of the columns of S and of the rows of T.
    counts : pair of int
        How many of these belong to B.
    """

    def __init__(self, pattern: Pattern, implicit: float, features: Features, weight: float) -> None:
        self.pattern, self.implicit, self.features = pattern, implicit, features
        self.counts = (pattern.shape[1], pattern.shape[0]) if implicit else (0, 0)
        widths = [0 if table is None else table.shape[1] for table in features]
        each = zip(self.counts, widths, strict=True)
        self.weights = tuple(np.repeat([implicit, weight], [lines, width]) for lines, width in each)
        squares = [0.0 if table is None else math.fsum(table.values**2) for table in features]
        #: The squares at zero.
        self.at_zero = 2.0 * self.implicit * (pattern.count if implicit else 0) + weight * math.fsum(squares)

    @property
    def any(self) -> bool:
        """Whether there are squares."""
        return self.implicit > 0.0 or self.features != (None, None)

    @property
    def extra(self) -> tuple[int, int]:
        """The numbers of rows below the matrix and of columns beside it."""
        return len(self.weights[1]), len(self.weights[0])

    @cached_property
    def known(self) -> tuple[OnPattern, OnPattern]:
        """What S and T are compared with."""
        return self._known(0), self._known(1)

    def _known(self, side: int) -> OnPattern:
        at, table, count = self.pattern, self.features[side], self.counts[side]
        ones = np.broadcast_to(1.0, at.count if self.implicit else 0)
        if table is None and self.implicit:
            return OnPattern(at, ones)
        own, far, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [ones]
        if self.implicit:
            places = (at.rows, at.indices)
            own, far = [places[side]], [places[1 - side]]
        if table is not None:
            own, far = [*own, table.pattern.rows], [*far, count + table.pattern.indices.astype(np.int64)]
            values = [*values, table.values]
        rows, cols = (np.concatenate(part) for part in ((own, far) if side == 0 else (far, own)))
        shape = (at.shape[0], len(self.weights[0])) if side == 0 else (len(self.weights[1]), at.shape[1])
        pattern, order, _ = Pattern.of(rows, cols, shape)
        return OnPattern(pattern, np.concatenate(values)[order])

    @property
    def pulls(self) -> tuple[OnPattern, OnPattern]:
        """The gradients of the squares at zero, of the shapes of S and T."""
        (S, T), (q, r) = self.known, self.weights
        return OnPattern(S.pattern, -2.0 * S.values * q[S.pattern.indices]), OnPattern(
            T.pattern, -2.0 * T.values * r[T.pattern.rows]
        )

    def _parts(self, left: Array, right: Array) -> list[tuple[Array, Array, Array]]:
        """For S and for T the factors of the matrix's lines, those beyond it, and the weights of these."""
        m, n = self.pattern.shape
        return [(left[:m], right[n:], self.weights[0]), (right[:n], left[m:], self.weights[1])]

    def square(self, left: Array, right: Array) -> float:
        """The weighted squares of S and T, for factors of the larger matrix."""
        parts = self._parts(left, right)
        return sum(float(np.sum((own.T @ own) * (far.T @ (far * q[:, None])))) for own, far, q in parts)

    def value(self, left: Array, right: Array) -> float:
        """The sum of all squares."""
        if not self.any:
            return 0.0
        m, n = self.pattern.shape
        parts = LowRank.of(left[:m], right[n:]), LowRank.of(left[m:], right[:n])
        linear = sum(pull.inner(part) for pull, part in zip(self.pulls, parts, strict=True))
        return max(self.at_zero + linear + self.square(left, right), 0.0)

    def tangent(self, left: Array, right: Array) -> SquaresTangent:
        """The tangent, with bounds on the rounding of its constant and on the norm of that of its gradient."""
        (m, n), (below, beside), k = self.pattern.shape, self.extra, left.shape[1]
        parts = self._parts(left, right)
        (_, far0, q0), (_, far1, q1) = parts
        lefts = np.block([[left[:m], np.zeros((m, k))], [np.zeros((below, k)), 2.0 * far1 * q1[:, None]]])
        rights = np.block([[np.zeros((n, k)), right[:n]], [2.0 * far0 * q0[:, None], np.zeros((beside, k))]])
        constant = self.at_zero - self.square(left, right)
        # At least the weighted sum of squares, and at least the norm of the weighted matrix, of each part.
        owns, lines = [float(np.sum(own**2)) for own, *_ in parts], [np.sum(far**2, axis=1) for _, far, _ in parts]
        squares = sum(own * float(q @ line) for own, line, (_, _, q) in zip(owns, lines, parts, strict=True))
        sizes = sum(
            math.sqrt(own * float(q**2 @ line)) for own, line, (_, _, q) in zip(owns, lines, parts, strict=True)
        )
        # Gram matrices add as many terms as there are rows, and products of their entries may cancel.
        units = m + n + below + beside + 8.0 * k + 16.0
        error = UNIT * (units * (self.at_zero + squares) + abs(constant))
        moved = sum(pull.size() for pull in self.pulls) + 2.0 * sizes
        gradient = LowRank.of(lefts, rights)
        return SquaresTangent(self.value(left, right), constant, gradient, error, 8.0 * UNIT * moved)

    def fingerprint(self) -> str:
        """A short hash that tells this from others."""
        tables = [table for table in self.features if table is not None]
        parts = [part for table in tables for part in (table.pattern.indptr, table.pattern.indices, table.values)]
        return short_hash(f"side information {self.implicit!r}", *parts)


class StackedPattern(Structured):
    """The matrix ``[[A, C], [D, 0]]`` of blocks that each have a `Pattern`, or share one, which saves memory.

    Parameters
    ----------
    A, C, D : OnPattern
        The blocks: C has as many rows as A, and D as many columns.
    """

    def __init__(self, A: OnPattern, C: OnPattern, D: OnPattern) -> None:
        self.blocks = A, C, D
        self.shape = FactoredShape((A.shape[0] + D.shape[0], A.shape[1] + C.shape[1]))

    @property
    def on(self) -> Any:  # type: ignore[override]  # read-only here
        return self

    def __mul__(self, a: Any) -> StackedPattern:
        return StackedPattern(*(part * a for part in self.blocks))

    def plus(self, others: list[Any]) -> StackedPattern:
        """The sum with other stacks."""
        return StackedPattern(*(added(list(parts)) for parts in zip(*(s.blocks for s in (self, *others)), strict=True)))

    def times(self, block: Array) -> Array:
        A, C, D = self.blocks
        first, second = block[: A.shape[1]], block[A.shape[1] :]
        return np.concatenate([A.times(first) + C.times(second), D.times(first)])

    def transposed_times(self, block: Array) -> Array:
        A, C, D = self.blocks
        first, second = block[: A.shape[0]], block[A.shape[0] :]
        return np.concatenate([A.transposed_times(first) + D.transposed_times(second), C.transposed_times(first)])

    def slab(self, start: int, stop: int) -> Array:
        (A, C, D), m = self.blocks, self.blocks[0].shape[0]
        out, middle = np.zeros((stop - start, self.shape[1])), min(max(m, start), stop)
        if start < middle:
            out[: middle - start] = np.hstack([A.slab(start, middle), C.slab(start, middle)])
        if middle < stop:
            out[middle - start :, : A.shape[1]] = D.slab(middle - m, stop - m)
        return out

    def scaled(self, rows: Array, cols: Array) -> StackedPattern:
        A, C, D = self.blocks
        m, n = A.shape
        A, C = A.scaled(rows[:m], cols[:n]), C.scaled(rows[:m], cols[n:])
        return StackedPattern(A, C, D.scaled(rows[m:], cols[:n]))

    def inner(self, other: Any) -> float:
        return float(sum(self._inner(part) for part in other.parts()))

    def _inner(self, other: Any) -> float:
        if isinstance(other, StackedPattern):
            return sum(one.inner(two) for one, two in zip(self.blocks, other.blocks, strict=True))
        (m, n), (rows, cols) = self.blocks[0].shape, self.shape
        at = [(slice(m), slice(n)), (slice(m), slice(n, cols)), (slice(m, rows), slice(n))]
        return sum(part.inner(other.block(*places)) for part, places in zip(self.blocks, at, strict=True))

    def size(self) -> float:
        return math.hypot(*(part.size() for part in self.blocks))

    @property
    def scale(self) -> float:
        return self.size()

    @property
    def count(self) -> int:
        """The number of places of all blocks."""
        return sum(part.count for part in self.blocks)

    def any(self) -> bool:
        return any(part.any() for part in self.blocks)

    def finite(self) -> bool:
        return all(part.finite() for part in self.blocks)

    def gram(self) -> Array:
        """The Gram matrix of the smaller side."""
        (A, C, D), by_rows = self.blocks, self.shape[0] < self.shape[1]
        if by_rows:  # that of the rows is the one of the transpose, whose blocks beside and below change places
            C, D = D, C
        side, ends = A.shape[0 if by_rows else 1], min(self.shape)
        out, near, far = np.zeros((ends, ends)), slice(0, side), slice(side, ends)
        for G, H, first, second in ((A, A, near, near), (D, D, near, near), (A, C, near, far), (C, C, far, far)):
            out[first, second] += products(G, H, by_rows)
        out[far, near] = out[near, far].T
        return out
