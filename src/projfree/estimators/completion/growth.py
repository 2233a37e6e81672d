r"""More components for a certificate: the answer of the sweeps, grown along the gradient's own singular vectors.

For p > 1 the minimiser over the ball is the oracle's vertex of its own gradient, so it has as many components as that
gradient, and real spectra are flat: an answer of few components is far from the convex minimum however good it is.
The components that it lacks are close to those of the vertex; a few sweeps settle them. For p = 1 the components
that are missing are those along which the gradient is larger than along the ones that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from projfree.algebra import LowRank
from projfree.deadline import expired, unhurried
from projfree.estimators.completion.convex_gap import CertifiedModel, certified, relative
from projfree.estimators.completion.convex_problem import ConvexProblem
from projfree.estimators.completion.factors import Factors
from projfree.numerics.krylov import krylov
from projfree.numerics.lp_norm import conjugate, norming
from projfree.numerics.subspace import BOUND_SIDE, EVERY_SIDE, Spectrum
from projfree.run import Status
from projfree.runtime import single_blas
from projfree.solvers.alternating import balanced

#: A round multiplies the components by this, up to the most that sweeps can bear, and sweeps so often.
MORE, MOST_RANK, SWEEPS = 8, 640, 6
#: The part of the radius that new components get for p = 1, how much larger their singular values must be, and the
#: dimensions of the space that they are looked for in; for p > 1 this is so many times the components that are wanted.
PART, LARGER, DIMENSIONS, ROOM = 0.02, 1e-3, 100, 1.25
#: Rounds go on while the gap falls below this part of the last one, and end a little below the tolerance.
FALLING, BELOW = 0.9, 0.95


class Grown(NamedTuple):
    """A model, the strength of its penalty, and its sharp certificate where the gap looked small enough for one.

    ``ended`` says whether a callback has ended the sweeps.
    """

    factors: Factors
    strength: float
    proof: CertifiedModel | None
    ended: bool = False


def worth_growing(problem: ConvexProblem) -> bool:
    """Whether the convex solvers work with a leading part of the spectrum, while the whole of it can be had."""
    return EVERY_SIDE < min(problem.f.shape) <= BOUND_SIDE


def grow(
    problem: ConvexProblem,
    model: Factors,
    strength: float,
    radius: float,
    tol: float,
    callbacks: Sequence[Callable[[Any], bool | None]] = (),
) -> Grown:
    """The model with as many components as the tolerance needs, or the deadline and callbacks allow."""
    best, least, ended = Grown(model, strength, None), np.inf, False
    if not 0 < len(model.sigma) <= MOST_RANK:
        return best
    while not expired():
        model = _at_the_boundary(problem, model, radius)
        gap, more = _looked_at(problem, model, radius)
        proof = certified(problem, model, radius) if gap <= BELOW * tol else None
        gap = gap if proof is None else proof.relative_gap
        falling, rank = gap < FALLING * least, len(model.sigma)
        best, least = (Grown(model, strength, proof), gap) if gap < least else (best, least)
        wanted = min(MORE * rank, MOST_RANK, rank + more.rank)
        if gap <= BELOW * tol or ended or not (falling or wanted > rank):
            break
        if wanted > rank:
            model = _extended(problem, model, more, wanted)
        begun = problem.state(model, strength)
        swept = problem.within(len(model.sigma), radius, begun, max_iter=SWEEPS, callbacks=callbacks)
        state, status = swept.uninterrupted()
        model, strength = Factors.of(problem.f, state).double(problem.unit), state.strength
        ended = status is Status.CALLBACK
    if model is not best.factors and expired():  # nobody has looked at the last sweeps
        best = min(best, Grown(model.inside(problem.p, radius), strength, None), key=lambda one: _value(problem, one))
    return best._replace(ended=ended)


def _value(problem: ConvexProblem, one: Grown) -> float:
    """The value of a model with its best offsets, for which there is always time."""
    with unhurried():
        return float(problem.f.value(one.factors.point(problem.f)))


def _looked_at(problem: ConvexProblem, model: Factors, radius: float) -> tuple[float, LowRank]:
    """A relative gap that a model has at the least, and the components that it lacks, most important first."""
    f, unit = problem.f.open(), problem.unit
    x = model.point(f)
    tangent, w, value = f.minorant(x), cast("Any", x.w), f.value(x)
    with single_blas():
        gradient: Any = tangent.gradient
        lowered = gradient.scaled(1.0 / unit.rows, 1.0 / unit.cols)
        level = (tangent.constant - tangent(w)) / max(model.norm(1.0), 1e-300)
        more, least = _lacking(lowered, problem.p, radius, len(model.sigma), level)
    return relative(f, value, tangent.lower(problem.ball(radius), least)), more


def _lacking(lowered: Any, p: float, radius: float, rank: int, level: float) -> tuple[LowRank, float]:
    """Components along the singular vectors of a gradient for a model of a rank, and a lower bound on the support."""
    wanted = min(MORE * rank, MOST_RANK)
    if p == 1.0:
        found = krylov(lowered, DIMENSIONS)
        return _steeper(found, level, radius), radius * found.norm(np.inf)
    if wanted <= rank:
        return LowRank(lowered.shape, ()), 0.0
    found = krylov(lowered, int(ROOM * wanted))
    root = np.sqrt(radius * norming(found.values[None, :], p)[0])[rank:]
    more = LowRank.of(-found.left[:, rank:] * root, found.right[:, rank:] * root)
    return more, radius * found.norm(conjugate(p))


def _steeper(found: Spectrum, level: float, radius: float) -> LowRank:
    """Small components along the singular vectors of a gradient whose values are above a level."""
    above = found.values > level * (1.0 + LARGER)
    extra = found.values[above] - level
    root = np.sqrt(PART * radius * extra / max(float(extra.sum()), 1e-300))
    return LowRank.of(-found.left[:, above] * root, found.right[:, above] * root)


def _extended(problem: ConvexProblem, model: Factors, more: LowRank, rank: int) -> Factors:
    """The model with so many components, the further ones from those that it lacks."""
    left, right = (factor[:, : rank - len(model.sigma)] for factor in more.factors())
    left = np.concatenate([model.sides.lefts, left / problem.unit.rows[:, None]], axis=1)
    right = np.concatenate([model.sides.rights, right / problem.unit.cols[:, None]], axis=1)
    return Factors.of_sides(problem.f, *balanced(model.sides.with_factors(left, right), problem.unit))


def _at_the_boundary(problem: ConvexProblem, model: Factors, radius: float) -> Factors:
    """The model scaled to the radius where it lies outside, or where its value falls by it."""
    f, inside = problem.f, model.inside(problem.p, radius)
    norm = inside.norm(problem.p)
    if not 0.0 < norm < radius:
        return inside
    grown = radius / norm * (1.0 - 1e-12)
    return min((inside, inside.stretched(grown)), key=lambda s: f.value(s.point(f)))
