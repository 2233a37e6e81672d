r"""Faces of a `FlatBall` of largest entries, :math:`\sum_b c_b \max_j |w_{bj}|`: they are flat.

On a face some entries of each group have its size, with fixed signs, and the others lie anywhere between. What may move
is the size of each group, and each of the other entries: the minimum over the face is that of a quadratic in these.
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.numerics.flat_groups import Groups
from projfree.numerics.symmetric import solve_semidefinite


class Boxes(Groups):
    """Where the size of a group is that of its largest entries."""

    landings = 1

    def face(self) -> tuple[Array, Array, Array, Array]:
        sizes = self.ball.sizes(self.w.T)
        on = np.broadcast_to((sizes > 0.0)[self.groups], self.w.shape)
        self.largest_ones = on & (np.abs(self.w) >= sizes[self.groups])
        rows, columns = np.nonzero(on)
        tied, group = self.largest_ones[on], self.groups[columns]
        used = np.unique(group)
        move = np.zeros((len(group), len(used) + int(np.count_nonzero(~tied))))
        move[tied, np.searchsorted(used, group[tied])] = np.sign(self.w[on][tied])
        move[~tied, np.arange(len(used), move.shape[1])] = 1.0
        A = np.zeros((move.shape[1],) * 2)
        for c in range(len(self.w)):
            own = move[rows == c]
            A += own.T @ self.matrix[np.ix_(columns[rows == c], columns[rows == c])] @ own
        costs = np.zeros(move.shape[1])
        costs[: len(used)] = self.ball.costs[used]
        sides = np.column_stack([-(move.T @ self.slope[on] + self.level * costs), costs])
        steps = move @ (solve_semidefinite(A, sides, self.steepest) if len(used) else sides)
        number = np.bincount(group[tied], minlength=len(sizes))[group]
        outward = np.where(tied, self.ball.costs[group] * np.sign(self.w[on]) / number, 0.0)
        return on, steps[:, 0], steps[:, 1], outward

    def kept(self, new: Array) -> Array:
        # No group becomes smaller than nothing, and no entry larger than its group.
        sizes = np.full(len(self.ball.costs), np.inf)
        ahead = np.where(self.largest_ones, new * np.sign(self.w), np.inf)
        np.minimum.at(sizes, self.groups, ahead.min(axis=0))
        bounds = np.maximum(sizes, 0.0)[self.groups]
        inside = np.clip(new, -bounds, bounds)
        return new if np.array_equal(inside, new) else inside

    def shorter(self, step: Array) -> Array:
        """Up to the first place where a group vanishes or an entry becomes as large as its group."""
        sign = np.sign(self.w)
        grows, sizes = np.zeros(len(self.ball.costs)), self.ball.sizes(self.w.T)
        at = np.nonzero(self.largest_ones)
        grows[self.groups[at[1]]] = (step * sign)[at]
        size, grow = sizes[self.groups], grows[self.groups]
        with np.errstate(divide="ignore", invalid="ignore"):
            up, down = (size - self.w) / (step - grow), (size + self.w) / (-step - grow)
            gone = np.where(grow < 0.0, -size / grow, np.inf)
        free = (size > 0.0) & ~self.largest_ones
        up, down = np.where(free & (step > grow), up, np.inf), np.where(free & (-step > grow), down, np.inf)
        length = min(float(np.minimum(np.minimum(up, down), gone).min()), 1.0)
        bounds = np.where(gone <= length, 0.0, np.maximum(size + length * grow, 0.0))
        new = np.clip(self.w + length * step, -bounds, bounds)
        first = np.minimum(up, down) <= length
        return np.where(first, np.where(up <= length, bounds, -bounds), new)
