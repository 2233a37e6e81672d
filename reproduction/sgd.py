# mypy: disallow-untyped-decorators=False
"""Projected stochastic gradient descent on least squares, compiled: as fast as a careful person writes it."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.numerics.compilation import FAST, compiled

#: Steps of Newton's method inside a projection, at most.
INNER, OUTER = 60, 60


@compiled(error_model="numpy", fastmath=FAST)
def project_lp(w: Array, p: float, radius: float, log_mu: float) -> float:
    r"""Project onto the l_p ball, 1 < p < 2, in place; ``log_mu`` is where the search begins, returned for the next.

    Each entry solves :math:`x + \mu x^{p-1} = |w|` by Newton's method in the logarithm of :math:`x^{p-1}`; the
    multiplier is found by Newton's method on the logarithm of the norm.
    """
    e, d = 1.0 / (p - 1.0), len(w)
    goal = p * math.log(radius)
    x = np.empty(d)
    for _ in range(OUTER):
        total, change = 0.0, 0.0
        mu = math.exp(log_mu)
        for i in range(d):
            a = abs(w[i])
            if a == 0.0:
                x[i] = 0.0
                continue
            log_a = math.log(a)
            tau = min(log_a / e, log_a - log_mu)
            for _ in range(INNER):
                first, second = math.exp(e * tau), mu * math.exp(tau)
                step = (math.log(first + second) - log_a) * (first + second) / (e * first + second)
                tau -= step
                if abs(step) <= 1e-13 * (1.0 + abs(tau)):
                    break
            x[i] = math.exp(e * tau)
            power = math.exp(tau)
            total += x[i] * power
            if x[i] > 0.0:
                change += power * power / (1.0 + mu * (p - 1.0) * power / x[i])
        off = math.log(total) - goal
        move = off * total / (p * mu * change)
        log_mu += min(max(move, -5.0), 5.0)
        if abs(move) <= 1e-12 * (1.0 + abs(log_mu)):
            break
    for i in range(d):
        w[i] = x[i] if w[i] > 0.0 else -x[i]
    return log_mu


@compiled(error_model="numpy", fastmath=FAST)
def descend(
    X: Array, y: Array, order: Array, c: float, power: float, p: float, radius: float, w: Array, places: Array
) -> tuple[Array, int]:
    """Take one step for each row of ``order`` with the step c / t^power; keep w after the steps in ``places``.

    Returns the kept points and how many steps had to project. A point inside the ball is its own projection.
    """
    d, kept, projections, log_mu = X.shape[1], np.empty((len(places), X.shape[1])), 0, 0.0
    place, edge = 0, radius**p
    for t in range(1, len(order) + 1):
        i = order[t - 1]
        u = 0.0
        for j in range(d):
            u += X[i, j] * w[j]
        eta = 2.0 * (u - y[i]) * (c if power == 0.0 else c / math.sqrt(t))
        square = 0.0
        for j in range(d):
            w[j] -= eta * X[i, j]
            square += w[j] * w[j]
        if p == 2.0:
            if square > edge:
                projections += 1
                scale = radius / math.sqrt(square)
                for j in range(d):
                    w[j] *= scale
        else:
            total = 0.0
            for j in range(d):
                total += abs(w[j]) ** p
            if total > edge:
                projections += 1
                log_mu = project_lp(w, p, radius, log_mu)
        if place < len(places) and t == places[place]:
            for j in range(d):
                kept[place, j] = w[j]
            place += 1
    return kept, projections
