"""`LowerBound`: the best lower bound on the optimum that the tangents taken so far prove."""

from __future__ import annotations

import math
from typing import Any

from projfree.algebra import FactoredShape, Minorant, zeros
from projfree.checks import Array
from projfree.objectives.base import Evaluation
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import State

#: Averaging exponents. Larger ones forget early tangents sooner; the 2 of Primal Averaging's own average is left out,
#: because the solver's call of the oracle tells the bound of that one.
ELLS = (16.0, 8.0, 4.0)
#: Certification takes at most this share of the reads of a run.
CHECK_SHARE = 0.1
#: Reads before the first check: a tenth of fewer would be less than half a read.
FIRST_CHECK = 5


def next_check(done: float) -> float:
    """The number of reads at which the certificate is checked next."""
    return (1.0 + CHECK_SHARE) * done + FIRST_CHECK


class LowerBound:
    r"""Averages of tangents with the weights :math:`\ell/(t + \ell - 1)`, and the best bound any of them gave.

    Any convex weights give a valid minorant, so the bound is the maximum over exponents and over time. The average of
    the tangent points is kept as a witness: for quadratics the tangent at that one point proves a bound at least as
    good, for other functions nearly as good, which lets a third party check it in one pass. An average of matrices in
    factors would need a decomposition in each iteration, and is not kept.

    Attributes
    ----------
    bound, allowance : float
        The best bound and the rounding allowance in it.
    witness, witnessed : array or None, and float
        The point whose tangent proves the best bound among those with a known point, and that bound.
    """

    def __init__(self, ball: ConstraintSet, shape: tuple[int, ...]) -> None:
        self.ball, self.factored = ball, isinstance(shape, FactoredShape)
        # The first tangent replaces the constant: zero would lie below no negative function.
        z = None if self.factored else zeros(shape)
        self.averages: list[tuple[Minorant, Any]] = [(Minorant(-math.inf, zeros(shape)), z)] * len(ELLS)
        self.count, self.due = 0, 1
        self.witness: Array | None = None
        self.reset()

    def reset(self) -> None:
        """Hold no bound as proved; the averages and the witness stay, as points where a look may be worthwhile."""
        self.bound, self.allowance, self.witnessed = -math.inf, 0.0, -math.inf

    def add_step(self, state: State, evaluation: Evaluation) -> None:
        """Take the bound that a step has proved, or average its tangent with earlier ones.

        The bound of a step on a perturbed function is one on that function, not on the reported one.
        """
        found = evaluation.reported
        own = found.tangent is evaluation.tangent
        if own and state.bound is not None:
            self.take(state.bound.bound, state.bound.allowance, found.point.w)
        else:
            self.add(found.slope, found.point.w, state.m if own else None, state.oracle_result)

    def add(self, m: Minorant, z: Array, queried: Minorant | None = None, result: Any = None) -> None:
        """Average in the tangent ``m`` taken at ``z``; averages are tried when they have grown by a tenth.

        Of the solver's last call of the oracle, ``queried`` is the minorant that it was about, ``m`` itself or an
        average, and ``result`` what it returned, which proves a bound where the support was computed.
        """
        self.count += 1
        for k, (ell, (mean, centre)) in enumerate(zip(ELLS, self.averages, strict=True)):
            old = 1.0 - ell / (self.count - 1.0 + ell)
            new = 1.0 - old  # so that the two weights add up to one exactly
            self.averages[k] = old * mean + new * m, None if centre is None else old * centre + new * z
        if queried is not None and result is not None and not math.isnan(result.support):
            self.take(*queried.minimum(self.ball, result.support), z if queried is m else None)
        else:
            queried = None
        if self.count >= self.due:
            self.due = max(self.count + 1, math.ceil((1.0 + CHECK_SHARE) * self.count))
            self.offer_averages(result)
            if queried is not m:
                self.offer(m, z)

    def offer_averages(self, result: Any = None) -> None:
        """Take the bounds of averages whose value at the last vertex is above the bound; a single tangent is none."""
        for m, z in self.averages if self.count > 1 else ():
            ceiling = math.inf if result is None else m(result.vertex)
            if ceiling > (self.bound if self.factored else self.witnessed):
                self.offer(m, z)

    def offer(self, m: Minorant, z: Array | None, support: float | None = None) -> float:
        """Take the bound of one minorant, with the point that witnesses it; return that bound."""
        bound, allowance = m.minimum(self.ball, support)
        self.take(bound, allowance, z)
        return bound

    def take(self, bound: float, allowance: float, z: Array | None) -> None:
        """Take a bound, the rounding allowance in it and the point that witnesses it."""
        if z is not None and bound > self.witnessed:
            self.witnessed, self.witness = bound, z
        if bound > self.bound:
            self.bound, self.allowance = bound, allowance
