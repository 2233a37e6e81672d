r"""Exact minimisers of convex quadratics over l_p balls."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.fista import project_descent
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.group_l1_qp import Columns, minimize_group_l1
from projfree.numerics.linear_systems import Product, cholesky_inverse, is_null, newton_step
from projfree.numerics.lp_norm import conjugate, lp_norm
from projfree.numerics.mirror_newton import minimise_on_mirror_curve
from projfree.numerics.projections import project
from projfree.numerics.secular import Solution, Unit, minimise_secular

#: Below this exponent the minimiser over the l_1 ball is the better start.
NEARLY_ONE = 1.15
#: A gap, next to that at zero, at which a method has failed and projected gradients are tried.
POOR = 1e-3
_EPS = float(np.finfo(np.float64).eps)


def minimise_quadratic(H: Array, b: Array, p: float, radius: float, start: Array | None = None) -> Solution:
    r"""Minimise :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over :math:`\|w\|_p \le r`.

    Parameters
    ----------
    H : array of shape (d, d)
        Symmetric and positive semidefinite up to rounding; it may be singular. It must not change later, for its
        spectral decomposition serves further calls: with it ``p = 2`` costs O(d^2).
    b : array of shape (d,) or (d, k)
        H acts on columns, the norm is that of all entries.
    p : float
        In ``[1, inf]``.
    radius : float
        Positive.
    start : array, optional
        The answer to a similar problem: a nearby radius, or a nearby H and b.

    Notes
    -----
    ``p = 2`` is a secular equation in the spectrum. Elsewhere the minimiser without the ball comes first; where it
    lies outside, ``p = 1`` and ``p = inf`` are active-set methods, and everything between is Newton's method along the
    mirror curve. Cost: about ten Cholesky factorisations. Where rounding or overflow keeps a method from a good point,
    accelerated projected gradients go on from the best one.
    """
    if not b.any() or radius == 0.0:
        return Solution(np.zeros_like(b), lp_norm(b, conjugate(p)), 0.0, 0.0, 0)
    columns = b.reshape(len(b), -1)
    unit = Unit(H, columns, p, radius)
    scale = unit.size * radius
    if not np.logical_and.reduce(np.isfinite(unit.H), axis=None):
        # The slope at zero is nothing compared with the curvature.
        return Solution(np.zeros_like(b), unit.size, scale, scale, 0)
    found = _minimise(unit, None if start is None else start.reshape(columns.shape) / radius)
    return Solution(
        (radius * found.w).reshape(b.shape),
        unit.size * found.multiplier,
        found.gap * scale,
        found.floor * scale,
        found.steps,
    )


def _minimise(unit: Unit, start: Array | None) -> Solution:
    if unit.p == 2.0 and (found := minimise_secular(unit)).exact:
        return found
    inverse = cholesky_inverse(unit.H)
    pseudo = _pseudo_inverse(unit) if inverse is None else inverse
    inside = _least_norm(unit, pseudo)
    if inside is not None and inside.gap <= 2.0 * inside.floor:
        return inside
    if unit.p == 1.0:
        found = _minimise_l1(unit, start)
    elif math.isinf(unit.p):
        found = _minimise_box(unit, start)
    elif unit.p != 2.0:
        if start is None and unit.p < NEARLY_ONE:
            start = _minimise_l1(unit.with_norm(1.0), None).w
        plane = pseudo if inverse is None else None
        found = minimise_on_mirror_curve(unit, start, plane)
        if start is not None and not found.exact and not expired():  # the start may have led astray
            cold = minimise_on_mirror_curve(unit, None, plane)
            found = replace(cold if cold.gap < found.gap else found, steps=found.steps + cold.steps)
    if inside is not None and inside.gap < found.gap:
        found = inside
    if found.gap <= POOR or found.exact or expired():
        return found
    descended = unit.check(
        project_descent(unit.H, unit.b, lambda y: project(y, unit.p, 1.0), found.w), None, found.steps
    )
    return descended if descended.gap < found.gap else found


def _pseudo_inverse(unit: Unit) -> Product:
    """The product of the pseudo-inverse of a singular matrix with the columns of another one."""
    h, V = unit.eigen()
    some = ~is_null(h)
    V, h = V[:, some], h[some, None]
    return lambda side: V @ ((V.T @ side) / h)


def _least_norm(unit: Unit, inverse: Product) -> Solution | None:
    """The minimiser of least Euclidean norm without the ball, refined while that halves the gap; None outside of it."""
    best, x, steps = None, inverse(unit.b), 1
    while lp_norm(x, unit.p) <= 1.0 + math.sqrt(_EPS):  # just outside, the gap of the point that is scaled back decides
        new = unit.check(x, None, steps)
        if best is not None and not new.gap < 0.5 * best.gap:
            break
        best, x, steps = new, x + inverse(unit.b - unit.H @ x), steps + 1
    return best


def _minimise_l1(unit: Unit, start: Array | None) -> Solution:
    """The minimiser over the l_1 ball."""
    ball, near = FlatBall(1.0, np.ones_like(unit.b)), np.zeros_like(unit.b) if start is None else start
    slope = unit.H @ near - unit.b
    level = (1.0 if near.any() else 0.5) * ball.level(slope)
    found = minimize_group_l1(Columns.of_matrix(unit.H, unit.b.shape[1]), slope, ball, near, level)
    return unit.check(found.w, None, found.rounds)


def _minimise_box(unit: Unit, start: Array | None) -> Solution:
    """The minimiser over the unit ball of l_inf; columns are problems of their own."""
    x = np.sign(unit.b) if start is None else np.clip(start, -1.0, 1.0)
    columns = [_minimise_box_column(unit.H, unit.b[:, j], x[:, j]) for j in range(x.shape[1])]
    return unit.check(np.stack([w for w, _ in columns], axis=1), None, sum(steps for _, steps in columns))


def _minimise_box_column(H: Array, b: Array, x: Array) -> tuple[Array, int]:
    """The minimiser over the box from -1 to 1, and the number of steps.

    Newton's method on the free entries, the step bent along the box: an entry is held where it lies on a bound and both
    the gradient or Newton's step push it outwards; the others take the step, clipped if that is lower than stopping at
    the first bound. The value decreases with every step, and once the right entries are held one step is exact
    (Bertsekas 1982, Projected Newton methods).
    """
    best, least, idle, steps, sums = x, math.inf, 0, 0, np.abs(H).sum(axis=1)
    noise = 4 * _EPS * float(np.max(np.abs(b) + sums))
    while steps < 4 * len(b) + 50:
        steps += 1
        g = H @ x - b
        gap = float(g @ x + np.abs(g).sum())
        best, least, idle = (x, gap, 0) if gap < least else (best, least, idle + 1)
        step, whole = _box_newton_step(H, x, g, noise)
        floor = 0.5 * _EPS * float(np.abs(b).sum() + sums @ np.abs(x))
        if least <= floor or idle > len(b) or not step.any() or expired():
            break
        on = step != 0.0
        room = (np.copysign(1.0, step[on]) - x[on]) / step[on]
        length = min(float(room.min()), 1.0) if whole else float(room.min())
        stopped = np.clip(x + length * step, -1.0, 1.0)
        first = np.flatnonzero(on)[room <= length]
        stopped[first] = np.copysign(1.0, step[first])  # on the bound itself, not within rounding of it
        clipped = np.clip(x + (step if whole else 2.0 * float(room.max()) * step), -1.0, 1.0)
        x = x + min(stopped - x, clipped - x, key=lambda move: float(g @ move + 0.5 * move @ (H @ move)))
    return best, steps


def _box_newton_step(H: Array, x: Array, g: Array, noise: float) -> tuple[Array, bool]:
    """Newton's step of the entries that are free to take it, and whether it ends at a minimiser."""
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
