r"""Exact minimisation of convex quadratics over l_p balls."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.flat_ball import GroupL1Ball
from projfree.numerics.group_l1_qp import Columns, minimize_group_l1
from projfree.numerics.linear_systems import Product, cholesky_inverse, is_null, newton_step
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.mirror_newton import minimise_on_mirror_curve
from projfree.numerics.secular import Solution, UnitQuadratic, minimise_secular

#: Below this exponent the minimiser over the l_1 ball is the default initial point.
NEARLY_ONE = 1.15
_EPS = float(np.finfo(np.float64).eps)


def minimise_quadratic(H: Array, b: Array, p: float, radius: float, start: Array | None = None) -> Array:
    r"""Minimise :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over :math:`\|w\|_p \le r`.

    Parameters
    ----------
    H : array of shape (d, d)
        Symmetric matrix, positive semidefinite up to rounding; it may be singular. It must not be modified later,
        because its spectral decomposition is cached: further calls with ``p = 2`` cost O(d^2).
    b : array of shape (d,) or (d, k)
        Linear term. H acts on its columns; the norm is that of all entries of w.
    p : float
        Exponent of the norm, in ``[1, inf]``.
    radius : float
        Radius of the ball.
    start : array, optional
        Solution of a similar problem: a similar radius, or similar H and b.

    Notes
    -----
    For ``p = 2`` the method solves the secular equation. Otherwise it first computes the unconstrained minimiser; if
    this is not in the ball, it uses active-set methods for ``p = 1`` and ``p = inf``, and Newton's method along the
    mirror curve for other exponents. Cost: about ten Cholesky factorisations.
    """
    if not b.any() or radius == 0.0:
        return np.zeros_like(b)
    columns = b.reshape(len(b), -1)
    problem = UnitQuadratic(H, columns, p, radius)
    if not np.isfinite(problem.H).all():  # the curvature is so large that the minimiser is zero up to rounding
        return np.zeros_like(b)
    found = _minimise(problem, None if start is None else start.reshape(columns.shape) / radius)
    return np.asarray((radius * found.x).reshape(b.shape))


def _minimise(problem: UnitQuadratic, start: Array | None) -> Solution:
    p = problem.p
    if p == 2.0 and (found := minimise_secular(problem)).exact:
        return found
    inverse = cholesky_inverse(problem.H)
    pseudo = _pseudo_inverse(problem) if inverse is None else inverse
    inside = _least_norm(problem, pseudo)
    if inside is not None and inside.gap <= 2.0 * inside.floor:
        return inside
    if p == 1.0:
        found = _minimise_l1(problem, start)
    elif math.isinf(p):
        found = _minimise_box(problem, start)
    elif p != 2.0:
        if start is None and p < NEARLY_ONE:
            start = _minimise_l1(problem, None).x
        plane = pseudo if inverse is None else None
        found = minimise_on_mirror_curve(problem, start, plane)
        if start is not None and not found.exact and not expired():  # `start` may be a bad one
            found = _better(found, minimise_on_mirror_curve(problem, None, plane))
    return found if inside is None else _better(found, inside)


def _better(one: Solution, other: Solution) -> Solution:
    return other if other.gap < one.gap else one


def _pseudo_inverse(problem: UnitQuadratic) -> Product:
    """Return a function that multiplies by the pseudo-inverse of the singular matrix H."""
    h, V = problem.eigen()
    some = ~is_null(h)
    V, h = V[:, some], h[some, None]
    return lambda side: V @ ((V.T @ side) / h)


def _least_norm(problem: UnitQuadratic, inverse: Product) -> Solution | None:
    """Return the unconstrained minimiser of smallest Euclidean norm, iteratively refined; None if not in the ball."""
    best, x = None, inverse(problem.b)
    while lp_norm(x, problem.p) <= 1.0 + math.sqrt(_EPS):  # `check` scales points just outside
        new = problem.check(x)
        if best is not None and not new.gap < 0.5 * best.gap:
            break
        best, x = new, x + inverse(problem.b - problem.H @ x)
    return best


def _minimise_l1(problem: UnitQuadratic, start: Array | None) -> Solution:
    """Return the minimiser over the unit ball of l_1, which is a subset of the ball of the problem."""
    H, b = problem.H, problem.b
    ball, near = GroupL1Ball(1.0, np.ones_like(b)), np.zeros_like(b) if start is None else start
    slope = H @ near - b
    level = (1.0 if near.any() else 0.5) * ball.level(slope)
    return problem.check(minimize_group_l1(Columns.of_matrix(H, b.shape[1]), slope, ball, near, level).w)


def _minimise_box(problem: UnitQuadratic, start: Array | None) -> Solution:
    """Return the minimiser over the unit ball of l_inf, computed separately for each column."""
    x = np.sign(problem.b) if start is None else np.clip(start, -1.0, 1.0)
    columns = [_minimise_box_column(problem.H, problem.b[:, j], x[:, j]) for j in range(x.shape[1])]
    return problem.check(np.stack(columns, axis=1))


def _minimise_box_column(H: Array, b: Array, x: Array) -> Array:
    """Return the minimiser over the box ``[-1, 1]``, by a projected Newton method.

    An entry is fixed if it is at a bound and the negative gradient or the Newton step points out of the box. The others
    take the step, either clipped to the box or shortened to end at the first bound, whichever has the lower value. The
    value decreases in every step; once the active set is correct, one step is exact (Bertsekas 1982, Projected Newton
    methods).
    """
    best, least, idle, sums = x, math.inf, 0, np.abs(H).sum(axis=1)
    noise = 4 * _EPS * float(np.max(np.abs(b) + sums))
    for _ in range(4 * len(b) + 50):
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
        stopped[first] = np.copysign(1.0, step[first])  # exactly at the bound, without rounding
        clipped = np.clip(x + (step if whole else 2.0 * float(room.max()) * step), -1.0, 1.0)
        x = x + min(stopped - x, clipped - x, key=lambda move: float(g @ move + 0.5 * move @ (H @ move)))
    return best


def _box_newton_step(H: Array, x: Array, g: Array, noise: float) -> tuple[Array, bool]:
    """Return the Newton step of the free entries, and whether it ends at a minimiser."""
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
