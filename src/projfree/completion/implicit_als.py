r"""Squares of a fully observed matrix in the regressions of many rows: a Gram matrix that all of them share.

The factors of the columns beside the matrix of ratings give each row the same quadratic term and a right-hand side
of its own, a sum over the places that it has; the rows below it are regressions on these two alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from projfree.checks import Array
from projfree.completion.lines import Lines
from projfree.completion.ridge_inverse import ridge_inverse
from projfree.completion.side_information_als import feature_gram, feature_pull

if TYPE_CHECKING:
    from projfree.completion.implicit import ImplicitObjective
    from projfree.completion.offsets import OffsetObjective

    Sweepable: TypeAlias = OffsetObjective | ImplicitObjective

#: Rows that are worked on at once: as many as fit a processor's cache.
BLOCK = 2048


@dataclass(frozen=True)
class Basis:
    r"""Coordinates in which the penalty of the components and a Gram matrix are both diagonal.

    With :math:`x = C z`, :math:`C^T \mathrm{diag}(\rho)\,C = I` and :math:`C^T G C` diagonal, no row has to multiply by
    the Gram matrix, and those with few entries can be solved exactly. Without a Gram matrix they are those there are.
    """

    ridge: Array
    shared: Array
    change: Array
    kind: np.dtype[Any]

    @classmethod
    def of(cls, gram: Array, ridge: Array, kind: np.dtype[Any]) -> Basis:
        """The basis of a Gram matrix, which may be empty, and a penalty."""
        if not len(gram):
            return cls(ridge, np.zeros(len(ridge)), gram, kind)
        root = 1.0 / np.sqrt(ridge)
        shared, vectors = np.linalg.eigh(root[:, None] * gram * root)
        return cls(np.ones(len(ridge)), np.maximum(shared, 0.0), root[:, None] * vectors, kind)

    def turned(self, factor: Array) -> Array:
        """What rows of the other side, or right-hand sides, are in these coordinates."""
        return self._times(factor, self.change)

    def begun(self, factor: Array) -> Array:
        """What rows of this side are."""
        return self._times(factor, np.linalg.inv(self.change).T if len(self.change) else self.change)

    def back(self, factor: Array) -> Array:
        """Rows of this side as they were before."""
        return self._times(factor, self.change.T)

    def _times(self, factor: Array, by: Array) -> Array:
        by = by.astype(self.kind)
        if not len(by):
            return factor.astype(self.kind, copy=False)
        return write_product(factor, by, np.empty(factor.shape, self.kind))


@dataclass(frozen=True)
class SharedSquares:
    """The part of the squares around the matrix in the regressions of one side; nothing where there are none.

    Attributes
    ----------
    weight : float
        The weight of a square of the observed places; zero where they do not count.
    both : ndarray
        The factors of the other side and, beside them, those that its squares are made with.
    basis : Basis
        The coordinates of the regressions.
    inverse : ndarray
        That of the matrix of the rows below, which have no other terms.
    features : ndarray
        The right-hand sides that features add, one for each row; none where there are none.
    """

    weight: float
    both: Array
    basis: Basis
    inverse: Array
    features: Array

    @classmethod
    def of(
        cls, f: Sweepable, side: int, own: Array, other: Array, far: Array, kind: np.dtype[Any], ridge: Array
    ) -> SharedSquares:
        """The squares of rows that begin at ``own``, given the factors ``other`` of columns and ``far`` beside them."""
        none, around, n = np.zeros((0, 0), kind), f.neighbours, f.entries.data.n
        if around is None:
            return cls(0.0, none, Basis.of(none, ridge, kind), none, none)
        beside, weight, k = far[: around.counts[side]], f.scale * n, other.shape[1]
        gram = weight * gram_matrix(beside)
        if around.features[side] is not None:
            gram = gram + feature_gram(around, side, far, n)
        basis, features = Basis.of(gram, ridge, kind), feature_pull(around, side, own, far, n).astype(kind)
        if not weight:
            return cls(0.0, none, basis, none, features)
        both = np.empty((len(other), 2 * k), kind)
        both[:, :k], both[:, k:] = other, beside
        # One small inverse and a product are much faster than solves with as many sides as there are rows.
        inverse = weight * ridge_inverse(weight * gram_matrix(other, around.rated[1 - side]), ridge)
        return cls(weight, both, basis, inverse.astype(kind), features)

    def sums(self, lines: Lines, start: int, stop: int) -> Array:
        """For each of some rows the sum of ``both`` over its places; empty without squares of these."""
        out = np.empty((stop - start if self.weight else 0, self.both.shape[1]), self.both.dtype)
        if self.weight:
            lines.sums(self.both, out, start, stop)
        return out

    def pull(self, sums: Array, part: slice) -> Array:
        """The right-hand sides of rows of the matrix; none without squares."""
        own: Array = sums[:, sums.shape[1] // 2 :] * sums.dtype.type(self.weight)
        if not len(self.features):
            return own
        return own + self.features[part] if self.weight else self.features[part]

    def extra(self, sums: Array) -> Array:
        """The rows below the matrix."""
        return sums[:, : sums.shape[1] // 2] @ self.inverse


def write_product(factor: Array, by: Array, out: Array) -> Array:
    """``factor @ by`` in ``out``, by blocks of rows and in the precision of ``by``."""
    for start in range(0, len(factor), BLOCK):
        part = slice(start, start + BLOCK)
        np.matmul(factor[part].astype(by.dtype, copy=False), by, out=out[part])
    return out


def gram_matrix(factor: Array, weights: Array | None = None) -> Array:
    """``(D F)^T D F``, summed in double precision over blocks of rows."""
    total = np.zeros((factor.shape[1],) * 2)
    for start in range(0, len(factor), BLOCK):
        part = slice(start, start + BLOCK)
        block = factor[part] if weights is None else factor[part] * weights[part, None]
        total += block.T @ block
    return total
