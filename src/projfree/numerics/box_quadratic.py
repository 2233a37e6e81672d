r"""A quadratic over the box :math:`|x_i| \le 1`: Newton's method on the free entries, the step bent along the box.

An entry is held where it lies on a bound and both the gradient or Newton's step push it outwards; the others take the
step, clipped if that is lower than stopping at the first bound. The value decreases with every step, and once the
right entries are held one step is exact (Bertsekas, 1982, Projected Newton methods).
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.pseudo_inverse import newton_step
from projfree.numerics.secular import Found, Unit

_EPS = float(np.finfo(np.float64).eps)
_IDLE = 5  # steps without progress after which only rounding is left


def minimise_box(unit: Unit, start: Array | None = None) -> Found:
    """The minimiser over the unit ball of l_inf; columns are problems of their own."""
    x = np.sign(unit.b) if start is None else np.clip(start, -1.0, 1.0)
    columns = [_column(unit.H, unit.b[:, j], x[:, j]) for j in range(x.shape[1])]
    best = np.stack([c for c, _ in columns], axis=1)
    return unit.check(best, None, sum(steps for _, steps in columns))


def _column(H: Array, b: Array, x: Array) -> tuple[Array, int]:
    best, least, idle, steps, rows = x, np.inf, 0, 0, np.abs(H).sum(axis=1)
    noise = 4.0 * _EPS * float(np.max(np.abs(b) + rows))
    for _ in range(4 * len(b) + 50):
        steps += 1
        g = H @ x - b
        gap = float(g @ x + np.abs(g).sum())
        if gap < least:
            best, least = x, gap
        way, whole = _direction(H, x, g, noise)
        floor = 0.5 * _EPS * float(np.abs(b).sum() + rows @ np.abs(x))
        if least <= floor or idle > _IDLE or not way.any() or expired():
            break
        x, fall = _move(H, x, g, way, whole)
        idle = 0 if fall > 0.0 else idle + 1
    return best, steps


def _direction(H: Array, x: Array, g: Array, noise: float) -> tuple[Array, bool]:
    """Newton's step of the entries that are free to take it."""
    on = np.flatnonzero((np.abs(x) < 1.0) | (g * x > 0.0))
    way, whole = np.zeros_like(x), True
    while len(on):
        step, whole = newton_step(H[np.ix_(on, on)], g[on], noise)
        out = (np.abs(x[on]) == 1.0) & (step * x[on] > 0.0)
        if not out.any():
            way[on] = step
            break
        on = on[~out]
    return way, whole


def _move(H: Array, x: Array, g: Array, way: Array, whole: bool) -> tuple[Array, float]:
    """The lower of two points, the step up to the first bound and the clipped step, and the fall of the value."""
    on = way != 0.0
    room = (np.copysign(1.0, way[on]) - x[on]) / way[on]
    length = min(float(room.min()), 1.0) if whole else float(room.min())
    until = np.clip(x + length * way, -1.0, 1.0)
    first = np.flatnonzero(on)[room <= length]
    until[first] = np.copysign(1.0, way[first])  # on the bound itself, not within rounding of it
    clipped = np.clip(x + (way if whole else 2.0 * float(room.max()) * way), -1.0, 1.0)
    falls = [-float(g @ (new - x) + 0.5 * (new - x) @ (H @ (new - x))) for new in (until, clipped)]
    return (clipped, falls[1]) if falls[1] > falls[0] else (until, falls[0])
