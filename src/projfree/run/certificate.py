"""`Certificate`: what a third party needs to check a result in one pass, without trusting the solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from projfree.algebra import Minorant
from projfree.checks import Array
from projfree.data import as_data
from projfree.losses.base import Loss
from projfree.objectives import Objective, SmoothFunction
from projfree.sets.base import ConstraintSet

#: Values recomputed in another order agree to this, relatively.
AGREEMENT = 1e-10


@dataclass(frozen=True)
class Verification:
    """What a check found.

    Attributes
    ----------
    feasible : bool or None
        Whether the point lies in the set; None where the set cannot tell.
    value : float
        The objective at the point, recomputed.
    bound : float or None
        The lower bound proved by the tangent at the witness, recomputed; None where f is not convex.
    gap : float
        Their difference (the Frank-Wolfe gap where f is not convex).
    ok : bool
        Whether the point is feasible, its value is as claimed, the bound is proved to be at least the claimed one,
        and the gap is at most the larger of the claimed gap and the tolerance of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> result = minimize(Objective(Squared(), as_data(X, y)), LpBall(1.5, radius=1.0))
    >>> result.certificate.verify(X, y).feasible
    True
    """

    feasible: bool | None
    value: float
    bound: float | None
    gap: float
    ok: bool


@dataclass(frozen=True, eq=False)
class Certificate:
    """A point, its value, a lower bound on the optimum, and the witness that proves the bound.

    The tangent of a convex f at the witness lies below f; minimised over the set it bounds the optimum from
    below. One read of the data recomputes the value at the point and that tangent.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> result = minimize(Objective(Squared(), as_data(X, y)), LpBall(1.5, radius=1.0))
    >>> result.certificate.verify(X, y).ok
    True
    >>> result.certificate.verify(X, y + 1.0).ok
    False
    """

    ball: ConstraintSet
    w: Array
    intercept: Array | None
    value: float
    bound: float | None
    gap: float
    tolerance: float
    witness: Array
    witness_intercept: Array | None
    loss: Loss | None = None

    def verify(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, objective: SmoothFunction | None = None
    ) -> Verification:
        """Check feasibility, value and bound.

        Parameters
        ----------
        X, y, sample_weight
            The data, as given to `as_data`.
        objective : SmoothFunction, optional
            In place of the data, for objectives that are not the mean of a loss, and for data that was centred or
            scaled.
        """
        value, m = self._recompute(self._objective(X, y, sample_weight, objective))
        feasible = self._feasible()
        lower, allowance = m.minimum(self.ball)
        # Sums in another order move values and bounds by their rounding, of which the allowance is a generous bound;
        # where it is large it holds the price of an intercept that fits other data, which is no rounding.
        size = abs(m.constant) + abs(m.constant - lower)
        noise = AGREEMENT * max(abs(value), abs(self.value)) + min(allowance, AGREEMENT * size)
        agrees = abs(value - self.value) <= noise
        if self.bound is None:
            bound, gap, proved = None, self.ball.gap(m.gradient, self.w), True
        else:
            bound, gap, proved = lower, value - lower, self.bound - lower <= noise
        # A bound above the value is no proof of anything.
        claimed, possible = max(self.gap, self.tolerance) + 2.0 * noise, gap >= -2.0 * noise
        good = feasible is not False and agrees and proved and possible and gap <= claimed
        return Verification(feasible, value, bound, gap, bool(good))

    def _feasible(self) -> bool | None:
        try:
            return self.ball.contains(self.w)
        except NotImplementedError:
            return None

    def _objective(self, X: Any, y: Any, sample_weight: Any, objective: SmoothFunction | None) -> SmoothFunction:
        if objective is not None:
            return objective.reported
        if self.loss is None or X is None:
            raise TypeError(
                "`verify` needs the data as `verify(X, y)`, or `verify(objective=...)` where there is none."
            )
        return Objective(self.loss, as_data(X, y, sample_weight), fit_intercept=self.intercept is not None)

    def _recompute(self, f: SmoothFunction) -> tuple[float, Minorant]:
        return f.recheck(self.w, self.intercept, self.witness, self.witness_intercept)
