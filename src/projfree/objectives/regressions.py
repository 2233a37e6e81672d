r"""The ridge regressions that alternating sweeps are made of: one side of a factored matrix, given the other.

For :math:`X = L R^T` and the columns' factors and offsets as they are, row i of L and its offset minimise

.. math:: \sum_{t \in \text{row } i} \omega_t\,(L_i \cdot R_{j_t} + b_i - e_t)^2 + \tfrac{L_\ell}{2}\,\kappa b_i^2
          + d_i^2 \sum_c \rho_c L_{ic}^2,

where e is what the offsets of others leave of the targets. A loss other than squares is majorised by its largest
curvature :math:`L_\ell` at the present predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import LowRank, Point
from projfree.checks import Array
from projfree.losses.squared import is_squared
from projfree.runtime import over_rows

if TYPE_CHECKING:
    from projfree.objectives.offsets import OffsetObjective

#: From so many entries on the regressions are in single precision: what they leave is far above its rounding.
SINGLE = 50_000
#: Conjugate gradient steps for a row, which begins where it is; components are padded to a multiple of the lanes.
STEPS, LANES = 3, 8


@dataclass(frozen=True)
class Sides:
    """The model ``base + shift + rows_i + cols_j + left_i @ right_j`` without its base."""

    left: Array
    right: Array
    rows: Array
    cols: Array
    shift: float

    @classmethod
    def of(cls, x: Point) -> Sides:
        """The factors and offsets of a point of an `OffsetObjective`."""
        w: Any = x.w
        (left, right), b, m = w.factors(), x.intercept, len(w.factors()[0])
        b = np.zeros(1 + sum(w.shape)) if b is None else b
        return cls(left, right, b[1 : 1 + m], b[1 + m :], float(b[0]))

    def point(self, f: OffsetObjective) -> Point:
        """The point of an objective."""
        return f.point(self.matrix, np.concatenate([[self.shift], self.rows, self.cols]))

    @property
    def matrix(self) -> LowRank:
        """The part inside the ball."""
        return LowRank.of(self.left, self.right)

    def centred(self, kinds: tuple[bool, bool, bool]) -> Sides:
        """The offset of all takes up what rows and columns share, as their ridge wants it."""
        if not kinds[0]:
            return self
        row = float(self.rows.mean()) if kinds[1] else 0.0
        col = float(self.cols.mean()) if kinds[2] else 0.0
        return replace(self, shift=self.shift + row + col, rows=self.rows - row, cols=self.cols - col)


def regressed(f: OffsetObjective, now: Sides, side: int, ridge: Array, scale: Array) -> Sides:
    """The sides after the regressions of rows (``side`` 0) or columns (1) of the matrix, begun at what they are.

    Parameters
    ----------
    ridge : ndarray
        The penalty of each component.
    scale : ndarray
        What it is multiplied by for each row or column.
    """
    at = f.data.pattern
    indptr, indices, _ = (at.indptr, at.indices, None) if side == 0 else at.by_column
    own, other = (now.left, now.right) if side == 0 else (now.right, now.left)
    mine, theirs = (now.rows, now.cols) if side == 0 else (now.cols, now.rows)
    target, weight = _along(f, now, side)
    free, kind = int(f.kinds[1 + side]), target.dtype
    table, out = (_padded(factor, offset, free, kind) for factor, offset in ((other, 1.0), (own, mine)))
    ridges = np.ones(table.shape[1], kind)
    ridges[:free], ridges[free : free + len(ridge)] = 0.5 * f.loss.smoothness * f.ridge, ridge
    none = np.zeros((0, 0), kind)
    given = (indptr, indices, target, kind.type(f.base + now.shift), theirs.astype(kind), weight, table, ridges)
    _ridge(*given, scale.astype(kind), free, none, none, STEPS, out)
    found = out[:, free : free + own.shape[1]].astype(np.float64)
    offset = out[:, 0].astype(np.float64) if free else np.zeros(len(out))
    return replace(now, left=found, rows=offset) if side == 0 else replace(now, right=found, cols=offset)


def _padded(factor: Array, offset: Array | float, free: int, kind: np.dtype[Any]) -> Array:
    """The offsets, where they are free, and the factors beside them, in a number of columns that processors like."""
    k = free + factor.shape[1]
    out = np.zeros((len(factor), -(-k // LANES) * LANES), kind)
    out[:, free:k] = factor
    if free:
        out[:, 0] = offset
    return out


def _along(f: OffsetObjective, now: Sides, side: int) -> tuple[Array, Array]:
    """Targets and weights in the order of the rows or the columns, in the precision of the regressions."""
    kept: dict[Any, Any] = f.shared if is_squared(f.loss) else {}  # others change with the sides
    if side not in kept:
        target, weight = surrogate(f, now)
        kind = np.dtype(np.float32 if f.data.n >= SINGLE else np.float64)
        order = slice(None) if side == 0 else f.data.pattern.by_column[2]
        kept[side] = tuple(part[order].astype(kind) if len(part) else np.zeros(0, kind) for part in (target, weight))
    targets: tuple[Array, Array] = kept[side]
    return targets


def surrogate(f: OffsetObjective, now: Sides) -> tuple[Array, Array]:
    """Targets and weights of squares that lie above the loss and touch it; no weights where all are one."""
    weight = np.zeros(0) if f.data.weight is None else f.data.weight * f.data.n
    if is_squared(f.loss):
        return f.data.y, weight
    u, L = predictions(f, now), f.loss.smoothness
    return u - f.loss.derivative(u, f.data.y) / L, 0.5 * L * (weight if len(weight) else np.ones(len(u)))


def predictions(f: OffsetObjective, now: Sides) -> Array:
    """The model at the observed entries."""
    at = f.data.pattern
    return f.base + now.shift + now.rows[at.rows] + now.cols[at.indices] + now.matrix.on_places(at)


def _ridge(indptr: Array, *given: Any) -> None:
    from projfree.numerics.ridge_kernels import ridge_rows

    over_rows(lambda start, stop: ridge_rows(indptr, *given, start, stop), indptr)
