r"""More components for a certificate: the answer of the sweeps, grown along the gradient's own singular vectors.

For p > 1 the minimiser over the ball is the oracle's vertex of its own gradient, so it has as many components as that
gradient, and real spectra are flat: an answer of few components is far from the convex minimum however good it is.
The components that it lacks are close to those of the vertex; a few sweeps settle them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from projfree.deadline import expired
from projfree.estimators.completion.certificate import relative
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.problem import Problem
from projfree.numerics.subspace import BOUND_SIDE, EVERY_SIDE
from projfree.run import Status
from projfree.runtime import single_blas
from projfree.sets import spectral
from projfree.solvers.alternating import balanced

#: A round multiplies the components by this, up to the most that sweeps can bear, and sweeps so often.
MORE, MOST_RANK, SWEEPS = 2, 320, 6
#: Rounds go on while the gap falls below this part of the last one, and end a little below the tolerance.
FALLING, BELOW = 0.9, 0.95


def worth_growing(problem: Problem) -> bool:
    """Whether the convex solvers work with a leading part of the spectrum, while the whole of it can be had."""
    return problem.p > 1.0 and EVERY_SIDE < min(problem.f.shape) <= BOUND_SIDE


def grow(
    problem: Problem,
    model: Factors,
    strength: float,
    radius: float,
    tol: float,
    callbacks: Sequence[Callable[[Any], bool | None]] = (),
) -> tuple[Factors, float]:
    """The model with as many components as the tolerance needs, or the deadline and callbacks allow, and its strength.

    The strength is that of the penalty.
    """
    best, least, ended = (model, strength), np.inf, False
    if not 0 < len(model.sigma) <= MOST_RANK:
        return best
    while True:
        model = _at_the_boundary(problem, model, radius)
        gap, vertex = _looked_at(problem, model, radius)
        falling, rank = gap < FALLING * least, len(model.sigma)
        best, least = ((model, strength), gap) if gap < least else (best, least)
        wanted = min(MORE * rank, MOST_RANK, vertex.rank)
        if gap <= BELOW * tol or ended or expired() or not (falling or wanted > rank):
            return best
        if wanted > rank:
            model = _extended(problem, model, vertex, wanted)
        begun = problem.state(model, strength)
        state, status = problem.within(len(model.sigma), radius, begun, max_iter=SWEEPS, callbacks=callbacks)
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        model, strength, ended = Factors.of(problem.f, state).double, state.strength, status is Status.CALLBACK


def _looked_at(problem: Problem, model: Factors, radius: float) -> tuple[float, Any]:
    """The relative gap of a model, and the vertex of its gradient."""
    f, unit = problem.f.open(), problem.unit
    x = model.point(f)
    tangent = f.minorant(x)
    with single_blas():
        gradient: Any = tangent.gradient
        lowered = gradient.scaled(1.0 / unit.rows, 1.0 / unit.cols)
        vertex, support, _ = spectral.oracle(lowered, problem.p, radius, small=BOUND_SIDE)
    return relative(f, f.value(x), tangent.lower(problem.ball(radius), support)), vertex


def _extended(problem: Problem, model: Factors, vertex: Any, rank: int) -> Factors:
    """The model with the components of the vertex from its own number on."""
    left, right = vertex.factors()
    more = slice(len(model.sigma), rank)
    left = np.concatenate([model.sides.lefts, left[:, more] / problem.unit.rows[:, None]], axis=1)
    right = np.concatenate([model.sides.rights, right[:, more] / problem.unit.cols[:, None]], axis=1)
    return Factors.of_sides(problem.f, *balanced(model.sides.with_factors(left, right), problem.unit))


def _at_the_boundary(problem: Problem, model: Factors, radius: float) -> Factors:
    """The model scaled to the radius where it lies outside, or where its value falls by it."""
    f, inside = problem.f, model.inside(problem.p, radius)
    norm = inside.norm(problem.p)
    if not 0.0 < norm < radius:
        return inside
    grown = radius / norm * (1.0 - 1e-12)
    return min((inside, inside.stretched(grown)), key=lambda s: f.value(s.point(f)))
