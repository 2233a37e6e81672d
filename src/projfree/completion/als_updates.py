r"""The ridge regressions that alternating sweeps are made of: one side of a factored matrix, given the other.

For :math:`X = L R^T` and the columns' factors and offsets as they are, row i of L and its offset minimise

.. math:: \sum_{t \in \text{row } i} \omega_t\,(L_i \cdot R_{j_t} + b_i - e_t)^2 + \tfrac{L_\ell}{2}\,\kappa b_i^2
          + d_i^2 \sum_c \rho_c L_{ic}^2,

where e is what the offsets of others leave of the targets. A loss other than squares is majorised by its largest
curvature :math:`L_\ell` at the present predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from projfree.algebra import LowRank, Point
from projfree.algebra.lowrank import Factor
from projfree.checks import Array
from projfree.completion.implicit_als import BLOCK, SharedSquares, write_product
from projfree.completion.lines import Lines, entry_lines, precision_of
from projfree.completion.side_information_als import feature_factors, feature_gram, feature_pull, from_features
from projfree.data.rows import Rows, Step
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared

if TYPE_CHECKING:
    from projfree.completion.implicit import ImplicitObjective
    from projfree.completion.offsets import OffsetObjective
    from projfree.completion.side_information import Neighbours

    Sweepable: TypeAlias = OffsetObjective | ImplicitObjective

#: Conjugate gradient steps for a row, which begins where it is; components are padded to a multiple of the lanes.
STEPS, LANES = 3, 8


@dataclass(frozen=True)
class Sides:
    """The model ``base + shift + rows_i + cols_j + left_i @ right_j`` without its base.

    Of an `ImplicitObjective` also the factors of the rows below the matrix and of the columns beside it.
    """

    left: Array
    right: Array
    rows: Array
    cols: Array
    shift: float
    below: Array
    beside: Array

    @classmethod
    def of(cls, f: Sweepable, x: Point) -> Sides:
        """The factors and offsets of a point."""
        (m, n), w = f.entries.shape, cast("Any", x.w)
        (left, right), b = w.factors(), np.zeros(1 + m + n) if x.intercept is None else x.intercept
        return cls(left[:m], right[:n], b[1 : 1 + m], b[1 + m :], float(b[0]), left[m:], right[n:])

    @property
    def offsets(self) -> Array:
        """All offsets as one vector: of all, of rows, of columns."""
        return np.concatenate([[self.shift], self.rows, self.cols])

    @property
    def lefts(self) -> Array:
        """The left factor of the whole parameter."""
        return _joined(self.left, self.below)

    @property
    def rights(self) -> Array:
        """The right factor of the whole parameter."""
        return _joined(self.right, self.beside)

    def point(self, f: Sweepable) -> Point:
        """The point of an objective, with factors in the precision that they have here."""
        left, right = self.lefts, self.rights
        terms = ((1.0, Factor(left, right)),) if left.shape[1] else ()
        return f.point(LowRank((len(left), len(right)), terms), self.offsets)

    def in_precision(self, kind: np.dtype[Any]) -> Sides:
        """The same sides with factors of a precision."""
        return self.with_factors(self.lefts.astype(kind, copy=False), self.rights.astype(kind, copy=False))

    def with_factors(self, lefts: Array, rights: Array) -> Sides:
        """The same offsets with other factors of the whole parameter."""
        m, n = len(self.left), len(self.right)
        return replace(self, left=lefts[:m], below=lefts[m:], right=rights[:n], beside=rights[n:])

    def turned(self, left: Array, right: Array) -> Sides:
        """The same offsets with the factors multiplied by square matrices."""
        first, last = _product(self.left, self.below, left), _product(self.right, self.beside, right)
        return self.with_factors(first, last)

    def centred(self, kinds: tuple[bool, bool, bool]) -> Sides:
        """The offset of all takes up what rows and columns share, as their ridge wants it."""
        if not kinds[0]:
            return self
        row = float(self.rows.mean()) if kinds[1] else 0.0
        col = float(self.cols.mean()) if kinds[2] else 0.0
        return replace(self, shift=self.shift + row + col, rows=self.rows - row, cols=self.cols - col)


def _joined(first: Array, last: Array) -> Array:
    """One matrix below the other, without a copy where they are the parts of one."""
    whole = first.base
    if whole is not None and whole is last.base and whole.shape[1:] == first.shape[1:]:
        n = len(first)
        if len(whole) == n + len(last) and all(
            part.strides == whole.strides and part.ctypes.data == at.ctypes.data
            for part, at in ((first, whole[:n]), (last, whole[n:]))
        ):
            return whole
    return np.concatenate([first, last])


def _product(first: Array, last: Array, by: Array) -> Array:
    """Two matrices, one below the other, times another."""
    by = by.astype(first.dtype)
    out = np.empty((len(first) + len(last), by.shape[1]), by.dtype)
    write_product(first, by, out[: len(first)])
    write_product(last, by, out[len(first) :])
    return out


def regressed(f: Sweepable, now: Sides, side: int, ridge: Array, scale: Array) -> Sides:
    """The sides after the regressions of rows (``side`` 0) or columns (1) of the matrix, begun at what they are.

    Parameters
    ----------
    ridge : ndarray
        The penalty of each component.
    scale : ndarray
        What it is multiplied by for each row or column of the matrix; it is one for those below and beside it.
    """
    e = f.entries
    own, other, far = (now.left, now.right, now.beside) if side == 0 else (now.right, now.left, now.below)
    mine, theirs = (now.rows, now.cols) if side == 0 else (now.cols, now.rows)
    lines = lines_of(e, now, side)
    free, kind, k = int(e.kinds[1 + side]), lines.kind, own.shape[1]
    squares = SharedSquares.of(f, side, own, other, far, kind, ridge)
    basis = squares.basis
    table = _padded(basis.turned(other), 1.0, free)
    ridges, shared = np.ones(table.shape[1], kind), np.zeros(table.shape[1], kind)
    ridges[:free] = 0.5 * e.loss.smoothness * e.ridge
    ridges[free : free + k], shared[free : free + k] = basis.ridge, basis.shared
    given = (kind.type(e.base + now.shift), theirs.astype(kind), table, ridges, scale.astype(kind))
    rows, offset = np.empty((len(own) * (2 if f.implicit else 1), k), kind), np.zeros(len(own))
    found, extra = rows[: len(own)], rows[len(own) :]

    def block(start: int, stop: int) -> None:
        part = slice(start, stop)
        sums = squares.sums(lines, start, stop)
        pull = squares.pull(sums, part)
        pull = _padded(basis.turned(pull), 0.0, free) if len(pull) else pull
        out = _padded(basis.begun(own[part]), mine[part], free)
        lines.ridge(*given, free, shared, pull, STEPS, out, start, stop)
        found[part] = basis.back(out[:, free : free + k])
        if free:
            offset[part] = out[:, 0]
        if f.implicit:
            extra[part] = squares.extra(sums)

    lines.over(lambda start, stop: _by_blocks(block, start, stop))
    if f.neighbours is not None and f.neighbours.features != (None, None):
        found, extra = _with_features(f, side, (own, other, far), found, extra, ridge, scale)
    if side == 0:
        return replace(now, left=found, rows=offset, below=extra)
    return replace(now, right=found, cols=offset, beside=extra)


def with_offsets_regressed(e: OffsetObjective, now: Sides, side: int) -> Sides:
    """The sides after the regressions of the offsets of rows (``side`` 0) or columns (1) alone, without a matrix."""
    lines, theirs = lines_of(e, now, side), (now.cols, now.rows)[side]
    offset, ridge = np.zeros(len(lines)), 0.5 * e.loss.smoothness * e.ridge
    if e.kinds[1 + side]:
        lines.over(partial(lines.offsets, e.base + now.shift, theirs, ridge, offset))
    return replace(now, rows=offset) if side == 0 else replace(now, cols=offset)


def _with_features(
    f: Sweepable, side: int, now: tuple[Array, Array, Array], found: Array, extra: Array, ridge: Array, scale: Array
) -> tuple[Array, Array]:
    """Rows without entries as their features say, and behind the further rows those of the other side's features."""
    near, n, (own, other, far) = cast("Neighbours", f.neighbours), f.entries.data.n, now
    cold = near.rated[side] == 0.0
    if near.features[side] is not None and cold.any():
        pull, gram = feature_pull(near, side, own, far, n)[cold], feature_gram(near, side, far, n)
        found[cold] = from_features(pull, gram, ridge, scale[cold])
    return found, np.concatenate([extra, feature_factors(near, 1 - side, other, ridge, n).astype(extra.dtype)])


def _by_blocks(work: Callable[[int, int], None], start: int, stop: int) -> None:
    """A few thousand rows at a time: arrays of all rows would be written to fresh memory, which takes longer."""
    for first in range(start, stop, BLOCK):
        work(first, min(first + BLOCK, stop))


def _padded(factor: Array, offset: Array | float, free: int) -> Array:
    """The offsets, where they are free, and the factors beside them, in a number of columns that processors like."""
    k = free + factor.shape[1]
    out = np.zeros((len(factor), -(-k // LANES) * LANES), factor.dtype)
    out[:, free:k] = factor
    if free:
        out[:, 0] = offset
    return out


@dataclass(frozen=True)
class Majorant(Step):
    """The targets of squares that lie above a loss and touch it at the images, as residuals."""

    loss: Loss

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0]
        return u - self.loss.derivative(u, rows.y) / self.loss.smoothness, np.zeros(0)


def lines_of(f: OffsetObjective, now: Sides, side: int) -> Lines:
    """The entries of rows or columns, with the targets of squares that lie above the loss and touch it."""
    if is_squared(f.loss):
        return entry_lines(f.data, side)
    step = f.intercept_strategy.moved(Majorant(f.loss), now.offsets)
    return entry_lines(f.data, side, step, LowRank.of(now.left, now.right), 0.5 * f.loss.smoothness)


def precision(f: OffsetObjective) -> np.dtype[Any]:
    """That of the regressions."""
    return precision_of(f.data.n)
