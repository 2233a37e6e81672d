"""`Factors`: what a fit of ratings leaves, and how it comes from a state of the sweeps and goes back into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import LowRank, Point
from projfree.checks import Array
from projfree.completion.als_updates import Sides
from projfree.completion.alternating import AlternatingState, Sweepable
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.spectra import singular_values
from projfree.sets import WeightedSchattenBall

#: Rows that are decomposed at a time.
BLOCK = 4096


@dataclass(frozen=True)
class Factors:
    """The model ``base + shift + rows_i + cols_j + left_i @ right_j``; ``sigma`` belongs to its weighted matrix.

    With implicit features that is the larger matrix, whose further factors are ``below`` and ``beside``.
    """

    left: Array
    right: Array
    rows: Array
    cols: Array
    shift: float
    base: float
    sigma: Array
    below: Array
    beside: Array

    @classmethod
    def of(cls, f: Sweepable, state: AlternatingState) -> Factors:
        """The model of a state, in the precision that its sweeps have."""
        return cls.of_sides(f, Sides.of(f, state.x), state.sigma)

    @classmethod
    def of_sides(cls, f: Sweepable, now: Sides, sigma: Array) -> Factors:
        """The model of factors and offsets."""
        parts = (now.left, now.right, now.rows, now.cols, now.shift)
        return cls(*parts, f.entries.base, sigma, now.below, now.beside)

    @classmethod
    def of_point(cls, f: Sweepable, ball: WeightedSchattenBall, w: Any, offsets: Array) -> Factors:
        """The model of a convex answer."""
        low = w.low if w.low is not None else LowRank(w.shape, ())
        left, sigma, right = low.scaled(ball.rows, ball.cols).truncated(1e-9)[:3]
        root = np.sqrt(sigma)
        low = LowRank.of(left * root / ball.rows[:, None], right * root / ball.cols[:, None])
        return cls.of_sides(f, Sides.of(f, f.point(low, offsets)), sigma)

    @property
    def sides(self) -> Sides:
        """Factors and offsets as the sweeps have them."""
        return Sides(self.left, self.right, self.rows, self.cols, self.shift, self.below, self.beside)

    def point(self, f: Sweepable) -> Point:
        """The point of an objective."""
        return self.sides.point(f)

    def double(self, ball: WeightedSchattenBall) -> Factors:
        """The model in double precision, with its singular values to this precision: sweeps know them to their own."""
        wide = {name: getattr(self, name).astype(np.float64) for name in ("left", "right", "below", "beside")}
        left = triangle((self.left, self.below), ball.rows)
        right = triangle((self.right, self.beside), ball.cols)
        return replace(self, **wide, sigma=singular_values(left @ right.T))

    def with_offsets(self, b: Array) -> Factors:
        """The same matrix with other offsets."""
        m = len(self.rows)
        return replace(self, shift=float(b[0]), rows=b[1 : 1 + m], cols=b[1 + m :])

    def norm(self, p: float) -> float:
        """The weighted Schatten norm."""
        return lp_norm(self.sigma, p)

    def inside(self, p: float, radius: float) -> Factors:
        """The model with its matrix scaled into the ball, where it lies outside."""
        norm = self.norm(p)
        shrink = radius / norm if norm > radius else 1.0
        return self.stretched(shrink) if shrink != 1.0 else self

    def stretched(self, by: float) -> Factors:
        """The model with its matrix multiplied by a number."""
        return replace(self, left=self.left * by, below=self.below * by, sigma=self.sigma * by)

    def margin(self, rows: Array, cols: Array) -> Array:
        """The model at places, -1 standing for what was never seen."""
        seen, known = rows >= 0, cols >= 0
        u = self.base + self.shift + np.where(seen, self.rows[rows], 0.0) + np.where(known, self.cols[cols], 0.0)
        both = seen & known
        u[both] += LowRank.of(self.left, self.right).of_pairs(rows[both], cols[both])
        return np.asarray(u)

    def merged(self, users: Array, all_users: Array, items: Array, all_items: Array, implicit: bool) -> Factors:
        """The model with rows of zeros for users and items that are new; also those of implicit features."""
        rows, cols = np.searchsorted(all_users, users), np.searchsorted(all_items, items)
        m, n = len(all_users), len(all_items)
        return replace(
            self,
            left=_placed(self.left, rows, m),
            right=_placed(self.right, cols, n),
            rows=_placed(self.rows, rows, m),
            cols=_placed(self.cols, cols, n),
            below=_first_placed(self.below, rows, m) if implicit else self.below,
            beside=_first_placed(self.beside, cols, n) if implicit else self.beside,
        )


def triangle(parts: Sequence[Array], weights: Array) -> Array:
    """The triangular factor of a QR decomposition of matrices below each other with weighted rows; a few at a time."""
    k, done = parts[0].shape[1], 0
    r = np.zeros((k, k))
    for part in parts:
        for start in range(0, len(part), BLOCK):
            rows = part[start : start + BLOCK].astype(np.float64)
            scale = weights[done : done + len(rows), None]
            r, done = np.linalg.qr(np.concatenate([r, rows * scale]))[1], done + len(rows)
    return r


def _first_placed(values: Array, at: Array, count: int) -> Array:
    """The first values at places among so many, and the others, those of features, behind them."""
    return np.concatenate([_placed(values[: len(at)], at, count), values[len(at) :]])


def _placed(values: Array, at: Array, count: int) -> Array:
    """The values at places among so many, zeros elsewhere."""
    out = np.zeros((count, *values.shape[1:]))
    out[at] = values
    return out
