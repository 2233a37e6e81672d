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
from projfree.objectives.rounding import Rounding
from projfree.sets.base import ConstraintSet

if TYPE_CHECKING:
    from projfree.run.certificate import Certificate

#: Numbers recomputed in another order agree to this, relatively to the value, beyond what their terms explain.
AGREEMENT = 1e-10


@dataclass(frozen=True)
class Recheck:
    """What was recomputed: value, bound and gradient, and by how much rounding lets value and bound differ.

    ``fits`` says whether the intercept of the witness belongs to the data.
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
    x, z = f.recheck(claim.w, claim.intercept, claim.witness, claim.witness_intercept)
    value, m = f.reported_value(x), z.slope
    support = claim.ball.support(-m.gradient)
    agreement = AGREEMENT * max(abs(value), abs(claim.value))
    of_value, of_bound = _rounding(claim.ball, f, x, z, rounding)
    if of_value + of_bound > agreement:
        fine = f.rounding(fine=True)
        assert fine is not None
        of_value, of_bound = _rounding(claim.ball, f, x, z, fine)
    fits = _fits(claim.witness_intercept, z.intercept, rounding.extent(z.point.w) + math.sqrt(abs(z.value)))
    of_bound += _support_rounding(claim.ball, m, support)
    lower = max(m.lower(claim.ball, support), f.least)
    return Recheck(value, lower, m.gradient, agreement + of_value, agreement + of_bound, fits)


def _rounding(
    ball: ConstraintSet, f: SmoothFunction, x: Evaluation, z: Evaluation, rounding: Rounding
) -> tuple[float, float]:
    """Of the value at ``x`` and of the bound from the tangent at ``z``, twice, because both were computed twice.

    This is the rounding of the sums alone: the allowance in the bound may also hold the price of an intercept at which
    the derivative is not zero, and with it a witness could pass that belongs to other data.
    """
    mean, most = rounding.extents(ball, f.shape)
    far = mean + f.intercept_reach(z.intercept, most)
    of_value = rounding.value(x.value, x.point.w, x.intercept)
    return 2.0 * of_value, 2.0 * rounding.bound(z.value, z.point.w, z.intercept, far)


def _support_rounding(ball: ConstraintSet, m: Minorant, support: float) -> float:
    """Of the support, twice; one that is only known roughly is still a function of its argument."""
    size = abs(m.constant) + abs(support)
    return min(2.0 * ball.support_error(m.gradient, support) + 8.0 * UNIT * size, AGREEMENT * size)


def _fits(given: Array | None, best: Array | None, scale: float) -> bool:
    """Whether an intercept is the best one, for squares, where that is known without a search."""
    if given is None or best is None:
        return True
    return bool(np.all(np.abs(best - given) <= AGREEMENT * (np.abs(best) + scale)))


def _of_function(claim: Certificate, f: SmoothFunction) -> Recheck:
    """For other functions, which give the same numbers whenever they are asked."""
    x, z = f.recheck(claim.w, claim.intercept, claim.witness, claim.witness_intercept)
    value, m = x.value, z.slope
    support = claim.ball.support(-m.gradient)
    lower, allowance = m.minimum(claim.ball, support)
    roughly = AGREEMENT * (abs(m.constant) + abs(support))
    noise = AGREEMENT * max(abs(value), abs(claim.value)) + min(allowance, roughly)
    return Recheck(value, lower, m.gradient, noise, noise, True)
