"""`Certificate`: what a third party needs to check a result in one pass, without trusting the solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array
from projfree.data import as_data
from projfree.display import html_table
from projfree.losses.base import Loss
from projfree.objectives import Objective, SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.rounding import Rounding, reported_value
from projfree.sets.base import ConstraintSet

#: Accelerated methods evaluate x + b (x - y) with x and y in the set and b < 1: within three times a ball.
EXTRAPOLATED = 2.0
#: Numbers recomputed in another order agree to this, relatively to the value, beyond what their terms explain.
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
        f, inside = self._objective(X, y, sample_weight, objective), _contains(self.ball, self.w)
        found = _recompute(self, f)
        noise, bound, least = found.value_noise + found.bound_noise, None, f.structure.least
        if self.bound is None:
            gap, proved = self.ball.gap(found.gradient, self.w), found.fits
        else:
            # A bound above the value proves nothing; that no loss is smaller than its least value needs no proof.
            bound = max(found.bound, least)
            gap = found.value - bound
            proved = found.fits and self.bound <= max(found.bound + found.bound_noise, least) and gap >= -noise
        agrees = abs(found.value - self.value) <= found.value_noise
        good = inside is not False and agrees and proved and gap <= self.gap + noise < math.inf
        return Verification(inside, found.value, bound, gap, bool(good))

    def _objective(self, X: Any, y: Any, sample_weight: Any, objective: SmoothFunction | None) -> SmoothFunction:
        if objective is not None:
            return objective.reported
        if self.loss is None or X is None:
            raise TypeError(
                "`verify` needs the data as `verify(X, y)`, or `verify(objective=...)` where there is none."
            )
        f = Objective(self.loss, as_data(X, y, sample_weight), fit_intercept=self.intercept is not None)
        return f.reported


class _Recomputed(NamedTuple):
    """Value, bound and gradient, by how much rounding lets the first two differ, and whether the witness fits.

    A witness fits if it lies in the set or near it, and its intercept may be the best one of a point of the set: one
    far away would excuse any claim by its own rounding.
    """

    value: float
    bound: float
    gradient: Array
    value_noise: float
    bound_noise: float
    fits: bool


def _recompute(claim: Certificate, f: SmoothFunction) -> _Recomputed:
    """The value at the point of a certificate and the bound that its witness proves, in one read."""
    ball, rounding = claim.ball, f.rounding()
    x, z = _evaluate(claim, f.open())
    value, m = reported_value(f, x), z.slope
    support = ball.support(-m.gradient)
    lower, allowance = m.minimum(ball, support)
    agreement, size = AGREEMENT * max(abs(value), abs(claim.value)), abs(m.constant) + abs(support)
    if rounding is None:  # other functions give the same numbers whenever they are evaluated
        noise = agreement + min(allowance, AGREEMENT * size)
        return _Recomputed(value, lower, m.gradient, noise, noise, True)
    of_value, of_bound = _sum_rounding(ball, f, x, z, rounding)
    if of_value + of_bound > agreement:
        fine = f.rounding(fine=True)
        assert fine is not None
        of_value, of_bound = _sum_rounding(ball, f, x, z, fine)
    # Of the support, twice; one that is only known roughly is still a function of its argument.
    of_support = min(2.0 * ball.support_error(m.gradient, support) + 8.0 * UNIT * size, AGREEMENT * size)
    fits = _contains(ball, claim.witness, EXTRAPOLATED) is not False and _intercept_fits(claim, f, z, rounding)
    value_noise = agreement + of_value
    return _Recomputed(value, lower, m.gradient, value_noise, value_noise + of_bound + of_support, fits)


def _evaluate(claim: Certificate, f: SmoothFunction) -> tuple[Evaluation, Evaluation]:
    """The value at the point and the tangent at the witness, with the intercepts of the certificate."""
    x = f.point(claim.w, claim.intercept)
    z = f.evaluate(f.point(claim.witness, claim.witness_intercept), (x,), near=True)
    return z.also[0] if z.also else f.evaluate(x, tangent=False), z


def _sum_rounding(
    ball: ConstraintSet, f: SmoothFunction, x: Evaluation, z: Evaluation, rounding: Rounding
) -> tuple[float, float]:
    """Of the value at ``x`` and of the bound from the tangent at ``z``, twice, because both were computed twice.

    This is the rounding of the sums alone: the allowance in the bound may also hold the price of an intercept at which
    the derivative is not zero, and with it a witness could pass that belongs to other data.
    """
    mean, most = rounding.extents(ball, f.shape)
    far = mean + rounding.intercept.reach(z.intercept, most)
    of_value = rounding.value(x.value, x.point.w, x.intercept)
    apart = rounding.apart(ball, z.point.w)
    return 2.0 * of_value, 2.0 * rounding.bound(z.value, z.point.w, z.intercept, far, apart)


def _contains(ball: ConstraintSet, w: Array, *slack: float) -> bool | None:
    """Whether a point lies in the set, up to a relative slack if one is given; None if the set cannot tell."""
    try:
        return ball.contains(w, *slack)
    except NotImplementedError:
        return None


def _intercept_fits(claim: Certificate, f: SmoothFunction, z: Evaluation, rounding: Rounding) -> bool:
    """Whether an intercept is the best one for squares, and for other losses the best one of some point of the set."""
    given, best = claim.witness_intercept, z.intercept
    if given is None or best is None:
        return True
    scale = rounding.extent(z.point.w) + math.sqrt(abs(z.value))
    known = bool(np.all(np.abs(best - given) <= AGREEMENT * (np.abs(best) + scale)))
    return known and rounding.intercept.fits(given, rounding.extents(claim.ball, f.shape)[1])
