"""Faces of a `FlatBall` of Euclidean norms of groups: they are curved, and Newton's step is taken twice."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.flat_descent import ROUNDS, Descent
from projfree.numerics.symmetric import Symmetric, solve_semidefinite

#: A Newton step leaves at least this part of a group.
LEAST = 0.1


class Groups(Descent):
    """Where the groups are sets of neighbouring features, or single features with several columns."""

    landings = 2

    def __init__(self, H: Symmetric, b: Array, ball: FlatBall, start: Array, level: float) -> None:
        super().__init__(H, b, ball, start, level)
        assert ball.groups is not None
        assert H.formed is not None
        self.matrix, self.groups = H.formed, ball.groups
        self.first = np.searchsorted(self.groups, np.arange(len(ball.costs) + 1))
        blocks = zip(self.first[:-1].tolist(), self.first[1:].tolist(), strict=True)
        self.largest = np.array([_largest(self.matrix[i:j, i:j]) for i, j in blocks])

    def descend(self) -> None:
        from projfree.numerics.descent_kernels import descend_groups

        costs = np.ascontiguousarray(self.ball.costs)
        blocks = (self.ball.exponent, self.first, self.largest)
        descend_groups(self.matrix, self.slope, self.w, self.level, costs, *blocks, ROUNDS)

    def face(self) -> tuple[Array, Array, Array, Array]:
        norms = self.ball.sizes(self.w.T)[self.groups]
        S, k = np.flatnonzero(norms > 0.0), len(self.w)
        on = np.broadcast_to(norms > 0.0, self.w.shape)
        unit = self.w[:, S] / norms[S]
        costs = self.ball.costs[self.groups[S]]
        bend = self.level * costs / norms[S]  # of the norm of each group
        A, each = np.zeros((k, len(S), k, len(S))), np.arange(k)
        A[each, :, each] = self.matrix[np.ix_(S, S)] + np.diag(bend)
        if len(self.ball.costs) == len(self.groups):  # single features
            at = np.arange(len(S))
            A[:, at, :, at] -= bend[:, None, None] * unit.T[:, :, None] * unit.T[:, None]
        else:
            same = self.groups[S][:, None] == self.groups[S]
            A -= np.where(same, bend[:, None], 0.0)[None, :, None] * unit[:, :, None, None] * unit[None, None]
        outward = (costs * unit).ravel()
        sides = np.column_stack([-(self.slope[:, S].ravel() + self.level * outward), outward])
        steps = solve_semidefinite(A.reshape(len(outward), -1), sides, self.steepest) if len(S) else sides
        return on, steps[:, 0], steps[:, 1], outward

    def kept(self, new: Array) -> Array:
        # A group that falls far may be one that Newton's step overshoots: descent decides whether it becomes zero.
        before, ahead = (np.bincount(self.groups, (w * self.w).sum(axis=0)) for w in (self.w, new))
        far = ahead < LEAST * before
        return np.where(far[self.groups], LEAST * self.w, new) if far.any() else new

    def shorter(self, step: Array) -> Array:
        for k in range(1, 8):
            if self._falls(new := self.w + 0.25**k * step):
                return new
        return self.w


def _largest(block: Array) -> float:
    """At least the largest eigenvalue of a positive semidefinite matrix, and hardly more."""
    return float(np.linalg.eigvalsh(block)[-1]) * (1.0 + 1e-10) if len(block) > 1 else float(block[0, 0])
