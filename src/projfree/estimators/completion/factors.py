"""`Factors`: what a fit of ratings leaves, and how it comes from a state of the sweeps and goes back into one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import LowRank
from projfree.checks import Array
from projfree.numerics.lp_norm import lp_norm
from projfree.objectives.offsets import OffsetObjective
from projfree.objectives.regressions import Sides
from projfree.sets import WeightedSchattenBall
from projfree.solvers.alternating import AlternatingState


@dataclass(frozen=True)
class Factors:
    """The model ``base + shift + rows_i + cols_j + left_i @ right_j``; ``sigma`` belongs to its weighted matrix."""

    left: Array
    right: Array
    rows: Array
    cols: Array
    shift: float
    base: float
    sigma: Array

    @classmethod
    def of(cls, f: OffsetObjective, state: AlternatingState) -> Factors:
        """The model of a state."""
        now = Sides.of(state.x)
        return cls(now.left, now.right, now.rows, now.cols, now.shift, f.base, state.sigma)

    @classmethod
    def of_point(cls, f: OffsetObjective, ball: WeightedSchattenBall, w: Any, offsets: Array) -> Factors:
        """The model of a convex answer."""
        low, (m, _) = w.low if w.low is not None else LowRank(w.shape, ()), f.shape
        left, sigma, right = low.scaled(ball.rows, ball.cols).compressed(1e-9).decomposed()
        root = np.sqrt(sigma)
        sides = (left * root / ball.rows[:, None], right * root / ball.cols[:, None])
        return cls(*sides, offsets[1 : 1 + m], offsets[1 + m :], float(offsets[0]), f.base, sigma)

    @property
    def matrix(self) -> LowRank:
        """The part inside the ball."""
        return LowRank.of(self.left, self.right)

    @property
    def offsets(self) -> Array:
        """All offsets as one vector: of all, of rows, of columns."""
        return np.concatenate([[self.shift], self.rows, self.cols])

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
        return replace(self, left=self.left * shrink, sigma=self.sigma * shrink)

    def margin(self, rows: Array, cols: Array) -> Array:
        """The model at places, -1 standing for what was never seen."""
        seen, known = rows >= 0, cols >= 0
        u = self.base + self.shift + np.where(seen, self.rows[rows], 0.0) + np.where(known, self.cols[cols], 0.0)
        both = seen & known
        u[both] += self.matrix.of_pairs(rows[both], cols[both])
        return np.asarray(u)

    def merged(self, users: Array, all_users: Array, items: Array, all_items: Array) -> Factors:
        """The model with rows of zeros for users and items that are new."""
        rows, cols = np.searchsorted(all_users, users), np.searchsorted(all_items, items)
        left, right = np.zeros((len(all_users), self.left.shape[1])), np.zeros((len(all_items), self.right.shape[1]))
        left[rows], right[cols] = self.left, self.right
        row_offsets, col_offsets = np.zeros(len(all_users)), np.zeros(len(all_items))
        row_offsets[rows], col_offsets[cols] = self.rows, self.cols
        return replace(self, left=left, right=right, rows=row_offsets, cols=col_offsets)
