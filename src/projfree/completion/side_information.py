r"""What is known everywhere beside and below the matrix of ratings: which entries were observed, and features.

With the larger matrix :math:`\begin{pmatrix} X & S \\ T & \cdot \end{pmatrix}` these are squares

.. math:: \sum_j q_j \|K_{\cdot j} - S_{\cdot j}\|^2 + \sum_i r_i \|H_{i \cdot} - T_{i \cdot}\|^2,

where the columns of K are those of the 0/1 matrix B of the observed places and the features of the rows, and the rows
of H are those of B and the features of the columns. Rows and columns of X without an observed entry do not count in the
squares of B: nothing is known of what was observed there, and features alone say where they belong. Features that are
missing do not count either: their squares are among those of the whole block, and are taken off again one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from projfree.algebra import LowRank, OnPattern, Pattern
from projfree.algebra.hashing import short_hash
from projfree.checks import Array

#: Features of the rows and of the columns of the matrix, a row of numbers for each; NaN is missing, None is no table.
Features = tuple[OnPattern | None, OnPattern | None]


class Part(NamedTuple):
    """Factors ``own @ far.T`` of a block, and the weight of a square in each of its columns."""

    own: Array
    far: Array
    weights: Array

    @property
    def square(self) -> float:
        """The sum of the weighted squares."""
        return float(np.sum((self.own.T @ self.own) * (self.far.T @ (self.far * self.weights[:, None]))))

    @property
    def sizes(self) -> tuple[float, float]:
        """At least the weighted sum of squares, and at least the size of the matrix times the weights."""
        own, lines = float(np.sum(self.own**2)), np.sum(self.far**2, axis=1)
        return own * float(self.weights @ lines), math.sqrt(own * float(self.weights**2 @ lines))


class Missing(NamedTuple):
    """The features of one side that are missing: their places in the table's values, lines, and columns."""

    places: Array
    lines: Array
    columns: Array

    @classmethod
    def of(cls, table: OnPattern | None) -> Missing:
        """Those of a table that has NaN there."""
        if table is None:
            return cls(*np.zeros((3, 0), np.int64))
        places = np.flatnonzero(np.isnan(table.values))
        return cls(places, table.pattern.rows[places], table.pattern.indices[places])

    def filled(self, table: OnPattern, by: Array | float) -> OnPattern:
        """The table with numbers there."""
        if not len(self.places):
            return table
        return OnPattern(table.pattern, _with(table.values, self.places, by))

    def predicted(self, own: Array, far: Array) -> Array:
        """What the factors of the lines and of the features say of them."""
        if not len(self.places):
            return np.zeros(0)
        return LowRank.of(own, far).of_pairs(self.lines, self.columns)


class Neighbours:
    """The squares of one problem, in both directions.

    Parameters
    ----------
    pattern : Pattern
        The observed places, of an m x n matrix.
    implicit : float
        The weight of a square of B; zero where it is not there.
    features : pair of OnPattern or None
        Of shapes m x d and n x e, NaN where one is missing.
    weight : float
        The weight of a square of the features.

    Attributes
    ----------
    known : float
        The squares at zero.
    rated : pair of ndarray
        Ones for rows, and for columns, with an observed entry, zeros for others.
    features : pair of OnPattern or None
        The features, zero where one is missing.
    missing : pair of Missing
        Which are.
    """

    def __init__(self, pattern: Pattern, implicit: float, features: Features, weight: float) -> None:
        self.missing = Missing.of(features[0]), Missing.of(features[1])
        tables = [None if t is None else gaps.filled(t, 0.0) for t, gaps in zip(features, self.missing, strict=True)]
        self.features = tables[0], tables[1]
        self.weight, self.implicit = weight, implicit
        self.counts = (pattern.shape[1], pattern.shape[0]) if implicit else (0, 0)  # of columns and rows of B
        seen = np.diff(pattern.indptr), np.bincount(pattern.indices, minlength=pattern.shape[1])
        self.rated = tuple((each > 0).astype(np.float64) for each in seen)
        widths = [0 if table is None else table.shape[1] for table in features]
        each = zip(self.counts, widths, strict=True)
        self.weights = tuple(np.repeat([implicit, weight], [lines, width]) for lines, width in each)
        self.pattern = pattern
        squares = [0.0 if table is None else math.fsum(table.values**2) for table in self.features]
        self.known = 2.0 * implicit * pattern.count + weight * math.fsum(squares)

    @property
    def pulls(self) -> tuple[OnPattern, OnPattern]:
        """The gradients of the squares at zero, of shapes m x c and d x n."""
        (first, _), (second, _) = self._placed_pulls
        return first, second

    @cached_property
    def _placed_pulls(self) -> tuple[tuple[OnPattern, Array], tuple[OnPattern, Array]]:
        """The gradients at zero, and where in their values the missing features are."""
        at, (below, beside) = self.pattern, self.extra
        ones = OnPattern(at, np.ones(at.count)) * (-2.0 * self.implicit)
        pulls = [(ones, np.zeros(0, np.int64))] * 2  # where there are no features both are B
        if self.features[0] is not None or not self.implicit:
            rows, cols, values = self._entries(0)
            pulls[0] = _on(rows, cols, values, (at.shape[0], beside), self._last(0))
        if self.features[1] is not None or not self.implicit:
            cols, rows, values = self._entries(1)
            pulls[1] = _on(rows, cols, values, (below, at.shape[1]), self._last(1))
        return pulls[0], pulls[1]

    def _last(self, side: int) -> Array:
        """The places of missing features among the entries of a side, in which features are behind those of B."""
        return self.missing[side].places + (self.pattern.count if self.implicit else 0)

    def predicted(self, blocks: tuple[LowRank, LowRank]) -> tuple[Array, Array]:
        """What S and T say of the missing features."""
        (U, Q), (P, V) = (block.factors() for block in blocks)
        first = self.missing[0].predicted(U, Q[self.counts[0] :])
        return first, self.missing[1].predicted(V, P[self.counts[1] :])

    def on_patterns(self, predicted: tuple[Array, Array]) -> Iterator[OnPattern]:
        """The gradients at zero, less those of the squares of missing features."""
        for (pull, at), values in zip(self._placed_pulls, predicted, strict=True):
            if not len(at):
                yield pull
                continue
            yield OnPattern(pull.pattern, _with(pull.values, at, -2.0 * self.weight * values))

    def _entries(self, side: int) -> tuple[Array, Array, Array]:
        """Lines of the matrix, lines beside or below it, and the gradient there."""
        at, table, lines = self.pattern, self.features[side], self.counts[side]
        own, far, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        if self.implicit:
            places = (at.rows, at.indices) if side == 0 else (at.indices, at.rows)
            own, far, values = [places[0]], [places[1]], [np.full(at.count, -2.0 * self.implicit)]
        if table is not None:
            own, far = [*own, table.pattern.rows], [*far, lines + table.pattern.indices.astype(np.int64)]
            values = [*values, -2.0 * self.weight * table.values]
        return np.concatenate(own), np.concatenate(far), np.concatenate(values)

    def fingerprint(self) -> str:
        """A short hash that tells these features from others."""
        tables = [table for table in self.features if table is not None]
        parts = [part for table in tables for part in (table.pattern.indptr, table.pattern.indices, table.values)]
        parts += [missing.places for missing in self.missing if len(missing.places)]
        return short_hash("features", *parts) if tables else "none"

    @property
    def extra(self) -> tuple[int, int]:
        """How many rows are below the matrix, and how many columns beside it."""
        return len(self.weights[1]), len(self.weights[0])

    def blocks(self, w: LowRank) -> tuple[LowRank, LowRank]:
        """S and T of a larger matrix, as factors."""
        (left, right), (m, n) = w.factors(), (len(self.rated[0]), len(self.rated[1]))
        return LowRank.of(left[:m], right[n:]), LowRank.of(left[m:], right[:n])

    def parts(self, blocks: tuple[LowRank, LowRank]) -> Iterator[tuple[int, Part]]:
        """What the squares see of S and T: for each, lines without an entry count in features alone."""
        (U, Q), (P, V) = (block.factors() for block in blocks)
        for side, (own, far) in enumerate(((U, Q), (V, P))):
            weights, rated = self.weights[side], self.rated[side]
            if rated.all() or not self.implicit:
                yield side, Part(own, far, weights)
                continue
            first = np.where(np.arange(len(weights)) < self.counts[side], weights, 0.0)
            yield side, Part(own * rated[:, None], far, first)
            if self.features[side] is not None:
                yield side, Part(own, far, weights - first)

    def value(self, blocks: tuple[LowRank, LowRank]) -> float:
        """The sum of all squares."""
        linear = sum(pull.inner(block) for pull, block in zip(self.pulls, blocks, strict=True))
        return max(self.known + linear + self.square(blocks, self.predicted(blocks)), 0.0)

    def square(self, blocks: tuple[LowRank, LowRank], predicted: tuple[Array, Array]) -> float:
        """The sum of the weighted squares of S and T where something is known."""
        missing = self.weight * sum(float(values @ values) for values in predicted)
        return sum(part.square for _, part in self.parts(blocks)) - missing

    def placed(self, blocks: tuple[LowRank, LowRank]) -> LowRank:
        """The gradient without that at zero, as a larger matrix: S and T with their weights, zeros elsewhere."""
        (m, n), (below, beside) = (len(self.rated[0]), len(self.rated[1])), self.extra
        left, right = [], []
        for side, (own, far, weights) in self.parts(blocks):
            k, far = own.shape[1], 2.0 * far * weights[:, None]
            if side == 0:
                left.append(np.concatenate([own, np.zeros((below, k))]))
                right.append(np.concatenate([np.zeros((n, k)), far]))
            else:
                left.append(np.concatenate([np.zeros((m, k)), far]))
                right.append(np.concatenate([own, np.zeros((beside, k))]))
        return LowRank.of(np.concatenate(left, axis=1), np.concatenate(right, axis=1))


def _on(rows: Array, cols: Array, values: Array, shape: tuple[int, int], some: Array) -> tuple[OnPattern, Array]:
    """A sparse matrix of different places, and where in its values some of those given are."""
    pattern, order, _ = Pattern.of(rows, cols, shape)
    if len(some):
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        some = place[some]
    return OnPattern(pattern, values[order]), some


def _with(values: Array, at: Array, others: Array | float) -> Array:
    """Numbers with others at some places."""
    out = values.copy()
    out[at] = others
    return out
