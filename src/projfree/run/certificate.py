"""`Certificate`: what a third party needs to check a result in one pass, without trusting the solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from projfree.checks import Array
from projfree.data import as_data
from projfree.display import html_table
from projfree.losses.base import Loss
from projfree.objectives import Objective, SmoothFunction
from projfree.sets.base import ConstraintSet


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
        Whether the point is feasible, its value is as claimed, the bound is proved to be at least the claimed one, and
        the gap is at most the claimed one: up to the rounding of sums that are added in another order.

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

    def _fields(self) -> dict[str, str]:
        bound = "none, not convex" if self.bound is None else f"{self.bound:.8g}"
        return {"value": f"{self.value:.8g}", "bound": bound, "gap": f"{self.gap:.3g}", "ball": repr(self.ball)}

    def __repr__(self) -> str:
        return f"Certificate({', '.join(f'{name}={text}' for name, text in self._fields().items())})"

    def _repr_html_(self) -> str:
        return html_table("Certificate", self._fields())

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
        from projfree.run.recheck import feasible, recheck

        f, inside = self._objective(X, y, sample_weight, objective), feasible(self.ball, self.w)
        found, least = recheck(self, f), f.least
        if self.bound is None:
            gap, proved = self.ball.gap(found.gradient, self.w), found.fits
        else:
            # A bound above the value is no proof of anything; that no loss is smaller than its least value needs none.
            bound = max(found.bound, least)
            gap = found.value - bound
            proved = found.fits and self.bound <= max(found.bound + found.bound_noise, least) and gap >= -found.noise
        agrees = abs(found.value - self.value) <= found.value_noise
        good = inside is not False and agrees and proved and gap <= self.gap + found.noise < math.inf
        return Verification(inside, found.value, None if self.bound is None else bound, gap, bool(good))

    def _objective(self, X: Any, y: Any, sample_weight: Any, objective: SmoothFunction | None) -> SmoothFunction:
        if objective is not None:
            return objective.reported
        if self.loss is None or X is None:
            raise TypeError(
                "`verify` needs the data as `verify(X, y)`, or `verify(objective=...)` where there is none."
            )
        f = Objective(self.loss, as_data(X, y, sample_weight), fit_intercept=self.intercept is not None)
        return f.reported
