"""Matrices that are not stored densely: of low rank, on the pattern of observed entries, and sums of the two."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from projfree.checks import Array

if TYPE_CHECKING:
    from projfree.algebra.lowrank import LowRank
    from projfree.algebra.pattern import OnPattern

#: `toarray` raises ValueError for more entries than this (400 MB).
MOST_DENSE = 50_000_000
#: Number of rows that are computed at a time if all entries are needed.
SLAB = 256


class FactoredShape(tuple[int, ...]):
    """Shape of a structured matrix; `zeros` of this shape is a `LowRank` of rank 0."""

    __slots__ = ()


class Structured:
    """An immutable matrix, the sum of `LowRank` and `OnPattern` parts; closed under ``+`` and scalar ``*``.

    Attributes
    ----------
    shape : FactoredShape
        Shape of the matrix.
    low, on : LowRank, OnPattern, optional
        Low-rank part, and the part on the pattern of observed entries.
    """

    shape: FactoredShape
    low: LowRank | None = None
    on: OnPattern | None = None
    dtype, ndim = np.dtype(np.float64), 2
    __array_ufunc__ = None

    def __mul__(self, a: Any) -> Any:
        raise NotImplementedError

    def times(self, block: Array) -> Array:
        """Return the product with an ``(n, k)`` array."""
        return self._sum([part.times(block) for part in self.parts()], (self.shape[0], block.shape[1]))

    def transposed_times(self, block: Array) -> Array:
        """Return the product of the transpose with an ``(m, k)`` array."""
        return self._sum([part.transposed_times(block) for part in self.parts()], (self.shape[1], block.shape[1]))

    def of_pairs(self, rows: Array, cols: Array) -> Array:
        """Return the entries at ``(rows[t], cols[t])``."""
        return self._sum([part.of_pairs(rows, cols) for part in self.parts()], (len(rows),))

    def slab(self, start: int, stop: int) -> Array:
        """Return the rows from ``start`` to ``stop`` as a dense array."""
        return self._sum([part.slab(start, stop) for part in self.parts()], (stop - start, self.shape[1]))

    def gram(self) -> Array:
        """Return ``A @ A.T`` or ``A.T @ A``, whichever is smaller."""
        raise NotImplementedError

    def scaled(self, rows: Array, cols: Array) -> Structured:
        """Return ``diag(rows) @ A @ diag(cols)``."""
        return combined(self.shape, *(part.scaled(rows, cols) for part in self.parts()))

    def inner(self, other: Any) -> float:
        """Return the inner product with another matrix."""
        return float(sum(part.inner(other) for part in self.parts()))

    def size(self) -> float:
        """Return the Frobenius norm; for a sum of parts, which may cancel, an upper bound, tight up to rounding."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    @property
    def scale(self) -> float:
        """Scale of rounding errors: the sum of the norms of all components, since these may cancel."""
        return float(sum(part.scale for part in self.parts()))

    def any(self) -> bool:
        """Whether any entry may differ from zero."""
        return any(part.any() for part in self.parts())

    def finite(self) -> bool:
        """Whether all stored numbers are finite."""
        return all(part.finite() for part in self.parts())

    def parts(self) -> list[Any]:
        """Return the parts as a list."""
        return [part for part in (self.low, self.on) if part is not None]

    @staticmethod
    def _sum(terms: list[Array], shape: tuple[int, ...]) -> Array:
        total = np.zeros(shape)
        for term in terms:
            total += term
        return total

    def copy(self) -> Structured:
        """Return the matrix itself, which is immutable."""
        return self

    def toarray(self) -> Array:
        """Return the dense matrix; raise ValueError if it has more than `MOST_DENSE` entries."""
        m, n = self.shape
        if m * n > MOST_DENSE:
            raise ValueError(
                f"a dense {m} x {n} matrix has {m * n:,} entries; ask for some with `of_pairs(rows, cols)` or for some "
                "rows with `slab(start, stop)`, or use a SchattenBall, which never needs it."
            )
        return self.slab(0, m)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        dense = self.toarray()
        return dense if dtype is None else dense.astype(dtype)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Structured):
            return combined(self.shape, *self.parts(), *other.parts())
        return self.toarray() + other if isinstance(other, np.ndarray) else NotImplemented

    __radd__ = __add__

    def __rmul__(self, a: float) -> Any:
        return self * a

    def __neg__(self) -> Any:
        return self * -1.0

    def __truediv__(self, a: float) -> Any:
        return self * (1.0 / float(a))

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __repr__(self) -> str:
        low = [] if self.low is None else [f"rank {self.low.rank} at most"]
        on = [] if self.on is None else [f"{self.on.count:,} entries"]
        return f"<{self.shape[0]} x {self.shape[1]} matrix: {' + '.join(low + on)}>"


class Mixture(Structured):
    """The sum of a low-rank matrix and a matrix on a pattern, such as a low-rank iterate after a gradient step."""

    low: LowRank
    on: OnPattern

    def __init__(self, low: LowRank, on: OnPattern) -> None:
        self.shape, self.low, self.on = low.shape, low, on

    def __mul__(self, a: Any) -> Any:
        return Mixture(self.low * a, self.on * a)

    def gram(self) -> Array:
        """Return ``A @ A.T`` or ``A.T @ A``, whichever is smaller, computed from the parts."""
        (left, right), apply = self.low.factors(), self.on.transposed_times
        if self.shape[0] < self.shape[1]:
            left, right, apply = right, left, self.on.times
        mixed: Array = apply(left) + 0.5 * right @ (left.T @ left)
        out = self.on.gram()
        for start in range(0, len(out), SLAB):
            at = slice(start, start + SLAB)
            out[at] += mixed[at] @ right.T + right[at] @ mixed.T
        return out

    def size(self) -> float:
        return self._size

    @cached_property
    def _size(self) -> float:
        # The inner products of the parts may cancel; their error is at most one rounding error for each term.
        terms = sum(self.shape) + self.low.rank**2 + self.on.count
        error = terms * float(np.finfo(np.float64).eps) * self.scale**2
        square = self.low.inner(self.low) + 2.0 * self.on.inner(self.low) + self.on.size() ** 2
        return float(np.sqrt(max(square, 0.0) + error))


def is_structured(w: Any) -> TypeGuard[Structured]:
    """Whether ``w`` is a structured matrix."""
    return isinstance(w, Structured)


def combined(shape: FactoredShape, *parts: Any) -> Structured:
    """Return the sum of parts as a `LowRank`, `OnPattern` or `Mixture`."""
    from projfree.algebra.lowrank import LowRank

    low = [part for part in parts if isinstance(part, LowRank) and part.terms]
    on = [part for part in parts if not isinstance(part, LowRank)]
    if not on:
        return LowRank.sum(shape, low)
    total = on[0].plus(on[1:])
    return Mixture(LowRank.sum(shape, low), total) if low else total


def zeros(shape: tuple[int, ...]) -> Any:
    """Return a zero array, or a `LowRank` of rank 0 for a `FactoredShape`."""
    if isinstance(shape, FactoredShape):
        from projfree.algebra.lowrank import LowRank

        return LowRank(shape, ())
    return np.zeros(shape)


def same(a: Any, b: Any) -> bool:
    """Whether two parameters are equal; False for structured matrices whose difference may not be zero."""
    if isinstance(a, Structured) or isinstance(b, Structured):
        return a is b or not (a - b).any()
    return bool(np.array_equal(a, b))
