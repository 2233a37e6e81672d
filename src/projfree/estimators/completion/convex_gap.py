"""How far a model is from optimal: the convex problem's bound at its point."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from projfree.algebra import UNIT, LowRank
from projfree.completion.alternating import Sweepable
from projfree.estimators.completion.convex_problem import ConvexProblem
from projfree.estimators.completion.factors import Factors
from projfree.losses.squared import is_squared
from projfree.numerics.spectra import is_sharp
from projfree.objectives.evaluation import Evaluation
from projfree.run.certificate import refuse_contradiction
from projfree.run.loop import LEAST_SCALE
from projfree.runtime import single_blas
from projfree.sets import schatten
from projfree.sets.weighted import WeightedSchattenBall

#: The scale of the relative gap is at least this part of the value without a matrix, as in every run.
LEAST = 1e-6
#: What counts as how many products of a sweep: a product of two entries of one row in a Gram matrix, and for each cube
#: of its side a Cholesky factorisation and all eigenvalues. Measured, with all that sweeps take besides.
PAIR, CHOLESKY, SPECTRUM = 5.0, 1.0 / 18.0, 1.0 / 3.0


@dataclass(frozen=True)
class CertifiedModel:
    """A model inside the ball with its best offsets, its value, and a proven bound on the minimum over the ball.

    The bound is ``coarse`` where a sharp one would have taken too many products, or the matrix is too large for one.
    """

    factors: Factors
    value: float
    bound: float
    relative_gap: float
    coarse: bool


def certified(problem: ConvexProblem, factors: Factors, radius: float, most: float = math.inf) -> CertifiedModel:
    """The certificate of a model in the ball of a radius, for about ``most`` products."""
    f, ball, sharp = problem.f, problem.ball(radius), affords_gram(problem, most)
    with single_blas():
        here = _in_coordinates_of(ball, f, factors)
        support = schatten.structured_support(cast("Any", here.slope.gradient), ball.p, radius, sharp)
        bound, allowance = here.slope.minimum(ball, support)
    refuse_contradiction(f, ball, here.value, bound, allowance)
    bound = max(bound, _scaled_back(f, here, bound), f.structure.least)
    coarse = not is_sharp(f.shape, sharp)
    found = factors.with_offsets(np.asarray(here.intercept))
    return CertifiedModel(found, here.value, bound, relative(f, here.value, bound), coarse)


def _in_coordinates_of(ball: WeightedSchattenBall, f: Sweepable, factors: Factors) -> Evaluation:
    """The evaluation of a model, with the gradient in the coordinates in which the norm has no weights.

    It keeps neither the other gradient nor the images of the ratings, each of which takes as much memory as these.
    """
    here = f.open().evaluate(factors.point(f))
    gradient: Any = here.slope.gradient
    lowered = gradient.scaled(1.0 / ball.rows, 1.0 / ball.cols)
    return replace(here, tangent=replace(here.slope, gradient=lowered))


def _scaled_back(f: Sweepable, here: Evaluation, bound: float) -> float:
    r"""The best bound of tangents like that at a point, with all residuals of squares multiplied by one number.

    Residuals :math:`\theta \rho` give the bound :math:`\theta b + \theta (1 - \theta) Q`, where b is that of
    :math:`\rho` and Q the sum of their weighted squares, which is at least the value without the ridge of the offsets.
    It is hardly larger than b where this is close to the value, but never negative.
    """
    e = f.entries
    if not is_squared(e.loss):
        return -math.inf
    squares = here.value * (1.0 - 1e-12) - e.intercept_strategy.penalty(here.intercept) - here.slope.constant_error
    if not squares + bound > 0.0:
        return -math.inf
    theta = min((squares + bound) / (2.0 * squares), 1.0)
    return theta * bound + theta * (1.0 - theta) * squares - 8.0 * UNIT * (abs(bound) + squares)


def affords_gram(problem: ConvexProblem, most: float) -> bool:
    """Whether a Gram matrix with its factorisation, from which a sharp bound comes, takes at most so many products."""
    f, (m, n) = problem.f.entries, problem.f.entries.shape
    along = np.diff(f.data.pattern.indptr) if n <= m else np.bincount(f.data.pattern.indices, minlength=n)
    pairs, side = float(np.sum(along.astype(np.float64) ** 2)), min(problem.f.shape)
    several = 1.0 if problem.f.neighbours is None else 5.0  # three Gram matrices, and a product that is not one
    return pairs * PAIR * several + side**3 * (CHOLESKY if problem.p == 1.0 else SPECTRUM) <= most


def relative(f: Sweepable, value: float, bound: float) -> float:
    """The gap over the value, or over a millionth of the value without a matrix."""
    e = f.entries
    # That is at most the loss without offsets, so that the search for them is worth it only where it could matter.
    most = e.value_without_offsets + f.known
    floor = LEAST * abs(float(f(f.point(LowRank(f.shape, ()))))) if abs(value) < LEAST * most else 0.0
    return (value - bound) / max(abs(value), floor, LEAST_SCALE)
