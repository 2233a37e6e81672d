r"""The ridge regressions that alternating sweeps are made of: one side of a factored matrix, given the other.

For :math:`X = L R^T` and the columns' factors and offsets as they are, row i of L and its offset minimise

.. math:: \sum_{t \in \text{row } i} \omega_t\,(L_i \cdot R_{j_t} + b_i - e_t)^2 + \tfrac{L_\ell}{2}\,\kappa b_i^2
          + d_i^2 \sum_c \rho_c L_{ic}^2,

where e is what the offsets of others leave of the targets. A loss other than squares is majorised by its largest
curvature :math:`L_\ell` at the present predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from projfree.algebra import LowRank, Point
from projfree.checks import Array
from projfree.losses.squared import is_squared
from projfree.objectives.feature_regressions import feature_factors, feature_gram, feature_pull, from_features
from projfree.runtime import over_rows

if TYPE_CHECKING:
    from projfree.objectives.implicit import ImplicitObjective
    from projfree.objectives.neighbours import Neighbours
    from projfree.objectives.offsets import OffsetObjective

    Sweepable = OffsetObjective | ImplicitObjective

#: From so many entries on the regressions are in single precision: what they leave is far above its rounding.
SINGLE = 50_000
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
        return np.concatenate([self.left, self.below])

    @property
    def rights(self) -> Array:
        """The right factor of the whole parameter."""
        return np.concatenate([self.right, self.beside])

    def point(self, f: Sweepable) -> Point:
        """The point of an objective."""
        return f.point(LowRank.of(self.lefts, self.rights), self.offsets)

    def with_factors(self, lefts: Array, rights: Array) -> Sides:
        """The same offsets with other factors of the whole parameter."""
        m, n = len(self.left), len(self.right)
        return replace(self, left=lefts[:m], below=lefts[m:], right=rights[:n], beside=rights[n:])

    def centred(self, kinds: tuple[bool, bool, bool]) -> Sides:
        """The offset of all takes up what rows and columns share, as their ridge wants it."""
        if not kinds[0]:
            return self
        row = float(self.rows.mean()) if kinds[1] else 0.0
        col = float(self.cols.mean()) if kinds[2] else 0.0
        return replace(self, shift=self.shift + row + col, rows=self.rows - row, cols=self.cols - col)


def regressed(f: Sweepable, now: Sides, side: int, ridge: Array, scale: Array) -> Sides:
    """The sides after the regressions of rows (``side`` 0) or columns (1) of the matrix, begun at what they are.

    Parameters
    ----------
    ridge : ndarray
        The penalty of each component.
    scale : ndarray
        What it is multiplied by for each row or column of the matrix; it is one for those below and beside it.
    """
    e, at = f.entries, f.entries.data.pattern
    indptr, indices, _ = (at.indptr, at.indices, None) if side == 0 else at.by_column
    own, other, far = (now.left, now.right, now.beside) if side == 0 else (now.right, now.left, now.below)
    mine, theirs = (now.rows, now.cols) if side == 0 else (now.cols, now.rows)
    target, weight = _along(e, now, side)
    free, kind = int(e.kinds[1 + side]), target.dtype
    table, out = (_padded(factor, offset, free, kind) for factor, offset in ((other, 1.0), (own, mine)))
    ridges = np.ones(table.shape[1], kind)
    ridges[:free], ridges[free : free + len(ridge)] = 0.5 * e.loss.smoothness * e.ridge, ridge
    gram, pull, near = _squares(f, side, indptr, indices, other, far, table, free)
    given = (target, kind.type(e.base + now.shift), theirs.astype(kind), weight, table, ridges, scale.astype(kind))
    over_rows(lambda *part: _kernels().ridge_rows(indptr, indices, *given, free, gram, pull, STEPS, out, *part), indptr)
    found = out[:, free : free + own.shape[1]].astype(np.float64)
    offset = out[:, 0].astype(np.float64) if free else np.zeros(len(out))
    # One small inverse and a product are much faster than solves with as many sides as there are rows.
    extra = near[1] @ np.linalg.inv(near[0] + np.diag(ridge)) if f.implicit else np.zeros((0, len(ridge)))
    if f.neighbours is not None and f.neighbours.features != (None, None):
        found, extra = _with_features(f, side, other, far, found, extra, ridge, scale)
    if side == 0:
        return replace(now, left=found, rows=offset, below=extra)
    return replace(now, right=found, cols=offset, beside=extra)


def _squares(
    f: Sweepable, side: int, indptr: Array, indices: Array, other: Array, far: Array, table: Array, free: int
) -> tuple[Array, Array, tuple[Array, Array]]:
    """What the squares of the observed places add to the regressions; nothing where they have no weight.

    That is a Gram matrix and right-hand sides for the rows of the matrix, from the factors of the columns beside it,
    and the same for the rows below it, from those of its own columns.
    """
    kind, k, around = table.dtype, other.shape[1], f.neighbours
    if around is None:
        return np.zeros((0, 0), kind), np.zeros((0, 0), kind), (np.zeros((0, 0)), np.zeros((0, 0)))
    c, n, own = f.scale * f.entries.data.n, f.entries.data.n, slice(free, free + k)
    seen = other * around.rated[1 - side][:, None]
    gram, pull = np.zeros((table.shape[1],) * 2, kind), np.zeros((len(indptr) - 1, table.shape[1]), kind)
    sums = np.zeros((len(indptr) - 1, 2 * k), kind)
    if f.implicit:
        beside = far[: around.counts[side]]
        both = np.concatenate([other, beside], axis=1).astype(kind)
        over_rows(lambda *part: _kernels().sums_of_rows(indptr, indices, both, sums, *part), indptr)
        gram[own, own], pull[:, own] = c * (beside.T @ beside), c * sums[:, k:]
    if around.features[side] is not None:
        gram[own, own] += feature_gram(around, side, far, n).astype(kind)
        pull[:, own] += feature_pull(around, side, far, n).astype(kind)
    return gram, pull, (c * (seen.T @ seen), c * sums[:, :k].astype(np.float64))


def _with_features(
    f: Sweepable, side: int, other: Array, far: Array, found: Array, extra: Array, ridge: Array, scale: Array
) -> tuple[Array, Array]:
    """Rows without entries as their features say, and behind the further rows those of the other side's features."""
    near, n = cast("Neighbours", f.neighbours), f.entries.data.n
    cold = near.rated[side] == 0.0
    if near.features[side] is not None and cold.any():
        pull, gram = feature_pull(near, side, far, n)[cold], feature_gram(near, side, far, n)
        found[cold] = from_features(pull, gram, ridge, scale[cold])
    return found, np.concatenate([extra, feature_factors(near, 1 - side, other, ridge, n)])


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
    return f.base + now.shift + now.rows[at.rows] + now.cols[at.indices] + LowRank.of(now.left, now.right).on_places(at)


def _kernels() -> Any:
    from projfree.numerics import ridge_kernels

    return ridge_kernels
