# mypy: disallow-untyped-decorators=False
r"""The point that balances a distance and a norm: :math:`\min_x \tfrac12 \|x - z\|_2^2 + t \|x\|_p`, compiled.

It is zero where the dual norm of z is at most t. Otherwise, for p = 2, z is shortened; for p = inf its largest entries
are cut to one size; for other p, with :math:`N = \|x\|_p` and :math:`y = |x|/N`,

.. math:: N y_j + t y_j^{p-1} = |z_j|, \qquad \sum_j y_j^p = 1 .

All :math:`y_j` fall as N grows, so that N is found by a search in a bracket.
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.numerics.compilation import compiled

#: Rounds of the searches at most; 3 to 10 are usual. They end at steps of this part of the unknown.
ROUNDS, CLOSE = 100, 1e-14


@compiled(error_model="numpy")
def shrink(z: Array, t: float, p: float) -> None:
    """Put the minimiser for all entries of a matrix in its place."""
    if t == 0.0:
        return
    if p == 2.0:
        norm = math.sqrt(np.sum(z * z))
        z *= 1.0 - t / norm if norm > t else 0.0
    elif p == math.inf:
        _cut(z, t)
    else:
        _bend(z, t, p)


@compiled(error_model="numpy")
def project_groups(z: Array, first: Array, costs: Array, radius: float, p: float) -> Array:
    r"""The projection onto :math:`\sum_b \text{costs}_b \|x_b\|_p \le \text{radius}` from outside.

    Groups are neighbouring columns; ``first`` holds where each begins and where the last one ends. The multiplier of
    the radius is searched for by secants that cannot leave its bracket (the Illinois method).
    """
    low, high, over, under = 0.0, 0.0, _sum(z, first, costs, p) - radius, -radius
    for b in range(len(costs)):
        block = z[:, first[b] : first[b + 1]]
        high = max(high, _norm(block, 1.0 if p == math.inf else p / (p - 1.0)) / costs[b])
    near, last = z.copy(), 0
    for _ in range(ROUNDS):
        level = high - under * (high - low) / (under - over)
        near[:] = z
        for b in range(len(costs)):
            shrink(near[:, first[b] : first[b + 1]], level * costs[b], p)
        excess = _sum(near, first, costs, p) - radius
        if abs(excess) <= CLOSE * radius or not low < level < high:
            break
        if excess > 0.0:
            low, over, under, last = level, excess, under * (0.5 if last == 1 else 1.0), 1
        else:
            high, under, over, last = level, excess, over * (0.5 if last == -1 else 1.0), -1
    return near


@compiled(error_model="numpy")
def _sum(z: Array, first: Array, costs: Array, p: float) -> float:
    total = 0.0
    for b in range(len(costs)):
        total += costs[b] * _norm(z[:, first[b] : first[b + 1]], p)
    return total


@compiled(error_model="numpy")
def _cut(z: Array, t: float) -> None:
    """P = inf: what is cut off sums up to t; a filter removes entries until all that are left are cut."""
    high, number = -t, 0
    for a in z.flat:
        high, number = high + abs(a), number + 1
    if high <= 0.0:
        z[:] = 0.0
        return
    high /= number
    for _ in range(z.size):
        total, left = -t, 0
        for a in z.flat:
            if abs(a) > high:
                total, left = total + abs(a), left + 1
        if left == number or left == 0:
            break
        high, number = total / left, left
    for c in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[c, j] = min(max(z[c, j], -high), high)


@compiled(error_model="numpy")
def _bend(z: Array, t: float, p: float) -> None:
    """Other p: Newton's method for N, in a bracket."""
    if _norm(z, p / (p - 1.0)) <= t:
        z[:] = 0.0
        return
    low, high = 0.0, _norm(z, p)
    N = max(high - t, 0.5 * high)
    for _ in range(ROUNDS):
        value, slope = -1.0, 0.0
        for a in z.flat:
            y, rate = _entry(abs(a), N, t, p)
            value += y**p
            slope += p * y**p * rate
        low, high = (N, high) if value > 0.0 else (low, N)
        new = N + value / slope if slope > 0.0 else low
        new = new if low < new < high else 0.5 * (low + high)
        small = abs(new - N) <= CLOSE * N
        N = new
        if small:
            break
    for c in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[c, j] = math.copysign(N * _entry(abs(z[c, j]), N, t, p)[0], z[c, j])


@compiled(error_model="numpy")
def _entry(a: float, N: float, t: float, p: float) -> tuple[float, float]:
    """The root y of ``N y + t y^(p-1) = a``, and the relative speed at which it falls as N grows.

    Newton's method falls onto it from the right, in y or in its power, whichever makes the left side convex.
    """
    if a == 0.0:
        return 0.0, 0.0
    power = p - 1.0 if p >= 2.0 else 1.0 / (p - 1.0)
    first, second = (N, t) if p >= 2.0 else (t, N)
    v = min(a / first, (a / second) ** (1.0 / power))
    for _ in range(ROUNDS):
        bent = second * v ** (power - 1.0)
        step = (first * v + bent * v - a) / (first + power * bent)
        v -= step
        if step <= CLOSE * v:
            break
    y = v if p >= 2.0 else v**power
    steep = N + (p - 1.0) * t * y ** (p - 2.0) if p >= 2.0 else N + (p - 1.0) * t * v / y
    return y, 1.0 / steep


@compiled(error_model="numpy")
def _norm(z: Array, p: float) -> float:
    """The norm of all entries, which are divided by the largest one before they are raised to a power."""
    top, total = 0.0, 0.0
    for a in z.flat:
        top = max(top, abs(a))
    if top == 0.0 or p == math.inf:
        return top
    for a in z.flat:
        total += (abs(a) / top) ** p
    return float(top * total ** (1.0 / p))
