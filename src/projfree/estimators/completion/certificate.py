"""How far a model is from optimal: the convex problem's bound at its point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.algebra import LowRank
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.problem import Problem
from projfree.runtime import single_blas
from projfree.solvers.alternating import Sweepable

#: The scale of the relative gap is at least this part of the value without a matrix, as in every run.
LEAST = 1e-6


@dataclass(frozen=True)
class Certificate:
    """A model inside the ball with its best offsets, its value, and a proven bound on the minimum over the ball."""

    factors: Factors
    value: float
    bound: float
    relative_gap: float


def certified(problem: Problem, factors: Factors, radius: float) -> Certificate:
    """The certificate of a model in the ball of a radius."""
    f, ball = problem.f.open(), problem.ball(radius)
    with single_blas():
        here = f.evaluate(factors.point(f))
        bound = here.slope.lower(ball)
    found = factors.with_offsets(np.asarray(here.intercept))
    return Certificate(found, here.value, bound, relative(f, here.value, bound))


def relative(f: Sweepable, value: float, bound: float) -> float:
    """The gap over the value, or over a millionth of the value without a matrix."""
    floor = LEAST * abs(float(f.value(f.point(LowRank(f.shape, ())))))
    return (value - bound) / max(abs(value), floor, 1e-300)
