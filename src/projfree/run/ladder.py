"""`Ladder`: the best lower bound that the tangents taken so far can prove."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from projfree.algebra import FactoredShape, Minorant
from projfree.checks import Array
from projfree.run.averages import Rung, Separate, Stacked
from projfree.sets.base import ConstraintSet, OracleResult

#: Averaging exponents. Two is Primal Averaging's own; larger ones forget early tangents sooner and certify 10 to
#: 100 times earlier. The last tangent alone, the Frank-Wolfe bound, is always tried too.
#: Of large matrices in factors, where each average takes as much memory as the data, there are two.
ELLS, LARGE_ELLS = (2.0, 4.0, 8.0, 16.0), (2.0, 8.0)
#: Averages are evaluated at counts that grow like this, by what a support costs; for matrices in factors with so many
#: entries, where it costs as much as several steps, from a later one and at fewer.
GROWTH = {"entries": 1.0, "call": 1.1, "singular values": 1.3}
LARGE_GROWTH, LARGE_FIRST, LARGE = 2.0, 4, 1_000_000


class Ladder:
    r"""Averages of tangents with the weights :math:`\ell/(t + \ell - 1)`, and the best bound any of them gave.

    Any convex weights give a valid minorant, so the bound is the maximum over exponents and over time. Each rung
    keeps the average of its tangent points as a witness: for quadratics the tangent at that one point proves a bound at
    least as good, for other functions nearly as good, which is what lets a third party check it in one pass.

    A bound costs a support of the set. Where that is a call of a user's function, a minorant at the last vertex tells
    what its bound can be at most; only the best is evaluated, on the schedule, and when it may be the one that ends the
    run. There is at most one such call an iteration in the mean.
    """

    def __init__(self, ball: ConstraintSet, shape: tuple[int, ...]) -> None:
        self.ball, self.shape = ball, shape
        self.factored = isinstance(shape, FactoredShape)
        large = self.factored and math.prod(shape) >= LARGE
        self.ells = np.array(LARGE_ELLS if large else ELLS)
        cheap = ball.support_cost == "entries"
        self.growth = LARGE_GROWTH if large and not cheap else GROWTH[ball.support_cost]
        self.count, self.due, self.evaluated = 0, LARGE_FIRST if large and not cheap else 1, 0
        self.bound, self.allowance = -math.inf, 0.0
        self.witness: Array | None = None
        self.witnessed = -math.inf

    @cached_property
    def _averages(self) -> Separate | Stacked:
        """The averages; solvers whose last tangent proves the most need none."""
        return (Separate if self.factored else Stacked)(len(self.ells), self.shape)

    @property
    def rungs(self) -> list[Rung]:
        """The averages one by one."""
        return self._averages.rungs

    @rungs.setter
    def rungs(self, rungs: list[Rung]) -> None:
        self._averages.rungs = rungs

    def add(
        self,
        m: Minorant,
        z: Array,
        known: float = -math.inf,
        last: OracleResult | None = None,
        *,
        own: bool = False,
        goal: float = math.inf,
    ) -> None:
        """Average the tangent ``m`` taken at ``z`` into every rung, and see what they prove.

        Parameters
        ----------
        known : float
            A bound that the solver's own oracle call has already proved.
        last : OracleResult, optional
            The answer of that call.
        own : bool
            Whether that call was about the tangent itself.
        goal : float
            The bound that would end the run.
        """
        self.count += 1
        old = 1.0 - self.ells / (self.count - 1.0 + self.ells)
        self._averages.add(old, 1.0 - old, m, z)  # so that the two weights add up to one exactly
        answered = self._take_answer(m, z, last) if own else False
        if self.count >= self.due:
            self.due = max(self.count + 1, math.ceil(self.growth * self.count))
            self.evaluate(last)
            if not answered:
                self.try_tangent(m, z, last)
        elif self.ball.support_cost == "call":
            self._reach([*self.rungs] if answered else [*self.rungs, Rung(m, z)], last, goal)
        if known > self.bound:
            self.bound = known

    def _take_answer(self, m: Minorant, z: Array, last: OracleResult | None) -> bool:
        """Take the bound of a tangent from the solver's own call about it, and say whether that was possible."""
        if last is None or math.isnan(last.support) or self.ball.support_cost != "call":
            return False
        self.take(*m.minimum(self.ball, last.support), z)
        return True

    def evaluate(self, last: OracleResult | None = None) -> None:
        """Ask every rung for its bound, or the one that may have the best where that costs much less to tell."""
        cheap = self.ball.support_cost == "entries"
        if not self.count or (cheap and self.count == 1):  # the average of one tangent, which was tried itself
            return
        if not cheap:
            rungs = self.rungs
            ceilings = [self._ceiling(rung.m, last) for rung in rungs]
            best = max(ceilings)
            if best < math.inf:
                if self._helps(best):
                    rung = rungs[ceilings.index(best)]
                    self.offer(rung.m, rung.z)
                return
        self.evaluated += len(self.ells)
        for k, (bound, allowance) in enumerate(zip(*self._averages.minima(self.ball), strict=True)):
            if bound > self.bound or bound > self.witnessed:
                self.take(bound, allowance, self._averages.place(k))

    def try_tangent(self, m: Minorant, z: Array, last: OracleResult | None = None) -> None:
        """Take the bound of a tangent, unless it is known beforehand not to be the best."""
        if self.ball.support_cost == "entries" or self._helps(self._ceiling(m, last)):
            self.offer(m, z)

    def _reach(self, rungs: list[Rung], last: OracleResult | None, goal: float) -> None:
        """Try those that may reach the goal, the highest first, until it is reached or the calls are used up."""
        ceilings = [self._ceiling(rung.m, last) for rung in rungs]
        for k in sorted(range(len(rungs)), key=lambda k: -ceilings[k]):
            if ceilings[k] < goal or self.witnessed >= goal or self.evaluated >= self.count:
                break
            self.offer(rungs[k].m, rungs[k].z)

    def _helps(self, bound: float) -> bool:
        """Whether a minorant with this bound would be the best, or the best that has a witness where averages do."""
        return bound > (self.bound if self.factored else self.witnessed)

    def _ceiling(self, m: Minorant, last: OracleResult | None) -> float:
        """What the bound of a minorant can be at most, infinite where that is not known."""
        if not math.isfinite(m.constant):
            return -math.inf
        return m.constant - self.ball.support_floor(m.gradient, last)

    def offer(self, m: Minorant, z: Array | None, support: float | None = None) -> float:
        """Take the bound of one minorant, with the place that witnesses it; return that bound."""
        self.evaluated += 1
        bound, allowance = m.minimum(self.ball, support)
        self.take(bound, allowance, z)
        return bound

    def forget(self) -> None:
        """Hold no bound as proved; the averages and the witness, a place to look at, stay."""
        self.bound, self.allowance, self.witnessed = -math.inf, 0.0, -math.inf

    def take(self, bound: float, allowance: float, z: Array | None) -> None:
        """Take in a bound, the rounding allowance in it and the place that witnesses it."""
        if z is not None and bound > self.witnessed:
            self.witnessed, self.witness = bound, z
        if bound > self.bound:
            self.bound, self.allowance = bound, allowance
