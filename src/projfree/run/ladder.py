"""`Ladder`: the best lower bound that the tangents met so far can prove."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import Minorant
from projfree.checks import Array
from projfree.sets.base import ConstraintSet

#: Averaging exponents. Two is Primal Averaging's own; larger ones forget early tangents sooner and certify 10 to
#: 100 times earlier. The last tangent alone, the Frank-Wolfe bound, is always tried too.
ELLS = (2.0, 4.0, 8.0, 16.0)
#: On spectral sets, where a dual norm costs a decomposition, averages are evaluated at counts that grow like this.
GROWTH = 1.3


@dataclass
class Rung:
    """An average of tangents and, with the same weights, of the places where they were taken."""

    m: Minorant
    z: Array


class Ladder:
    r"""Averages of tangents with the weights :math:`\ell/(t + \ell - 1)`, and the best bound any of them gave.

    Any convex weights give a valid minorant, so the bound is the maximum over exponents and over time. Each rung
    keeps the average of its tangent points as a witness: for quadratics the tangent at that one point proves a bound at
    least as good, for other functions nearly as good, which is what lets a third party check it in one pass.
    """

    def __init__(self, ball: ConstraintSet, shape: tuple[int, ...]) -> None:
        self.ball = ball
        # Minus infinity until the first tangent replaces it: zero lies below no negative function.
        self.rungs = [Rung(Minorant(-math.inf, np.zeros(shape)), np.zeros(shape)) for _ in ELLS]
        self.count, self.due = 0, 1
        self.bound, self.allowance = -math.inf, 0.0
        self.witness: Array | None = None
        self.witnessed = -math.inf

    def add(self, m: Minorant, z: Array, known: float = -math.inf) -> None:
        """Average the tangent ``m`` taken at ``z`` into every rung, and see what they prove.

        ``known`` is a bound that the solver's own oracle call has already proved.
        """
        self.count += 1
        for ell, rung in zip(ELLS, self.rungs, strict=True):
            old = 1.0 - ell / (self.count - 1.0 + ell)
            new = 1.0 - old  # so that the two add up to one exactly
            rung.m, rung.z = old * rung.m + new * m, old * rung.z + new * z
        if not self.ball.spectral or self.count >= self.due:
            self.due = max(self.count + 1, math.ceil(GROWTH * self.count))
            self.evaluate()
            self.offer(m, z)
        if known > self.bound:
            self.bound = known

    def evaluate(self) -> None:
        """Ask every rung for its bound."""
        for rung in self.rungs if self.count else ():
            self.offer(rung.m, rung.z)

    def offer(self, m: Minorant, z: Array) -> float:
        """Take the bound of one minorant, with the place that witnesses it; return that bound."""
        bound, allowance = m.minimum(self.ball)
        if bound > self.witnessed:
            self.witnessed, self.witness = bound, z
        if bound > self.bound:
            self.bound, self.allowance = bound, allowance
        return bound
