"""`LowRank`: a matrix held as a lazy mixture of factors; matrices that are never formed as arrays for the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from projfree.algebra.pattern import OnPattern, Pattern
from projfree.algebra.structured import FactoredShape, Structured, combined
from projfree.checks import Array, real_array
from projfree.numerics.spectra import singular_values, svd
from projfree.runtime import MIN_PARALLEL_ENTRIES, default_threads, parallel_for

#: Mixtures with more columns than this, and than twice what the last compression left, are compressed.
MOST_COLUMNS = 512
#: The factors of an iterate take no more memory than this, or so many columns; beyond, the smallest singular values
#: go, down to half of it, and what they were is counted.
FACTOR_BYTES, FEWEST_COLUMNS = 1 << 28, 160
#: What a compression may cut, relative to the Frobenius norm: rounding on small matrices, a little more on large ones.
CUT_SMALL, CUT_LARGE = 1e-13, 1e-7
#: The rounding of a decomposition for each column, relative to the largest singular value.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


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
    def low(self) -> LowRank:  # type: ignore[override]  # read-only here
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
        return LowRank(self.shape, [(float(a) * c, factor) for c, factor in self.terms] if a else ())

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
        (q, r), (o, s) = (np.linalg.qr(factor) for factor in self.factors())
        u, sigma, vt = svd(r @ s.T)
        return q @ u, sigma, o @ vt.T

    def singular_values(self) -> Array:
        """The singular values, largest first."""
        left, right = self.factors()
        return singular_values(np.asarray(np.linalg.qr(left, mode="r")) @ np.asarray(np.linalg.qr(right, mode="r")).T)

    @property
    def capacity(self) -> int:
        """The columns that an iterate may have; at least twice those of its widest term, so that steps are not lost."""
        least = max((factor.rank for _, factor in self.terms), default=0)
        return max(FACTOR_BYTES // (8 * (self.shape[0] + self.shape[1])), FEWEST_COLUMNS, 2 * least)

    @property
    def fits(self) -> bool:
        """Whether its rank is within its capacity; always where the smaller side is, which no compression exceeds."""
        return self.rank <= self.capacity or min(self.shape) <= self.capacity

    def compressed(self, cut: float | None = None, columns: int | None = None) -> LowRank:
        """The leading part of the matrix, by the relative cut and in so many columns; `cut` counts what it leaves out.

        No Schatten norm grows.
        """
        if not self.terms:
            return self
        u, sigma, v, lost = self.truncated(cut, columns)
        return LowRank.of(u * sigma, v, self.cut + lost)

    def truncated(self, cut: float | None = None, columns: int | None = None) -> tuple[Array, Array, Array, float]:
        """The decomposition without the smallest singular values, and the size of what went.

        The others shrink by the rounding of the decomposition.
        """
        allowed = cut if cut is not None else CUT_SMALL if min(self.shape) <= MOST_COLUMNS else CUT_LARGE
        u, sigma, v = self.decomposed()
        tail = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1])  # of dropping everything from here on
        keep = min(int(np.count_nonzero(tail > allowed * tail[:1])), len(sigma) if columns is None else columns)
        rounding = ROUNDING * self.rank
        lost = float(tail[keep : keep + 1].sum()) + 2.0 * rounding * float(tail[:1].sum())
        return u[:, :keep], (1.0 - rounding) * sigma[:keep], v[:, :keep], lost

    def times(self, block: Array) -> Array:
        return self._sum([c * (f.left @ (f.right.T @ block)) for c, f in self.terms], (self.shape[0], block.shape[1]))

    def transposed_times(self, block: Array) -> Array:
        return self._sum([c * (f.right @ (f.left.T @ block)) for c, f in self.terms], (self.shape[1], block.shape[1]))

    def on_places(self, pattern: Pattern) -> Array:
        """The entries at the places of a pattern."""
        return self.of_pairs(pattern.rows, pattern.indices)

    def of_pairs(self, rows: Array, cols: Array) -> Array:
        from projfree.numerics.entries_kernels import values_of_pairs

        (left, right), out = self.factors(), np.empty(len(rows))
        threads = default_threads() if len(rows) >= MIN_PARALLEL_ENTRIES else 1
        parts = list(zip(*(np.array_split(each, threads) for each in (rows, cols, out)), strict=True))
        parallel_for(lambda k: values_of_pairs(left, right, *parts[k]), threads, threads)
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
        """Some neighbouring rows and columns, without the components that are zero there."""
        left, right = self.factors()
        left, right = left[rows], right[cols]
        there = left.any(axis=0) & right.any(axis=0)
        return LowRank.of(left[:, there], right[:, there])

    def scaled(self, rows: Array, cols: Array) -> LowRank:
        grown = float(np.max(np.abs(rows)) * np.max(np.abs(cols)))
        terms = [(c, Factor(f.left * rows[:, None], f.right * cols[:, None], f.cut * grown)) for c, f in self.terms]
        return LowRank(self.shape, terms)

    def inner(self, other: Any) -> float:
        if isinstance(other, np.ndarray):
            left, right = self.factors()
            return float(np.sum(left * (other @ right)))
        if not isinstance(other, LowRank):
            return float(sum(part.inner(self) for part in other.parts()))
        (a, b), (c, d) = self.factors(), other.factors()
        return float(np.sum((a.T @ c) * (b.T @ d)))

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


def pack(w: Structured) -> dict[str, Any]:
    """The parts of ``w`` as arrays; places on the pattern by their row pointers and columns."""
    tree: dict[str, Any] = {"shape": list(w.shape), "cut": 0.0}
    if w.low is not None:
        tree["left"], tree["right"] = w.low.factors()
        tree["cut"] = w.low.cut
    if w.on is not None:
        tree.update(values=w.on.values, indptr=w.on.pattern.indptr, indices=w.on.pattern.indices)
    return tree


def unpack(tree: dict[str, Any], pattern: Pattern | None = None) -> Structured:
    """Undo `pack`; places that are those of ``pattern`` become that pattern, since mixing asks for the same one."""
    m, n = tree["shape"]
    _check(tree, m, n)
    parts: list[Any] = [LowRank.of(tree["left"], tree["right"], tree["cut"])] if "left" in tree else []
    if "values" in tree:
        indptr, indices = tree["indptr"], tree["indices"]
        if pattern is None or not (
            pattern.shape == (m, n)
            and np.array_equal(pattern.indptr, indptr)
            and np.array_equal(pattern.indices, indices)
        ):
            pattern = Pattern(indptr, indices, (m, n))
        parts.append(OnPattern(pattern, tree["values"]))
    return combined(LowRank((m, n), ()).shape, *parts)


def _check(tree: dict[str, Any], m: int, n: int) -> None:
    """Raise where the arrays are not those of a matrix of this shape: a file may hold anything."""
    arrays = {name: real_array(name, tree[name]) for name in ("left", "right", "values") if name in tree}
    fits = all(np.isfinite(array).all() for array in arrays.values()) and float(tree["cut"]) >= 0.0
    if "left" in tree:
        left, right = arrays["left"], arrays["right"]
        fits = fits and left.ndim == right.ndim == 2 and left.shape == (m, right.shape[1]) and len(right) == n
    if "values" in tree:
        at, columns = tree["indptr"], tree["indices"]
        fits = fits and at.shape == (m + 1,) and at[0] == 0 and at[-1] == len(columns) and (np.diff(at) >= 0).all()
        fits = fits and arrays["values"].shape == columns.shape == (len(columns),) and columns.dtype.kind in "iu"
        fits = fits and bool(((columns >= 0) & (columns < n)).all())
    if not fits:
        raise ValueError(f"the parts of a matrix of shape {(m, n)} do not belong together")
