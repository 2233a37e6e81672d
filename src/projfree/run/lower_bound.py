"""`LowerBound`: the best lower bound on the optimum from the tangents so far."""

from __future__ import annotations

import math
from typing import Any

from projfree.algebra import FactoredShape, Minorant, zeros
from projfree.checks import Array
from projfree.objectives.base import Evaluation
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import State

#: Averaging exponents: larger ones give less weight to early iterations. Exponent 2 is omitted: it is that of Primal
#: Averaging, whose oracle call already gives its bound.
ELLS = (16.0, 8.0, 4.0)
#: Maximum fraction of the passes of a run that certification uses.
CHECK_SHARE = 0.1
#: Number of passes before the first check; a tenth of fewer passes would be less than half a pass.
FIRST_CHECK = 5


def next_check(done: float) -> float:
    """Return the number of passes at which the certificate is checked next."""
    return (1.0 + CHECK_SHARE) * done + FIRST_CHECK


class LowerBound:
    r"""Averages of tangents with the weights :math:`\ell/(t + \ell - 1)`, and the best lower bound from any of them.

    Any convex combination of tangents is a valid minorant, so the bound is the maximum over exponents and iterations.
    The average of the tangent points is stored as a witness: for quadratic functions the tangent at this point gives a
    bound that is at least as good, for other functions nearly as good, so that others can verify the bound in one pass.
    Averages of factored matrices are not stored, because they would need a decomposition in each iteration.

    Attributes
    ----------
    bound, allowance : float
        The best bound and its rounding allowance.
    witness, witnessed : array or None, and float
        The point whose tangent gives the best bound among those with a known point, and that bound.
    """

    def __init__(self, ball: ConstraintSet, shape: tuple[int, ...]) -> None:
        self.ball, self.factored = ball, isinstance(shape, FactoredShape)
        # The first tangent replaces this constant; zero would not be a minorant of negative functions.
        z = None if self.factored else zeros(shape)
        self.averages: list[tuple[Minorant, Any]] = [(Minorant(-math.inf, zeros(shape)), z)] * len(ELLS)
        self.count, self.due = 0, 1
        self.witness: Array | None = None
        self.reset()

    def reset(self) -> None:
        """Discard the bounds, but not the averages and the witness, whose tangents may still be useful."""
        self.bound, self.allowance, self.witnessed = -math.inf, 0.0, -math.inf

    def add_step(self, state: State, evaluation: Evaluation) -> None:
        """Record the lower bound of a step, or average its tangent with earlier ones.

        The bound of a step on a perturbed function does not hold for the reported function.
        """
        found = evaluation.reported
        own = found.tangent is evaluation.tangent
        if own and state.bound is not None:
            self.take(state.bound.bound, state.bound.allowance, found.point.w)
        else:
            self.add(found.slope, found.point.w, state.m if own else None, state.oracle_result)

    def add(self, m: Minorant, z: Array, queried: Minorant | None = None, result: Any = None) -> None:
        """Add the tangent ``m`` at ``z`` to the averages; compute their bounds whenever the tangents grew by a tenth.

        ``queried`` is the minorant of the last oracle call of the solver, ``m`` or an average, and ``result`` the
        result of the call, which gives a bound if the support was computed.
        """
        self.count += 1
        for k, (ell, (mean, centre)) in enumerate(zip(ELLS, self.averages, strict=True)):
            old = 1.0 - ell / (self.count - 1.0 + ell)
            new = 1.0 - old  # the two weights sum to exactly one
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
        """Compute the bounds of the averages that may improve the best bound; an average of one tangent is skipped."""
        for m, z in self.averages if self.count > 1 else ():
            ceiling = math.inf if result is None else m(result.vertex)
            if ceiling > (self.bound if self.factored else self.witnessed):
                self.offer(m, z)

    def offer(self, m: Minorant, z: Array | None, support: float | None = None) -> float:
        """Compute and record the lower bound from a minorant with the witness ``z``, and return it."""
        bound, allowance = m.minimum(self.ball, support)
        self.take(bound, allowance, z)
        return bound

    def take(self, bound: float, allowance: float, z: Array | None) -> None:
        """Record a lower bound with its rounding allowance and witness if it exceeds the best one so far."""
        if z is not None and bound > self.witnessed:
            self.witnessed, self.witness = bound, z
        if bound > self.bound:
            self.bound, self.allowance = bound, allowance
