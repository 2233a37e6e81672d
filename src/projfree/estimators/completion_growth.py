r"""More components for a certificate: the answer of the sweeps, grown along the gradient's own singular vectors.

For p > 1 the minimiser over the ball is the oracle's vertex of its own gradient, so it has as many components as that
gradient, and real spectra are flat: an answer of few components is far from the convex minimum however good it is.
The components that it lacks are close to those of the vertex; a few sweeps settle them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from projfree.data.factored_entries import FactoredEntriesData
from projfree.estimators.alternating import Alternating, Factors
from projfree.estimators.completion_fit import ball_of, fitted_into, objective_of, relative, sweeps
from projfree.numerics.subspace import BOUND_SIDE, EVERY_SIDE
from projfree.runtime import single_blas
from projfree.sets import spectral

#: A round multiplies the components by this, up to the most that sweeps can bear, and sweeps so often.
MORE, MOST_RANK, SWEEPS = 2, 320, 6
#: Rounds go on while the gap falls below this part of the last one, and end a little below the tolerance.
FALLING, BELOW = 0.9, 0.95


def worth_growing(problem: Alternating) -> bool:
    """Whether the convex solvers work with a leading part of the spectrum, while the whole of it can be had."""
    return problem.p > 1.0 and EVERY_SIDE < min(problem.pattern.shape) <= BOUND_SIDE


def grow(
    problem: Alternating,
    data: FactoredEntriesData,
    state: Factors,
    strength: float,
    radius: float,
    tol: float,
    time_limit: float | None = None,
    callbacks: Sequence[Callable[[Any], bool | None]] = (),
) -> tuple[Factors, float]:
    """The state with as many components as the tolerance needs, or a limit allows, and the strength of its penalty."""
    f, ball, begun = objective_of(problem, data), ball_of(problem, radius), time.monotonic()
    best, least = (state, strength), np.inf
    if not 0 < len(state.sigma) <= MOST_RANK:
        return best
    while True:
        state = _at_the_boundary(f, problem, state, radius)
        x = f.point(state.matrix, state.offsets)
        tangent = f.minorant(x)
        with single_blas():
            gradient: Any = tangent.gradient
            lowered = gradient.scaled(1.0 / problem.row_weights, 1.0 / problem.col_weights)
            vertex, support, _ = spectral.oracle(lowered, problem.p, radius, small=BOUND_SIDE)
        gap = relative(f, f.value(x), tangent.lower(ball, support))
        falling, rank = gap < FALLING * least, len(state.sigma)
        best, least = ((state, strength), gap) if gap < least else (best, least)
        wanted = min(MORE * rank, MOST_RANK, vertex.rank)
        left = np.inf if time_limit is None else time_limit - (time.monotonic() - begun)
        if gap <= BELOW * tol or left <= 0.0 or not (falling or wanted > rank):
            break
        if wanted > rank:
            state = _extended(problem, state, vertex, wanted)
        given = (problem, state, strength)
        state, strength, _ = sweeps(*given, count=SWEEPS, radius=radius, callbacks=callbacks, time_limit=left)
    return best


def _extended(problem: Alternating, state: Factors, vertex: Any, rank: int) -> Factors:
    """The state with the components of the vertex from its own number on."""
    left, right = vertex.factors()
    more = slice(len(state.sigma), rank)
    left = np.concatenate([state.left, left[:, more] / problem.row_weights[:, None]], axis=1)
    right = np.concatenate([state.right, right[:, more] / problem.col_weights[:, None]], axis=1)
    return problem.balanced(replace(state, left=left, right=right, sigma=np.ones(rank)))


def _at_the_boundary(f: Any, problem: Alternating, state: Factors, radius: float) -> Factors:
    """The state scaled to the radius where it lies outside, or where its value falls by it."""
    inside = fitted_into(state, problem.p, radius)
    norm = inside.norm(problem.p)
    if not 0.0 < norm < radius:
        return inside
    grown = radius / norm * (1.0 - 1e-12)
    larger = replace(inside, left=inside.left * grown, sigma=inside.sigma * grown)
    return min((inside, larger), key=lambda s: f.value(f.point(s.matrix, s.offsets)))
