"""Faces of a `FlatBall` whose groups are single entries: their signs are fixed, and they are flat."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.flat_descent import ROUNDS, Descent
from projfree.numerics.symmetric import Symmetric


class FlatEntries(Descent):
    """Where every entry is a group of its own."""

    def __init__(self, H: Symmetric, b: Array, ball: FlatBall, start: Array, level: float) -> None:
        super().__init__(H, b, ball, start, level)
        costs = np.broadcast_to(ball.costs.reshape(len(b), -1), (len(b), len(self.b)))
        self.costs = np.ascontiguousarray(costs.T)

    def descend(self) -> None:
        self.H.descend(self.slope, self.w, self.level, self.costs, self.ball.signed, ROUNDS)

    def face(self) -> tuple[Array, Array, Array, Array]:
        on = self.w != 0.0
        outward = self.costs * np.sign(self.w)
        sides = np.stack([-(self.slope + self.level * outward), outward], axis=2)
        steps = np.zeros((*self.w.shape, 2))
        for c in range(len(self.w)):
            S = np.flatnonzero(on[c])
            if len(S):
                steps[c, S] = self.H.solve(S, sides[c, S])
        return on, steps[on, 0], steps[on, 1], outward[on]

    def kept(self, new: Array) -> Array:
        crossed = new * self.w < 0.0
        return np.where(crossed, 0.0, new) if crossed.any() else new

    def shorter(self, step: Array) -> Array:
        back = step * self.w < 0.0
        if not back.any():
            return self.w
        ratios = np.full(self.w.shape, np.inf)
        ratios[back] = -self.w[back] / step[back]
        length = min(float(ratios.min()), 1.0)
        return np.where(ratios <= length, 0.0, self.w + length * step)
