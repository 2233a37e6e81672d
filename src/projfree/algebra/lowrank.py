"""`LowRank`: a matrix held as a lazy mixture of factors, recompressed when there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from projfree.algebra.pattern import FactoredShape, Pattern
from projfree.algebra.structured import Structured
from projfree.checks import Array
from projfree.numerics.spectra import singular_values, svd
from projfree.runtime import over_rows

#: Mixtures with more columns than this, and than twice what the last compression left, are compressed.
MOST_COLUMNS = 512
#: The factors of an iterate take no more memory than this, or so many columns; beyond, the smallest singular values
#: go, down to half of it, and what they were is counted.
FACTOR_BYTES, FEWEST_COLUMNS = 1 << 28, 160
#: There, singular values below this part of the first go too, and the rest shrinks by so much.
FAINT, SHRINK = 1e-5, 1e-8
#: Inner products of sums with more pairs of terms than this are taken of their factors side by side, which are copies.
MANY_TERMS = 64
#: What a compression may cut, relative to the Frobenius norm: rounding on small matrices, a little more on large ones.
SMALL_SIDE, CUT_SMALL, CUT_LARGE = 1024, 1e-13, 1e-7

#: Factors with more columns than this part of the smaller side are multiplied out before they are decomposed.
WIDE = 0.75


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

    @property
    def low(self) -> LowRank:
        return self  # no attribute: a cycle would keep the memory until it is looked for

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
        """The singular value decomposition ``(U, sigma, V)`` with orthonormal columns, by QR of both factors.

        Where they have about as many columns as the smaller side, or more, the matrix itself is multiplied out.
        """
        left, right = self.factors()
        if self._wide:
            u, sigma, vt = svd(left @ right.T)
            return u[:, : self.rank], sigma[: self.rank], vt[: self.rank].T
        q, r = np.linalg.qr(left)
        o, s = np.linalg.qr(right)
        u, sigma, vt = svd(r @ s.T)
        return q @ u, sigma, o @ vt.T

    def singular_values(self) -> Array:
        """The singular values, largest first."""
        left, right = self.factors()
        if self._wide:
            dense = left @ right.T
            return singular_values(_triangle(dense if len(left) >= len(right) else dense.T))[: self.rank]
        return singular_values(_triangle(left) @ _triangle(right).T)

    @property
    def _wide(self) -> bool:
        """Whether the matrix takes hardly more memory than its factors, and is decomposed sooner."""
        return self.rank > WIDE * min(self.shape)

    def folded(self) -> LowRank:
        """The same matrix with no more columns than its smaller side has rows: where there are more, its entries."""
        if self.rank <= min(self.shape):
            return self
        (left, right), (m, n) = self.factors(), self.shape
        if m <= n:
            return LowRank.of(np.eye(m), right @ left.T, self.cut)
        return LowRank.of(left @ right.T, np.eye(n), self.cut)

    @property
    def capacity(self) -> int:
        """The columns that an iterate may have; at least twice those of its widest term, so that steps are not lost."""
        least = max((factor.rank for _, factor in self.terms), default=0)
        return max(FACTOR_BYTES // (8 * (self.shape[0] + self.shape[1])), FEWEST_COLUMNS, 2 * least)

    @property
    def fits(self) -> bool:
        """Whether its rank is within its capacity; always where the smaller side is, which no compression exceeds."""
        return self.rank <= self.capacity or min(self.shape) <= self.capacity

    def shortened(self) -> LowRank:
        """The matrix itself where it fits, else its leading part in half of the capacity."""
        return self if self.fits else self.shortened_to(self.capacity // 2)

    def shortened_to(self, columns: int) -> LowRank:
        """The leading part of the matrix in so many columns, with no more memory than the result takes.

        From Gram matrices of the factors, which know singular values to half the digits: smaller ones go too, and the
        rest shrinks by more than the rounding, so that no Schatten norm grows. `cut` counts all of it.
        """
        left, right = (_root(self._gram(side)) for side in ("left", "right"))
        u, sigma, vt = svd(left[0] @ right[0].T)
        keep = min(columns, int(np.count_nonzero(sigma > FAINT * sigma.max(initial=0.0))))
        lost = float(np.linalg.norm(sigma[keep:])) + 2.0 * SHRINK * float(np.linalg.norm(sigma))
        lost += left[2] * float(np.linalg.norm(right[0], 2)) + right[2] * float(np.linalg.norm(left[0], 2))
        ours = self._combined("left", left[1] @ (u[:, :keep] * ((1.0 - SHRINK) * sigma[:keep])))
        return LowRank.of(ours, self._combined("right", right[1] @ vt[:keep].T), self.cut + lost)

    def _gram(self, side: str) -> Array:
        """``B.T @ B`` of all columns of one side, coefficients with the left ones; the columns stay where they are."""
        blocks = [(c if side == "left" else 1.0, getattr(factor, side)) for c, factor in self.terms]
        return np.block([[(a * b) * (one.T @ two) for b, two in blocks] for a, one in blocks])

    def _combined(self, side: str, mix: Array) -> Array:
        """``B @ mix`` for all columns B of one side, as in `_gram`."""
        total, start = np.zeros((self.shape[side == "right"], mix.shape[1])), 0
        for c, factor in self.terms:
            total += getattr(factor, side) @ ((c if side == "left" else 1.0) * mix[start : start + factor.rank])
            start += factor.rank
        return total

    def compressed(self, cut: float | None = None) -> LowRank:
        """The same matrix with as few columns as the relative cut allows; what went is added to `cut`.

        Singular values are only dropped, so no Schatten norm grows.
        """
        if not self.terms:
            return self
        u, sigma, v, lost = self.truncated(cut)
        return LowRank.of(u * sigma, v, self.cut + lost)

    def truncated(self, cut: float | None = None) -> tuple[Array, Array, Array, float]:
        """The decomposition without the smallest singular values, up to the relative cut, and the size of what went."""
        allowed = cut if cut is not None else CUT_SMALL if min(self.shape) <= SMALL_SIDE else CUT_LARGE
        u, sigma, v = self.decomposed()
        tail = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1])  # of dropping everything from here on
        keep = int(np.count_nonzero(tail > allowed * tail[0])) if len(tail) and tail[0] > 0.0 else 0
        lost = float(tail[keep]) if keep < len(tail) else 0.0
        rounding = 16.0 * float(np.finfo(float).eps) * self.rank * float(tail[0] if len(tail) else 0.0)
        return u[:, :keep], sigma[:keep], v[:, :keep], lost + rounding

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

    def gram(self) -> Array:
        """The Gram matrix of the smaller side."""
        left, right = self.factors()
        own, other = (left, right) if self.shape[0] < self.shape[1] else (right, left)
        return np.asarray(own @ (other.T @ other) @ own.T)

    def block(self, rows: slice, cols: slice) -> LowRank:
        """Some neighbouring rows and columns."""
        left, right = (np.concatenate(parts, axis=1) for parts in zip(*self._blocks(rows, cols), strict=True))
        return LowRank.of(left, right)

    def _blocks(self, rows: slice, cols: slice) -> list[tuple[Array, Array]]:
        """Factors of some rows and columns, without the components that are zero there."""
        m, n = len(range(*rows.indices(self.shape[0]))), len(range(*cols.indices(self.shape[1])))
        found = [(np.zeros((m, 0)), np.zeros((n, 0)))]
        for c, f in self.terms:
            left, right = f.left[rows], f.right[cols]
            there = left.any(axis=0) & right.any(axis=0)
            found.append((c * left[:, there], right[:, there]))
        return found

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
        if len(self.terms) * len(part.terms) > MANY_TERMS:  # few large products are faster than many small ones
            (a, b), (c, d) = self.factors(), part.factors()
            return float(np.sum((a.T @ c) * (b.T @ d)))
        pairs = [(a * b, f, g) for a, f in self.terms for b, g in part.terms]
        return float(sum(c * np.sum((f.left.T @ g.left) * (f.right.T @ g.right)) for c, f, g in pairs))

    def size(self) -> float:
        return float(np.linalg.norm(self.singular_values())) if self.terms else 0.0

    @property
    def scale(self) -> float:
        # Component by component: in a block of a larger matrix many have one factor that is zero there.
        columns = [(c, np.linalg.norm(f.left, axis=0), np.linalg.norm(f.right, axis=0)) for c, f in self.terms]
        return float(sum(abs(c) * (left @ right) for c, left, right in columns))

    def any(self) -> bool:
        return any(f.left.any() and f.right.any() for _, f in self.terms)

    def finite(self) -> bool:
        return all(np.isfinite(c) and np.isfinite(f.left).all() and np.isfinite(f.right).all() for c, f in self.terms)

    def describe(self) -> str:
        """A few words."""
        return f"rank {self.rank} at most" if self.terms else "zero"


def _triangle(block: Array) -> Array:
    """The triangular factor of a QR decomposition."""
    return np.asarray(np.linalg.qr(block, mode="r"))


def _root(gram: Array) -> tuple[Array, Array, float]:
    """``T`` with ``T.T @ T`` equal to the Gram matrix, its pseudo-inverse, and the size of what is left out.

    That is what rounding of the Gram matrix hides.
    """
    squares, vectors = np.linalg.eigh(gram)
    noise = len(gram) * float(np.finfo(float).eps) * float(squares[-1])
    real = squares > noise
    roots, vectors = np.sqrt(squares[real]), vectors[:, real]
    return roots[:, None] * vectors.T, vectors / roots, float(np.sqrt(2.0 * noise * np.count_nonzero(~real)))
