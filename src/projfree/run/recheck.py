"""What a certificate claims, recomputed from the data, and by how much rounding lets it differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from projfree.algebra import UNIT, Minorant
from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.rounding import Rounding, reported_value
from projfree.sets.base import ConstraintSet

if TYPE_CHECKING:
    from projfree.run.certificate import Certificate

#: Accelerated methods evaluate x + b (x - y) with x and y in the set and b < 1: within three times a ball.
EXTRAPOLATED = 2.0
#: Numbers recomputed in another order agree to this, relatively to the value, beyond what their terms explain.
AGREEMENT = 1e-10


@dataclass(frozen=True)
class Recheck:
    """What was recomputed: value, bound and gradient, and by how much rounding lets value and bound differ.

    ``fits`` says whether the witness may be one of this problem: it lies in the set or near it, and its intercept may
    be the best one of a point of the set. A witness far away would excuse any claim by its own rounding.
    """

    value: float
    bound: float
    gradient: Array
    value_noise: float
    bound_noise: float
    fits: bool

    @property
    def noise(self) -> float:
        """By how much the gap may differ."""
        return self.value_noise + self.bound_noise


def recheck(claim: Certificate, f: SmoothFunction) -> Recheck:
    """The value at the point of a certificate and the bound that its witness proves."""
    rounding = f.rounding()
    return _of_function(claim, f) if rounding is None else _of_rows(claim, f, rounding)


def _of_rows(claim: Certificate, f: SmoothFunction, rounding: Rounding) -> Recheck:
    """For the mean of a loss over rows, whose sums may now be added in another order."""
    x, z = _evaluated(claim, f)
    value, m = reported_value(f, x), z.slope
    support = claim.ball.support(-m.gradient)
    agreement = AGREEMENT * max(abs(value), abs(claim.value))
    of_value, of_bound = _rounding(claim.ball, f, x, z, rounding)
    if of_value + of_bound > agreement:
        fine = f.rounding(fine=True)
        assert fine is not None
        of_value, of_bound = _rounding(claim.ball, f, x, z, fine)
    fits = feasible(claim.ball, claim.witness, EXTRAPOLATED) is not False and _fits(claim, f, z, rounding)
    of_bound += of_value + _support_rounding(claim.ball, m, support)
    return Recheck(value, m.lower(claim.ball, support), m.gradient, agreement + of_value, agreement + of_bound, fits)


def _evaluated(claim: Certificate, f: SmoothFunction) -> tuple[Evaluation, Evaluation]:
    """The value at the point of a certificate and the tangent at its witness, with the intercepts that they have."""
    f = f.open()
    x = f.point(claim.w, claim.intercept)
    z = f.evaluate(f.point(claim.witness, claim.witness_intercept), (x,), near=True)
    return z.also[0] if z.also else f.evaluate(x, tangent=False), z


def _rounding(
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


def _support_rounding(ball: ConstraintSet, m: Minorant, support: float) -> float:
    """Of the support, twice; one that is only known roughly is still a function of its argument."""
    size = abs(m.constant) + abs(support)
    return min(2.0 * ball.support_error(m.gradient, support) + 8.0 * UNIT * size, AGREEMENT * size)


def feasible(ball: ConstraintSet, w: Array, *slack: float) -> bool | None:
    """Whether a point lies in the set, up to a relative slack if one is given; None where the set cannot tell."""
    try:
        return ball.contains(w, *slack)
    except NotImplementedError:
        return None


def _fits(claim: Certificate, f: SmoothFunction, z: Evaluation, rounding: Rounding) -> bool:
    """Whether an intercept is the best one for squares, and for other losses the best one of some point of the set."""
    given, best = claim.witness_intercept, z.intercept
    if given is None or best is None:
        return True
    scale = rounding.extent(z.point.w) + math.sqrt(abs(z.value))
    known = bool(np.all(np.abs(best - given) <= AGREEMENT * (np.abs(best) + scale)))
    return known and rounding.intercept.fits(given, rounding.extents(claim.ball, f.shape)[1])


def _of_function(claim: Certificate, f: SmoothFunction) -> Recheck:
    """For other functions, which give the same numbers whenever they are asked."""
    x, z = _evaluated(claim, f)
    value, m = x.value, z.slope
    support = claim.ball.support(-m.gradient)
    lower, allowance = m.minimum(claim.ball, support)
    roughly = AGREEMENT * (abs(m.constant) + abs(support))
    noise = AGREEMENT * max(abs(value), abs(claim.value)) + min(allowance, roughly)
    return Recheck(value, lower, m.gradient, noise, noise, True)
