# mypy: disallow-untyped-decorators=False
r"""Compiled coordinate descent for quadratics with a penalty on entries or on groups of them.

The quadratic is :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` for each of k columns w that share H.
Columns are held as rows of arrays of shape ``(k, m)``, so that an update of the slope :math:`Hw - b` reads neighbours.
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.numerics.compilation import FAST, compiled
from projfree.numerics.group_prox import shrink

#: Rounds end early once no entry moves by more than this part of itself: the face is then solved for exactly.
SETTLED = 1e-2


@compiled(error_model="numpy", fastmath=FAST)
def descend_entries(H: Array, slope: Array, w: Array, level: float, costs: Array, signed: bool, rounds: int) -> None:
    """Minimise over one entry after the other, in place, with the penalty ``level * costs * |w|``.

    The first round visits all entries, later ones those that are not zero.
    """
    k, m = w.shape
    for turn in range(rounds):
        moved = False
        for c in range(k):
            for j in range(m):
                old, h = w[c, j], H[j, j]
                if h <= 0.0 or (turn > 0 and old == 0.0):
                    continue
                z, t, new = h * old - slope[c, j], level * costs[c, j], 0.0
                if z > t:
                    new = (z - t) / h
                elif signed and z < -t:
                    new = (z + t) / h
                step = new - old
                if step != 0.0:
                    w[c, j] = new
                    moved = moved or abs(step) > SETTLED * abs(new)
                    for i in range(m):
                        slope[c, i] += step * H[j, i]
        if not moved:
            return


@compiled(error_model="numpy", fastmath=FAST)
def descend_groups(
    H: Array,
    slope: Array,
    w: Array,
    level: float,
    costs: Array,
    exponent: float,
    first: Array,
    largest: Array,
    rounds: int,
) -> None:
    """The same for groups of neighbouring entries of all columns, with the penalty ``level * costs * norm``.

    ``level`` may be zero. ``exponent`` is that of the norm. ``first`` holds where each group begins and where the last
    one ends, ``largest`` at least the largest eigenvalue of each diagonal block: an update minimises an upper bound on
    the function.
    """
    k, m = w.shape
    steps = np.empty_like(w)
    for turn in range(rounds):
        moved = False
        for b in range(len(largest)):
            h, own, change = largest[b], 0.0, 0.0
            for c in range(k):
                for j in range(first[b], first[b + 1]):
                    own += w[c, j] ** 2
                    steps[c, j] = w[c, j] - slope[c, j] / h
            if h <= 0.0 or (turn > 0 and own == 0.0):
                continue
            shrink(steps[:, first[b] : first[b + 1]], level * costs[b] / h, exponent)
            for c in range(k):
                for j in range(first[b], first[b + 1]):
                    new = steps[c, j]
                    steps[c, j] = new - w[c, j]
                    w[c, j] = new
                    change += steps[c, j] ** 2
            if change == 0.0:
                continue
            moved = moved or change > SETTLED**2 * own
            for c in range(k):
                for j in range(first[b], first[b + 1]):
                    step = steps[c, j]
                    for i in range(m):
                        slope[c, i] += step * H[j, i]
        if not moved:
            return
