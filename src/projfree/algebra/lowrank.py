"""`LowRank`, a linear combination of low-rank factors; conversion of structured matrices to arrays for files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from projfree.algebra.pattern import OnPattern, Pattern
from projfree.algebra.structured import FactoredShape, Structured, combined
from projfree.checks import Array, real_array
from projfree.numerics.spectra import singular_values, svd
from projfree.runtime import MIN_PARALLEL_ENTRIES, default_threads, parallel_for

#: A sum with more columns than this, and than twice the columns of its largest term, is compressed.
MOST_COLUMNS = 512
#: Largest size of the factors of an iterate in bytes, and number of columns that is always allowed. A larger iterate is
#: truncated to half of this size, and `cut` includes the truncation error.
FACTOR_BYTES, FEWEST_COLUMNS = 1 << 28, 160
#: Truncation error allowed in a compression, relative to the Frobenius norm, for small and for large matrices.
CUT_SMALL, CUT_LARGE = 1e-13, 1e-7
#: Rounding error of a singular value decomposition per column, relative to the largest singular value.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


class Factor:
    """The matrix ``left @ right.T`` with left ``(m, k)`` and right ``(n, k)``; shared by sums, compared by identity.

    ``cut`` is an upper bound on the truncation error of compressions in the Frobenius norm.
    """

    __slots__ = ("cut", "left", "right")

    def __init__(self, left: Array, right: Array, cut: float = 0.0) -> None:
        self.left, self.right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        self.cut = cut

    @property
    def rank(self) -> int:
        """Number of columns of the factors, an upper bound on the rank."""
        return int(self.left.shape[1])


class LowRank(Structured):
    r"""The matrix :math:`\sum_j c_j L_j R_j^T`; a linear combination only concatenates the terms.

    Parameters
    ----------
    shape : tuple of int
        Shape of the matrix.
    terms : sequence of (float, Factor)
        Coefficients and factors; an empty sequence is the zero matrix.

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
        return self  # not an attribute: a reference cycle would delay freeing the memory until garbage collection

    @classmethod
    def of(cls, left: Array, right: Array, cut: float = 0.0) -> LowRank:
        """Create the matrix ``left @ right.T``, whose truncation error is at most ``cut``."""
        left, right = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
        return cls((len(left), len(right)), ((1.0, Factor(left, right, cut)),) if left.shape[1] else ())

    @classmethod
    def sum(cls, shape: FactoredShape, parts: Sequence[LowRank]) -> LowRank:
        """Return the sum of matrices, compressed if it has too many columns."""
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
        """Number of columns of all factors together, an upper bound on the rank."""
        return sum(factor.rank for _, factor in self.terms)

    @property
    def cut(self) -> float:
        """Upper bound on the truncation error of all compressions, in the Frobenius norm."""
        return float(sum(abs(c) * factor.cut for c, factor in self.terms))

    def factors(self) -> tuple[Array, Array]:
        """Return ``(left, right)`` such that the matrix equals ``left @ right.T``."""
        if not self.terms:
            return np.zeros((self.shape[0], 0)), np.zeros((self.shape[1], 0))
        if len(self.terms) == 1:
            c, factor = self.terms[0]
            return factor.left if c == 1.0 else c * factor.left, factor.right
        left = np.concatenate([c * factor.left for c, factor in self.terms], axis=1)
        return left, np.concatenate([factor.right for _, factor in self.terms], axis=1)

    def decomposed(self) -> tuple[Array, Array, Array]:
        """Return the singular value decomposition ``(U, sigma, V)``, computed by QR of both factors."""
        (q, r), (o, s) = (np.linalg.qr(factor) for factor in self.factors())
        u, sigma, vt = svd(r @ s.T)
        return q @ u, sigma, o @ vt.T

    def singular_values(self) -> Array:
        """Return the singular values in decreasing order."""
        left, right = self.factors()
        return singular_values(np.asarray(np.linalg.qr(left, mode="r")) @ np.asarray(np.linalg.qr(right, mode="r")).T)

    @property
    def capacity(self) -> int:
        """Largest number of columns of an iterate; at least twice that of its largest term, so that no step is lost."""
        least = max((factor.rank for _, factor in self.terms), default=0)
        return max(FACTOR_BYTES // (8 * (self.shape[0] + self.shape[1])), FEWEST_COLUMNS, 2 * least)

    @property
    def fits(self) -> bool:
        """Whether the rank is at most the capacity; True if the smaller dimension is, which bounds the true rank."""
        return self.rank <= self.capacity or min(self.shape) <= self.capacity

    def compressed(self, cut: float | None = None, columns: int | None = None) -> LowRank:
        """Return a truncated singular value decomposition with relative error ``cut`` and at most ``columns`` columns.

        The `cut` of the result includes the truncation error. No Schatten norm increases.
        """
        if not self.terms:
            return self
        u, sigma, v, lost = self.truncated(cut, columns)
        return LowRank.of(u * sigma, v, self.cut + lost)

    def truncated(self, cut: float | None = None, columns: int | None = None) -> tuple[Array, Array, Array, float]:
        """Return the truncated decomposition ``(U, sigma, V)`` and a bound on the truncation error (Frobenius norm).

        The singular values are reduced by the rounding error of the decomposition.
        """
        allowed = cut if cut is not None else CUT_SMALL if min(self.shape) <= MOST_COLUMNS else CUT_LARGE
        u, sigma, v = self.decomposed()
        tail = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1])  # tail[i]: error of a truncation to i values
        keep = min(int(np.count_nonzero(tail > allowed * tail[:1])), len(sigma) if columns is None else columns)
        rounding = ROUNDING * self.rank
        lost = float(tail[keep : keep + 1].sum()) + 2.0 * rounding * float(tail[:1].sum())
        return u[:, :keep], (1.0 - rounding) * sigma[:keep], v[:, :keep], lost

    def times(self, block: Array) -> Array:
        return self._sum([c * (f.left @ (f.right.T @ block)) for c, f in self.terms], (self.shape[0], block.shape[1]))

    def transposed_times(self, block: Array) -> Array:
        return self._sum([c * (f.right @ (f.left.T @ block)) for c, f in self.terms], (self.shape[1], block.shape[1]))

    def on_places(self, pattern: Pattern) -> Array:
        """Return the entries at the positions of a pattern as a 1-d array."""
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
        """Return ``A @ A.T`` or ``A.T @ A``, whichever is smaller."""
        left, right = self.factors()
        own, other = (left, right) if self.shape[0] < self.shape[1] else (right, left)
        return np.asarray(own @ (other.T @ other) @ own.T)

    def block(self, rows: slice, cols: slice) -> LowRank:
        """Return a submatrix of consecutive rows and columns, without components that are zero in it."""
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
        # One product of norms per component: in a block of a larger matrix, many components have a factor of zero.
        columns = [(c, np.linalg.norm(f.left, axis=0), np.linalg.norm(f.right, axis=0)) for c, f in self.terms]
        return float(sum(abs(c) * (left @ right) for c, left, right in columns))

    def any(self) -> bool:
        return any(f.left.any() and f.right.any() for _, f in self.terms)

    def finite(self) -> bool:
        return all(np.isfinite(c) and np.isfinite(f.left).all() and np.isfinite(f.right).all() for c, f in self.terms)


def pack(w: Structured) -> dict[str, Any]:
    """Return ``w`` as a dictionary of arrays; a pattern is stored by its row pointers and column indices."""
    tree: dict[str, Any] = {"shape": list(w.shape), "cut": 0.0}
    if w.low is not None:
        tree["left"], tree["right"] = w.low.factors()
        tree["cut"] = w.low.cut
    if w.on is not None:
        tree.update(values=w.on.values, indptr=w.on.pattern.indptr, indices=w.on.pattern.indices)
    return tree


def unpack(tree: dict[str, Any], pattern: Pattern | None = None) -> Structured:
    """Undo `pack`; use ``pattern`` itself if the stored one is equal, because sums on one pattern are faster."""
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
    """Raise ValueError if the arrays, read from a file, are not those of a matrix of this shape."""
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
