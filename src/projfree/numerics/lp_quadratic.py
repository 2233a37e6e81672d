r"""Exact minimisers of convex quadratics over l_p balls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.fista import project_descent
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.group_l1_qp import Columns, minimize_group_l1
from projfree.numerics.linear_systems import newton_step, pseudo_inverse
from projfree.numerics.lp_norm import conjugate, lp_norm
from projfree.numerics.mirror_newton import MirrorNewton
from projfree.numerics.projections import project
from projfree.numerics.secular import Found, Unit, minimise_secular

#: A spectral decomposition: eigenvalues in increasing order, and the matrix of their vectors.
Eigen = tuple[Array, Array]

_NEARLY_ONE = 1.15  # below it the minimiser over the l_1 ball is the better start
FEW = 32.0  # roundings that an exact solution may be off by
_POOR = 1e-3  # a gap, next to that at zero, at which a method has failed and another one is tried
_EPS = float(np.finfo(np.float64).eps)
_BOX_IDLE = 5  # steps without progress after which only rounding is left
_REFINED = 4  # refinements of the minimiser without the ball


@dataclass(frozen=True)
class Solution:
    r"""A minimiser, and the proof of how good it is.

    Attributes
    ----------
    w : ndarray
        The point, of norm at most the radius up to rounding.
    multiplier : float
        The dual norm of the gradient at ``w``, which is the multiplier of the radius.
    gap : float
        The Frank-Wolfe gap :math:`\langle g, w\rangle + r\|g\|_q` at ``w``: no point of the ball is lower by more.
    floor : float
        The rounding of that gap: a smaller one cannot be told from zero.
    steps : int
        Systems solved, or steps of whichever iteration was used.
    """

    w: Array
    multiplier: float
    gap: float
    floor: float
    steps: int

    @property
    def exact(self) -> bool:
        """Whether nothing but a few roundings is left of the gap."""
        return self.gap <= FEW * self.floor


def minimise_quadratic(
    H: Array,
    b: Array,
    p: float,
    radius: float,
    start: Array | None = None,
    eigen: Eigen | None = None,
) -> Solution:
    r"""Minimise :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over :math:`\|w\|_p \le r`.

    Parameters
    ----------
    H : array of shape (d, d)
        Symmetric and positive semidefinite up to rounding; it may be singular.
    b : array of shape (d,) or (d, k)
        H acts on columns, the norm is that of all entries.
    p : float
        In ``[1, inf]``.
    radius : float
        Positive.
    start : array, optional
        The answer to a similar problem: a nearby radius, or a nearby H and b.
    eigen : pair of arrays, optional
        The spectral decomposition of H, if it is at hand; with it ``p = 2`` costs O(d^2).

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
    finite = np.isfinite(unit.H)
    if not np.logical_and.reduce(finite, axis=None):  # the slope at zero is nothing compared with the curvature
        return Solution(np.zeros_like(b), unit.size, unit.size * radius, unit.size * radius, 0)
    found = _solve(unit, None if start is None else start.reshape(columns.shape) / radius, eigen)
    scale = unit.size * radius
    return Solution(
        (radius * found.x).reshape(b.shape), unit.size * found.pull, found.gap * scale, found.floor * scale, found.steps
    )


def _solve(unit: Unit, start: Array | None, eigen: Eigen | None) -> Found:
    if unit.p == 2.0 and (found := minimise_secular(unit, eigen)).gap <= FEW * found.floor:
        return found
    inverse, regular = pseudo_inverse(unit.H)
    free = inverse(unit.b)
    inside = least_norm(unit, inverse, free)
    if inside is not None and inside.gap <= 2.0 * inside.floor:
        return inside
    if unit.p == 1.0:
        found = _entries(unit, start)
    elif math.isinf(unit.p):
        found = minimise_box(unit, start)
    elif unit.p != 2.0:
        found = _mirrored(unit, start, None if regular else inverse)
    found = inside if inside is not None and inside.gap < found.gap else found
    return found if found.gap <= max(_POOR, FEW * found.floor) or expired() else _descended(unit, found)


def _entries(unit: Unit, start: Array | None) -> Found:
    """The minimiser over the l_1 ball."""
    ball, near = FlatBall(1.0, np.ones_like(unit.b)), np.zeros_like(unit.b) if start is None else start
    level = (1.0 if near.any() else 0.5) * ball.level(unit.H @ near - unit.b)
    found = minimize_group_l1(Columns.of_matrix(unit.H, unit.b.shape[1]), unit.b, ball, near, level)
    return unit.check(found.w, None, found.rounds)


def _mirrored(unit: Unit, start: Array | None, inverse: Callable[[Array], Array] | None) -> Found:
    """Newton's method along the mirror curve from a start, and once more without where it led astray."""
    if start is None and unit.p < _NEARLY_ONE:
        start = _entries(unit.of_norm(1.0), None).x
    newton = MirrorNewton(unit, inverse)
    found = newton.solve(start)
    if start is not None and found.gap > FEW * found.floor and not expired():
        cold = newton.solve()
        found = (cold if cold.gap < found.gap else found).after(found.steps + cold.steps)
    return found


def _descended(unit: Unit, found: Found) -> Found:
    """The better of ``found``, which is far from the minimum, and where projected gradients lead from there."""
    largest = float(np.linalg.eigvalsh(unit.H)[-1]) * (1.0 + 1e-12)
    x = project_descent(unit.H, unit.b, lambda y: project(y, unit.p, 1.0), found.x, largest)
    other = unit.check(x, None, found.steps)
    return other if other.gap < found.gap else found


def least_norm(unit: Unit, inverse: Callable[[Array], Array], x: Array) -> Found | None:
    """The minimiser of least Euclidean norm without the ball, ``x``, refined; None where it lies outside."""
    found = None
    for step in range(1, _REFINED + 1):
        x = x if step == 1 else x + inverse(unit.b - unit.H @ x)
        if not lp_norm(x, unit.p) <= 1.0 + 1e-6:  # just outside, the gap of the point that is scaled back decides
            return found
        new = unit.check(x, None, step)
        if found is not None and new.gap >= 0.5 * found.gap:
            return new if new.gap < found.gap else found
        found = new
    return found


def minimise_box(unit: Unit, start: Array | None = None) -> Found:
    """The minimiser over the unit ball of l_inf; columns are problems of their own.

    Newton's method on the free entries, the step bent along the box: an entry is held where it lies on a bound and both
    the gradient or Newton's step push it outwards; the others take the step, clipped if that is lower than stopping at
    the first bound. The value decreases with every step, and once the right entries are held one step is exact
    (Bertsekas 1982, Projected Newton methods).
    """
    x = np.sign(unit.b) if start is None else np.clip(start, -1.0, 1.0)
    columns = [_box_column(unit.H, unit.b[:, j], x[:, j]) for j in range(x.shape[1])]
    best = np.stack([c for c, _ in columns], axis=1)
    return unit.check(best, None, sum(steps for _, steps in columns))


def _box_column(H: Array, b: Array, x: Array) -> tuple[Array, int]:
    best, least, idle, steps, rows = x, np.inf, 0, 0, np.abs(H).sum(axis=1)
    noise = 4.0 * _EPS * float(np.max(np.abs(b) + rows))
    for _ in range(4 * len(b) + 50):
        steps += 1
        g = H @ x - b
        gap = float(g @ x + np.abs(g).sum())
        if gap < least:
            best, least = x, gap
        way, whole = _box_direction(H, x, g, noise)
        floor = 0.5 * _EPS * float(np.abs(b).sum() + rows @ np.abs(x))
        if least <= floor or idle > _BOX_IDLE or not way.any() or expired():
            break
        x, fall = _box_step(H, x, g, way, whole)
        idle = 0 if fall > 0.0 else idle + 1
    return best, steps


def _box_direction(H: Array, x: Array, g: Array, noise: float) -> tuple[Array, bool]:
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


def _box_step(H: Array, x: Array, g: Array, way: Array, whole: bool) -> tuple[Array, float]:
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
