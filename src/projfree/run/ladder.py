"""`Ladder`: the best lower bound that the tangents met so far can prove."""

from __future__ import annotations

import math
from dataclasses import dataclass

from projfree.algebra import FactoredShape, Minorant, zeros
from projfree.checks import Array
from projfree.sets.base import ConstraintSet

#: Averaging exponents. Two is Primal Averaging's own; larger ones forget early tangents sooner and certify 10 to
#: 100 times earlier. The last tangent alone, the Frank-Wolfe bound, is always tried too.
#: Of large matrices in factors, where each average takes as much memory as the data, there are two.
ELLS, LARGE_ELLS = (2.0, 4.0, 8.0, 16.0), (2.0, 8.0)
#: On spectral sets, where a dual norm costs a decomposition, averages are evaluated at counts that grow like this; for
#: matrices in factors with so many entries, where it costs as much as several steps, from a later one and at fewer.
GROWTH, LARGE_GROWTH, LARGE_FIRST, LARGE = 1.3, 2.0, 4, 1_000_000


@dataclass
class Rung:
    """An average of tangents and, with the same weights, of the places where they were taken.

    Averages of matrices in factors would need a decomposition each; there ``z`` is None, and single tangents witness.
    """

    m: Minorant
    z: Array | None


class Ladder:
    r"""Averages of tangents with the weights :math:`\ell/(t + \ell - 1)`, and the best bound any of them gave.

    Any convex weights give a valid minorant, so the bound is the maximum over exponents and over time. Each rung
    keeps the average of its tangent points as a witness: for quadratics the tangent at that one point proves a bound at
    least as good, for other functions nearly as good, which is what lets a third party check it in one pass.
    """

    def __init__(self, ball: ConstraintSet, shape: tuple[int, ...]) -> None:
        self.ball = ball
        # Minus infinity until the first tangent replaces it: zero lies below no negative function.
        self.factored = isinstance(shape, FactoredShape)
        large = self.factored and math.prod(shape) >= LARGE
        self.ells: tuple[float, ...] = LARGE_ELLS if large else ELLS
        self.growth = LARGE_GROWTH if large else GROWTH
        self.rungs = [
            Rung(Minorant(-math.inf, zeros(shape)), None if self.factored else zeros(shape)) for _ in self.ells
        ]
        self.count, self.due = 0, LARGE_FIRST if large else 1
        self.bound, self.allowance = -math.inf, 0.0
        self.witness: Array | None = None
        self.witnessed = -math.inf

    def add(self, m: Minorant, z: Array, known: float = -math.inf) -> None:
        """Average the tangent ``m`` taken at ``z`` into every rung, and see what they prove.

        ``known`` is a bound that the solver's own oracle call has already proved.
        """
        self.count += 1
        for ell, rung in zip(self.ells, self.rungs, strict=True):
            old = 1.0 - ell / (self.count - 1.0 + ell)
            new = 1.0 - old  # so that the two add up to one exactly
            rung.m = old * rung.m + new * m
            if rung.z is not None:
                rung.z = old * rung.z + new * z
        if not self.ball.spectral or self.count >= self.due:
            self.due = max(self.count + 1, math.ceil(self.growth * self.count))
            self.evaluate()
            if not self.hopeless(m):
                self.offer(m, z)
        if known > self.bound:
            self.bound = known

    def evaluate(self) -> None:
        """Ask every rung for its bound; of matrices in factors the most promising one, as a bound costs a spectrum."""
        rungs = self.rungs if self.count else []
        if self.factored and self.ball.spectral and rungs:
            promises = [self._promise(rung.m) for rung in rungs]
            best = max(promises)
            rungs = [rungs[promises.index(best)]] if best > self.bound else []
        for rung in rungs:
            self.offer(rung.m, rung.z)

    def _promise(self, m: Minorant) -> float:
        """What the bound of a minorant can be at most."""
        return m.constant - self.ball.promise(m.gradient) if math.isfinite(m.constant) else -math.inf

    def hopeless(self, m: Minorant) -> bool:
        """Whether a bound that costs a spectrum cannot be the best."""
        return self.factored and self.ball.spectral and self._promise(m) <= self.bound

    def offer(self, m: Minorant, z: Array | None) -> float:
        """Take the bound of one minorant, with the place that witnesses it; return that bound."""
        bound, allowance = m.minimum(self.ball)
        if z is not None and bound > self.witnessed:
            self.witnessed, self.witness = bound, z
        if bound > self.bound:
            self.bound, self.allowance = bound, allowance
        return bound
