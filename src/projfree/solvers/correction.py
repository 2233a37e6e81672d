"""Corrections of an active set: the quadratic model of a function over the hull of few vertices."""

from __future__ import annotations

import math

import numpy as np

from projfree.algebra import UNIT, Point, inner, zeros
from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.solvers.active_set import ActiveSet
from projfree.solvers.model_step import ARMIJO, falls_enough

#: Values within so many roundings of each other tell nothing; the slope at the end of a step then does.
NOISE = 64.0
#: The vertices whose curvature one read forms have at most so many entries as arrays (256 MB); corrections are made
#: while there are at most so many vertices, and no more than fit in so many such reads.
MOST_ENTRIES, MOST_VERTICES, MOST_PARTS = 1 << 25, 2_000, 4


def has_products(f: SmoothFunction) -> bool:
    """Whether the curvature of a function among points is known."""
    return f.hessian(Point(zeros(f.shape))) is not None


def correctable(f: SmoothFunction, vertices: int) -> bool:
    """Whether the curvature among so many vertices is known and can be formed in good time."""
    return has_products(f) and vertices <= min(MOST_VERTICES, MOST_PARTS * _part(f))


def _part(f: SmoothFunction) -> int:
    """How many vertices are looked at together with as many others."""
    return max(1, MOST_ENTRIES // (2 * math.prod(f.shape)))


def curvature(f: SmoothFunction, x: Point, active: ActiveSet, known: Array | None) -> Array:
    """The products of all vertices through the Hessian at ``x``, given those of the first ones if they are known."""
    first_new, size, everyone = 0 if known is None else len(known), _part(f), len(active)
    K, H = np.zeros((everyone, everyone)), f.hessian(x)
    assert H is not None
    if known is not None:
        K[:first_new, :first_new] = known
    for first in range(first_new, everyone, size):
        last = min(first + size, everyone)
        fresh = _points(f, active, first, last)
        for start in range(0, max(first, 1), size):  # with the vertices before them, where there are any
            stop = min(start + size, first)
            products = H.products(fresh, _points(f, active, start, stop))
            K[first:last, first:last] = products[:, : len(fresh)]
            K[first:last, start:stop] = products[:, len(fresh) :]
            K[start:stop, first:last] = products[:, len(fresh) :].T
    return np.asarray(0.5 * (K + K.T))


def _points(f: SmoothFunction, active: ActiveSet, first: int, last: int) -> tuple[Point, ...]:
    return tuple(f.point(active.vertex(j)) for j in range(first, last))


def falls(here: Evaluation, there: Evaluation, expected: float, *, convex: bool) -> bool:
    """Whether a step brings enough of what was expected: by the values or, where rounding hides that, by the slope."""
    noise = UNIT * abs(here.value)
    if falls_enough(there.value, here.value, expected):
        return True
    slope = inner(there.slope.gradient, there.point.w - here.point.w)
    return convex and there.value <= here.value + NOISE * noise and slope <= ARMIJO * expected
