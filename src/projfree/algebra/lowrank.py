"""`LowRank`: a matrix held as a lazy mixture of factors, recompressed when there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from projfree.algebra.pattern import FactoredShape, Pattern
from projfree.algebra.structured import Structured
from projfree.checks import Array
from projfree.numerics.parallel import over_rows
from projfree.numerics.svd import svd

#: Mixtures with more columns than this, and than twice what the last compression left, are compressed.
MOST_COLUMNS = 512
#: What a compression may cut, relative to the Frobenius norm: rounding on small matrices, a little more on large ones.
SMALL_SIDE, CUT_SMALL, CUT_LARGE = 1024, 1e-13, 1e-7


class Factor:
    """``left @ right.T`` with left ``(m, k)`` and right ``(n, k)``; shared between mixtures, compared by identity.

    ``cut`` bounds the Frobenius norm of what compressions have taken from the matrix that it stands for.
    """

    __slots__ = ("cut", "left", "right")

    def __init__(self, left: Array, right: Array, cut: float = 0.0) -> None:
        self.left, self.right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        self.cut = cut

    @property
    def rank(self) -> int:
        """The number of columns."""
        return int(self.left.shape[1])


class LowRank(Structured):
    r"""The matrix :math:`\sum_j c_j L_j R_j^T`; mixing costs nothing until columns abound.

    Parameters
    ----------
    shape : tuple of int
        The shape of the matrix.
    terms : sequence of (float, Factor)
        Coefficients and factors; none make zero.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.algebra import LowRank
    >>> X = LowRank.of(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0], [5.0]]))
    >>> (0.5 * X + 0.5 * X).toarray()
    array([[ 3.,  4.,  5.],
           [ 6.,  8., 10.]])
    >>> X.rank
    1
    """

    def __init__(self, shape: Sequence[int], terms: Sequence[tuple[float, Factor]]) -> None:
        self.shape, self.terms = FactoredShape(shape), tuple(terms)
        self.low, self.on = self, None

    @classmethod
    def of(cls, left: Array, right: Array, cut: float = 0.0) -> LowRank:
        """The matrix ``left @ right.T``."""
        left, right = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
        return cls((len(left), len(right)), ((1.0, Factor(left, right, cut)),) if left.shape[1] else ())

    @classmethod
    def sum(cls, shape: FactoredShape, parts: Sequence[LowRank]) -> LowRank:
        """The sum of matrices, compressed where it has too many columns."""
        found: dict[Factor, float] = {}
        for part in parts:
            for c, factor in part.terms:
                found[factor] = found.get(factor, 0.0) + c
        total = cls(shape, [(c, factor) for factor, c in found.items() if c != 0.0])
        least = max((factor.rank for _, factor in total.terms), default=0)
        limit = max(min(MOST_COLUMNS, 2 * min(shape)), 2 * least)
        return total.compressed() if total.rank > limit else total

    def __mul__(self, a: Any) -> LowRank:
        a = float(a)
        return LowRank(self.shape, [(a * c, factor) for c, factor in self.terms] if a else ())

    @property
    def rank(self) -> int:
        """The number of columns held, an upper bound on the rank."""
        return sum(factor.rank for _, factor in self.terms)

    @property
    def cut(self) -> float:
        """A bound on the Frobenius distance to the matrix that exact arithmetic without compression would hold."""
        return float(sum(abs(c) * factor.cut for c, factor in self.terms))

    def factors(self) -> tuple[Array, Array]:
        """``(left, right)`` with the matrix equal to ``left @ right.T``."""
        if not self.terms:
            return np.zeros((self.shape[0], 0)), np.zeros((self.shape[1], 0))
        if len(self.terms) == 1:
            c, factor = self.terms[0]
            return factor.left if c == 1.0 else c * factor.left, factor.right
        left = np.concatenate([c * factor.left for c, factor in self.terms], axis=1)
        return left, np.concatenate([factor.right for _, factor in self.terms], axis=1)

    def decomposed(self) -> tuple[Array, Array, Array]:
        """The singular value decomposition ``(U, sigma, V)`` with orthonormal columns, by QR of both factors."""
        left, right = self.factors()
        q, r = np.linalg.qr(left)
        o, s = np.linalg.qr(right)
        u, sigma, vt = svd(r @ s.T)
        return q @ u, sigma, o @ vt.T

    def singular_values(self) -> Array:
        """The singular values, largest first."""
        left, right = self.factors()
        r, s = np.linalg.qr(left)[1], np.linalg.qr(right)[1]
        return svd(r @ s.T)[1]

    def compressed(self, cut: float | None = None) -> LowRank:
        """The same matrix with as few columns as the relative cut allows; what was cut is added to `cut`.

        Singular values are only dropped, so no Schatten norm grows.
        """
        if not self.terms:
            return self
        allowed = cut if cut is not None else CUT_SMALL if min(self.shape) <= SMALL_SIDE else CUT_LARGE
        u, sigma, v = self.decomposed()
        tail = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1])  # of dropping everything from here on
        keep = int(np.count_nonzero(tail > allowed * tail[0])) if len(tail) and tail[0] > 0.0 else 0
        lost = float(tail[keep]) if keep < len(tail) else 0.0
        rounding = 16.0 * float(np.finfo(float).eps) * self.rank * float(tail[0] if len(tail) else 0.0)
        return LowRank.of(u[:, :keep] * sigma[:keep], v[:, :keep], self.cut + lost + rounding)

    def times(self, block: Array) -> Array:
        return self._sum([c * (f.left @ (f.right.T @ block)) for c, f in self.terms], (self.shape[0], block.shape[1]))

    def transposed_times(self, block: Array) -> Array:
        return self._sum([c * (f.right @ (f.left.T @ block)) for c, f in self.terms], (self.shape[1], block.shape[1]))

    def on_places(self, pattern: Pattern) -> Array:
        """The entries at the places of a pattern."""
        if not self.terms:
            return np.zeros(pattern.count)
        from projfree.numerics.entries_kernels import values_at

        (left, right), out = self.factors(), np.empty(pattern.count)
        indptr, indices = pattern.indptr, pattern.indices
        over_rows(lambda start, stop: values_at(indptr, indices, left, right, out, start, stop), indptr)
        return out

    def of_pairs(self, rows: Array, cols: Array) -> Array:
        if not self.terms:
            return np.zeros(len(rows))
        from projfree.numerics.entries_kernels import values_of_pairs

        left, right = self.factors()
        out = np.empty(len(rows))
        values_of_pairs(np.asarray(rows), np.asarray(cols), left, right, out)
        return out

    def slab(self, start: int, stop: int) -> Array:
        terms = [c * (f.left[start:stop] @ f.right.T) for c, f in self.terms]
        return self._sum(terms, (stop - start, self.shape[1]))

    def column_slab(self, start: int, stop: int) -> Array:
        terms = [c * (f.left @ f.right[start:stop].T) for c, f in self.terms]
        return self._sum(terms, (self.shape[0], stop - start))

    def scaled(self, rows: Array, cols: Array) -> LowRank:
        grown = float(np.max(np.abs(rows)) * np.max(np.abs(cols)))
        terms = [(c, Factor(f.left * rows[:, None], f.right * cols[:, None], f.cut * grown)) for c, f in self.terms]
        return LowRank(self.shape, terms)

    def inner(self, other: Any) -> float:
        if isinstance(other, np.ndarray):
            left, right = self.factors()
            return float(np.sum(left * (other @ right)))
        return float(sum(self._with(part) for part in other.parts()))

    def _with(self, part: Any) -> float:
        if not isinstance(part, LowRank):
            return float(part.inner(self))
        (a, b), (c, d) = self.factors(), part.factors()
        return float(np.sum((a.T @ c) * (b.T @ d)))

    def size(self) -> float:
        return float(np.linalg.norm(self.singular_values())) if self.terms else 0.0

    def any(self) -> bool:
        return any(f.left.any() and f.right.any() for _, f in self.terms)

    def finite(self) -> bool:
        return all(np.isfinite(c) and np.isfinite(f.left).all() and np.isfinite(f.right).all() for c, f in self.terms)

    def describe(self) -> str:
        """A few words."""
        return f"rank {self.rank} at most" if self.terms else "zero"
