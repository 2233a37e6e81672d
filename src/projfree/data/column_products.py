"""The Hessian among some columns of a sparse table through products with them, for sets too large to form it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.data.chosen_columns import Columns
from projfree.numerics.symmetric import Symmetric

#: Conjugate gradients end at this part of the residual, or after so many products: descent goes on from there.
ACCURACY, MOST_PRODUCTS = 0.2, 60


class Layout(NamedTuple):
    r"""Columns one behind the other: where each begins, the rows of its entries, these, and what is known of each.

    Attributes
    ----------
    begins, rows, values : ndarray
        Compressed columns; entries are times the root of the weight of their row.
    centre : ndarray
        :math:`c = \sum_i h_i x_i / \sqrt{\sum_i h_i}`, or zero where there is no intercept.
    diagonal : ndarray
        That of the matrix.
    """

    begins: Array
    rows: Array
    values: Array
    centre: Array
    diagonal: Array

    @classmethod
    def of(cls, columns: Columns, h: Array, centred: bool) -> Layout:
        """Lay out columns with weights ``h``."""
        from projfree.data.column_kernels import by_columns

        entries, m, total = len(columns.indices), len(columns.features), float(h.sum())
        begins, sums, squares = np.zeros(m + 2, dtype=np.int64), np.zeros(m), np.zeros(m)
        rows, values = np.empty(entries, dtype=np.uint32), np.empty(entries)
        by_columns(*columns.entries(), np.sqrt(h), begins, rows, values, sums, squares)
        if not centred or total <= 0.0:
            return cls(begins[:-1], rows, values, np.zeros(m), squares)
        centre = sums / math.sqrt(total)
        return cls(begins[:-1], rows, values, centre, np.maximum(squares - centre * centre, 0.0))


class ColumnProducts(Symmetric):
    r"""The matrix :math:`\sum_i h_i x_i x_i^T` over a few columns, of which only products are formed.

    Parameters
    ----------
    columns : Columns
        The rows :math:`x_i` with these columns alone.
    h : ndarray
        A weight for each row, not negative.
    centred : bool
        Whether an intercept is minimised out: rows are then taken about their weighted mean.
    """

    formed = None

    def __init__(self, columns: Columns, h: Array, *, centred: bool) -> None:
        self.columns, self.h, self.centred = columns, h, centred

    def same(self, other: ColumnProducts) -> bool:
        """Whether another one is of the same columns, with the same weights."""
        alike = self.columns is other.columns and self.centred == other.centred
        return alike and np.array_equal(self.h, other.h)

    @cached_property
    def layout(self) -> Layout:
        """The columns one behind the other."""
        return Layout.of(self.columns, self.h, self.centred)

    @property
    def diagonal(self) -> Array:  # type: ignore[override]  # which nobody sets
        return self.layout.diagonal

    def scaled(self, by: Array) -> ColumnProducts:
        """The matrix of the columns times these numbers."""
        values = self.columns.values * by[self.columns.indices]
        return ColumnProducts(replace(self.columns, values=values), self.h, centred=self.centred)

    def times(self, w: Array) -> Array:
        from projfree.data.column_kernels import weighted_product

        out, own = np.zeros_like(w), self.columns.entries()
        for c in range(len(w)):
            weighted_product(*own, self.h, w[c], out[c])
        return np.asarray(out - np.multiply.outer(w @ self.layout.centre, self.layout.centre))

    def descend(self, slope: Array, w: Array, level: float, costs: Array, signed: bool, rounds: int) -> None:
        from projfree.data.column_kernels import descend_columns

        for c in range(len(w)):
            descend_columns(*self.layout, slope[c], w[c], level, costs[c], signed, rounds, np.zeros(len(self.h)))

    def solve(self, on: Array, sides: Array) -> Array:
        """By conjugate gradients for both sides at once, with entries scaled by the diagonal."""
        kept = np.zeros((len(self.diagonal), 1))
        kept[on[self.diagonal[on] > 0.0]] = 1.0
        scale = kept / np.where(kept > 0.0, self.diagonal[:, None], 1.0)
        left = np.zeros((len(kept), 2))
        left[on] = sides
        left *= kept
        found, along = np.zeros_like(left), left * scale
        size = first = _inner(left, along)
        for _ in range(MOST_PRODUCTS):
            product = self._pair(along) * kept
            length = _ratio(size, _inner(along, product))
            found += length * along
            left -= length * product
            new = _inner(left, left * scale)
            if (new <= ACCURACY**2 * first).all():
                break
            along, size = left * scale + _ratio(new, size) * along, new
        return found[on]

    def _pair(self, w: Array) -> Array:
        """The products with the two columns of ``w``."""
        from projfree.data.column_kernels import weighted_pair

        out, centre = np.zeros_like(w), self.layout.centre
        weighted_pair(*self.columns.entries(), self.h, w, out)
        return np.asarray(out - np.multiply.outer(centre, centre @ w))


def _inner(a: Array, b: Array) -> Array:
    """The inner products of the columns."""
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _ratio(a: Array, b: Array) -> Array:
    """The quotients, zero where the divisor is."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)
