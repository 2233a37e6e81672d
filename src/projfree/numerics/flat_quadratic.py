"""A quadratic over a `FlatBall`, by descent that finds the face and Newton steps that end on it."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.flat_boxes import Boxes
from projfree.numerics.flat_descent import Descent, FlatMinimum
from projfree.numerics.flat_entries import FlatEntries
from projfree.numerics.flat_groups import Groups
from projfree.numerics.flat_powers import Powers
from projfree.numerics.symmetric import Formed, Symmetric
from projfree.numerics.without_faces import without_faces

#: A gap of so many roundings is not worth another method.
FEW = 32.0


def minimise_flat(
    H: Symmetric, b: Array, ball: FlatBall, start: Array, level: float, share: float = 0.0
) -> FlatMinimum:
    r"""The minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over the set.

    Parameters
    ----------
    H : Symmetric
        Acts on each column of w.
    b, start : array of shape (m,) or (m, k)
        Groups are neighbours.
    level : float
        A guess at the multiplier.
    share : float
        It may end when the gap is this part of what it is at the start.
    """
    kind = _kind(ball)
    descent = kind(H, b, ball, start, level)
    goal = share * descent.found().gap
    best = descent.solve(goal)
    good = max(goal, FEW * best.floor)
    if H.formed is None or best.gap <= good or expired():
        return best
    for near in without_faces(H.formed, b, ball, best.w):  # a degenerate face, or a flat minimum inside
        again = kind(H, b, ball, near, ball.level(H.formed @ near - b)).solve(goal)
        best = again if again.gap < best.gap else best
        if best.gap <= good or expired():
            break
    return best


def minimise_penalised(H: Array, b: Array, start: Array, level: float, *, rows: bool) -> Array:
    r"""The minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle + \lambda \sum_b \|w_b\|`.

    Parameters
    ----------
    H, b, start
        As for `minimise_flat`.
    level : float
        :math:`\lambda`, positive.
    rows : bool
        Whether the rows of w are the groups, and not its entries.
    """
    m = len(b)
    ball = FlatBall(1.0, np.ones(m if rows else b.shape), np.arange(m) if rows else None)
    descent = (Groups if rows else FlatEntries)(Formed(H), b, ball, start, level)
    descent.fixed = True
    return descent.settle()


def _kind(ball: FlatBall) -> type[Descent]:
    """What the faces of the set are like."""
    if ball.groups is None:
        return FlatEntries
    if ball.exponent == 2.0:
        return Groups
    return Boxes if math.isinf(ball.exponent) else Powers
