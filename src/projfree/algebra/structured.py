"""Matrices that are never formed: low rank, on the observed pattern, and sums of the two."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from projfree.checks import Array

if TYPE_CHECKING:
    from projfree.algebra.lowrank import LowRank
    from projfree.algebra.pattern import OnPattern

#: `toarray` refuses more entries than this (400 MB): whoever asks for them has taken a wrong turn.
MOST_DENSE = 50_000_000
#: Rows that are made dense at a time where all entries must be visited.
SLAB = 256


class FactoredShape(tuple[int, ...]):
    """The shape of a matrix that is never formed: zeros of this shape are factors of rank nothing."""

    __slots__ = ()


class Structured:
    """A matrix of `LowRank` and `OnPattern` parts; closed under ``+`` and scalar ``*``, never changed in place.

    Attributes
    ----------
    shape : FactoredShape
        The shape.
    low, on : LowRank, OnPattern, optional
        The part in factors, and the part on the observed entries.
    """

    shape: FactoredShape
    low: LowRank | None = None
    on: OnPattern | None = None
    dtype, ndim = np.dtype(np.float64), 2
    __array_ufunc__ = None

    def __mul__(self, a: Any) -> Any:
        raise NotImplementedError

    def times(self, block: Array) -> Array:
        """The product with an ``(n, k)`` block."""
        return self._sum([part.times(block) for part in self.parts()], (self.shape[0], block.shape[1]))

    def transposed_times(self, block: Array) -> Array:
        """The product of the transpose with an ``(m, k)`` block."""
        return self._sum([part.transposed_times(block) for part in self.parts()], (self.shape[1], block.shape[1]))

    def of_pairs(self, rows: Array, cols: Array) -> Array:
        """The entries at ``(rows[t], cols[t])``."""
        return self._sum([part.of_pairs(rows, cols) for part in self.parts()], (len(rows),))

    def slab(self, start: int, stop: int) -> Array:
        """Some rows as a dense array."""
        return self._sum([part.slab(start, stop) for part in self.parts()], (stop - start, self.shape[1]))

    def gram(self) -> Array:
        """The Gram matrix of the smaller side."""
        raise NotImplementedError

    def scaled(self, rows: Array, cols: Array) -> Structured:
        """The matrix with its rows and columns multiplied by the given numbers."""
        return combined(self.shape, *(part.scaled(rows, cols) for part in self.parts()))

    def inner(self, other: Any) -> float:
        """The sum of the products of entries."""
        return float(sum(part.inner(other) for part in self.parts()))

    def size(self) -> float:
        """The Euclidean (Frobenius) norm; of parts that may cancel an upper bound, as sharp as rounding allows."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    @property
    def scale(self) -> float:
        """What rounding is relative to: the norms of all components, added up, since these may cancel."""
        return float(sum(part.scale for part in self.parts()))

    def any(self) -> bool:
        """Whether any entry may differ from zero."""
        return any(part.any() for part in self.parts())

    def finite(self) -> bool:
        """Whether all numbers stored are finite."""
        return all(part.finite() for part in self.parts())

    def parts(self) -> list[Any]:
        """The parts that there are."""
        return [part for part in (self.low, self.on) if part is not None]

    @staticmethod
    def _sum(terms: list[Array], shape: tuple[int, ...]) -> Array:
        total = np.zeros(shape)
        for term in terms:
            total += term
        return total

    def copy(self) -> Structured:
        """Itself, since nothing changes it."""
        return self

    def toarray(self) -> Array:
        """The dense matrix, where it is small."""
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
    """A low-rank matrix plus one on the pattern: what a gradient step makes of a low-rank iterate."""

    low: LowRank
    on: OnPattern

    def __init__(self, low: LowRank, on: OnPattern) -> None:
        self.shape, self.low, self.on = low.shape, low, on

    def __mul__(self, a: Any) -> Any:
        return Mixture(self.low * a, self.on * a)

    def gram(self) -> Array:
        """The Gram matrix of the smaller side, from the parts."""
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
        # Inner products of the parts, which may cancel, err by a unit of rounding for each of their terms.
        terms = sum(self.shape) + self.low.rank**2 + self.on.count
        error = terms * float(np.finfo(np.float64).eps) * self.scale**2
        square = self.low.inner(self.low) + 2.0 * self.on.inner(self.low) + self.on.size() ** 2
        return float(np.sqrt(max(square, 0.0) + error))


def is_structured(w: Any) -> TypeGuard[Structured]:
    """Whether this is a matrix that is never formed."""
    return isinstance(w, Structured)


def combined(shape: FactoredShape, *parts: Any) -> Structured:
    """The sum of parts as the simplest kind that holds it."""
    from projfree.algebra.lowrank import LowRank

    low = [part for part in parts if isinstance(part, LowRank) and part.terms]
    on = [part for part in parts if not isinstance(part, LowRank)]
    if not on:
        return LowRank.sum(shape, low)
    total = on[0].plus(on[1:])
    return Mixture(LowRank.sum(shape, low), total) if low else total


def zeros(shape: tuple[int, ...]) -> Any:
    """Zero, in factors where the shape says so."""
    if isinstance(shape, FactoredShape):
        from projfree.algebra.lowrank import LowRank

        return LowRank(shape, ())
    return np.zeros(shape)


def same(a: Any, b: Any) -> bool:
    """Whether two parameters are equal, for certain."""
    if isinstance(a, Structured) or isinstance(b, Structured):
        return a is b or not (a - b).any()
    return bool(np.array_equal(a, b))
