r"""A quadratic over the unit ball of an l_p norm, :math:`1 < p < \infty`, by Newton's method along the mirror curve.

With :math:`s = \operatorname{sgn}(x)|x|^{p-1}` the optimality conditions on the sphere are

.. math:: H x - b + \lambda s = 0, \qquad \|x\|_p = 1.

One of ``x`` and ``s`` has an infinite slope at zero unless ``p = 2``. The coordinate :math:`z = h x + \lambda s` of
Minty, with any :math:`h \ge 0`, has bounded slopes for every ``p``: Newton's method takes ``z``, with a matrix
scaled to the diagonal one, and the curve gives ``x`` and ``s`` back. The penalty follows by Newton's method on
:math:`1/\|x(\lambda)\|_p` (Hebden), in the same step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.lp_norm import lp_norm, power
from projfree.numerics.projections import exponents, solve_two_powers
from projfree.numerics.secular import Found, Unit

_STEPS = 300  # 5-20 are usual
_IDLE = 10  # steps without progress after which only rounding is left
_FALL = 10.0  # by how much the penalty may fall in one step
_LEAST = 1e-290  # a penalty below this is none, and its logarithm soon out of range
_CLOSE = 0.3  # the part of the distance to the sphere that Newton's step may still change
_UNMOVED = 1e-20  # entries whose x takes a smaller share of a step than this stand still
_LEAST_CURVATURE = 1e-6  # the least part of the diagonal that counts as curvature


class Place(NamedTuple):
    r"""Points of the curve and how they move: :math:`dx = a\,dz` and :math:`\lambda\,ds = c\,dz`, ``h a + c = 1``."""

    x: Array
    s: Array
    a: Array
    c: Array


def on_curve(z: Array, h: Array, penalty: float, p: float) -> Place:
    r"""Solve :math:`h x + \lambda s = z` on the curve, entry by entry; ``h > 0``, ``1 < p < inf``."""
    alpha, beta = exponents(p)
    log_z, log_h, log_l = np.log(np.maximum(np.abs(z), 1e-300)), np.log(h), math.log(penalty)
    t = np.minimum((log_z - log_h) / alpha, (log_z - log_l) / beta)
    t, share = solve_two_powers(t, log_z, log_h, log_l, alpha, beta)
    rate = alpha + (beta - alpha) * share
    c = beta * share / rate
    s = np.copysign(np.exp(beta * t), z)
    # Where x takes more of a change of z than s does, the rest z - lambda s is the finer formula.
    x = np.where(c < 0.5, (z - penalty * s) / h, np.copysign(np.exp(alpha * t), z))
    live = z != 0.0
    return Place(np.where(live, x, 0.0), np.where(live, s, 0.0), alpha * np.exp(alpha * t - log_z) / rate, c)


class MirrorNewton:
    """The iteration on a scaled problem: see `Unit`.

    ``inverse`` applies the pseudo-inverse of a singular matrix, whose minimisers fill a plane: where the path comes
    near to it inside the ball, that plane is one jump away.
    """

    def __init__(self, unit: Unit, inverse: Callable[[Array], Array] | None = None) -> None:
        self.unit, self.p, self.inverse = unit, unit.p, inverse
        diagonal = np.diag(unit.H)
        h = np.maximum(diagonal, max(1e-20 * float(diagonal.max()), 1e-30))
        self.h = np.repeat(h[:, None], unit.b.shape[1], axis=1)

    def solve(self, start: Array | None = None) -> Found:
        """The best point found, from ``start`` if that tells of a penalty."""
        unit, low, high = self.unit, 0.0, 1.0
        place, penalty = self._first(start)
        best, idle = unit.check(np.zeros_like(unit.b)), 0
        for step in range(1, _STEPS + 1):
            if not penalty > _LEAST or not np.isfinite(place.x).all():
                break  # out of the range of doubles: the best point so far is the answer
            image = unit.H @ place.x
            found = unit.check(place.x, image, step)
            idle = 0 if found.gap < 0.5 * best.gap else idle + 1
            best = found if found.gap < best.gap else best
            idling = idle >= (_IDLE if best.gap <= 1e3 * best.floor else 8 * _IDLE)
            if expired() or best.gap <= best.floor or idling:
                break
            now = linearise(unit, place, penalty, image, self.h)
            shift = now.change(now.inner)
            ahead = now.norm + shift
            off, weight = _CLOSE * abs(ahead - 1.0), penalty * power(now.norm, self.p)
            close = now.decrement <= off * off * weight and abs(shift) <= off
            if ahead > 0.0 and (close or now.decrement <= best.floor):
                low, high = (penalty, high) if ahead > 1.0 else (low, penalty)
                wanted = penalty + ahead * (ahead - 1.0) / max(-now.change(now.outer), 1e-300)
                if self.inverse is not None and wanted < penalty / _FALL:
                    landed = unit.check(place.x + self.inverse(unit.b - image), None, step)
                    best = landed if landed.gap < best.gap else best
                wanted = min(max(wanted, penalty / _FALL), _FALL * penalty)
                if not low < wanted < high:
                    wanted = math.sqrt(max(low, 0.01 * high) * high)
                penalty = max(wanted, _LEAST)
                place = now.leap(penalty)
            else:
                place = now.search()
        return best.after(step)

    def _first(self, start: Array | None) -> tuple[Place, float]:
        r"""A point of the curve and a penalty: those of ``start``, else of the vertex that :math:`H = 0` would give."""
        unit = self.unit
        if start is not None and start.any():
            pull = unit.b - unit.H @ start
            gain, weight = float(np.vdot(pull, start)), power(lp_norm(start, self.p), self.p)
            penalty = min(1.0, gain / weight) if weight > 0.0 else float(gain > 0.0)
            if penalty > 1e-14:
                return on_curve(self.h * start + pull, self.h, penalty, self.p), penalty
        return on_curve(unit.b, self.h, 1.0, self.p), 1.0


@dataclass(frozen=True)
class MirrorStep:
    r"""Newton's step ``inner`` for ``x`` at a fixed penalty, and :math:`dx/d\lambda` as ``outer``.

    ``turn`` is minus the change of :math:`\lambda s` that goes with ``inner``; ``h`` are the weights of the coordinate
    in which the curve is walked along: the curvature that is left when all other entries give way. ``decrement`` is
    what Newton's step should bring of the penalised function, twice; ``norm`` is that of ``x``.
    """

    unit: Unit
    place: Place
    penalty: float
    image: Array
    inner: Array
    outer: Array
    turn: Array
    h: Array
    decrement: float
    norm: float

    def change(self, way: Array) -> float:
        """The derivative of the norm along a direction."""
        p, norm = self.unit.p, self.norm
        if norm == 0.0:
            return 0.0
        if p < 2.0:  # here s is the finer of the two, and its power of the norm is harmless
            return power(norm, 1.0 - p) * float(np.vdot(self.place.s, way))
        x = self.place.x / norm
        return float(np.vdot(np.copysign(np.abs(x) ** (p - 1.0), x), way))

    def leap(self, penalty: float) -> Place:
        """The point that is expected at another penalty."""
        by = penalty - self.penalty
        z = self.h * (self.place.x + self.inner + by * self.outer)
        z += self.penalty * self.place.s - self.turn - by * (self.unit.H @ self.outer)
        return on_curve(z, self.h, penalty, self.unit.p)

    def search(self) -> Place:
        """Halve the step until the penalised function falls enough."""
        now, t, at = self._penalised(self.place.x, self.image), 1.0, self.place
        for _ in range(30):
            z = self.h * (at.x + t * self.inner) + self.penalty * at.s - t * self.turn
            trial = on_curve(z, self.h, self.penalty, self.unit.p)
            new = self._penalised(trial.x, self.unit.H @ trial.x)
            if new <= now - 1e-4 * t * self.decrement + 1e-14 * abs(now):
                break
            t *= 0.5
        return trial

    def _penalised(self, x: Array, image: Array) -> float:
        p = self.unit.p
        return float(np.vdot(0.5 * image - self.unit.b, x) + self.penalty / p * power(lp_norm(x, p), p))


def linearise(unit: Unit, place: Place, penalty: float, image: Array, diagonal: Array) -> MirrorStep:
    """The step at a point of the curve; columns share nothing but the penalty. Cost: a Cholesky inverse a column."""
    x, s, a, c = place
    residual = image - unit.b + penalty * s
    inner, outer, root, h = np.zeros_like(x), np.zeros_like(x), np.sqrt(a), diagonal.copy()
    for j in range(x.shape[1]):
        on = np.flatnonzero(diagonal[:, j] * a[:, j] > _UNMOVED)
        if len(on):
            scale = root[on, j]
            M = (unit.H if len(on) == len(x) else unit.H[np.ix_(on, on)]) * scale * scale[:, None]
            M.flat[:: len(on) + 1] += c[on, j]
            y, inverse = solve_unit_diagonal(M, -scale[:, None] * np.column_stack([residual[on, j], s[on, j]]))
            inner[on, j], outer[on, j] = scale * y[:, 0], scale * y[:, 1]
            left = (1.0 / np.maximum(inverse, 1.0) - c[on, j]) / a[on, j]
            h[on, j] = np.clip(left, _LEAST_CURVATURE * diagonal[on, j], diagonal[on, j])
    turn = residual + unit.H @ inner
    decrement = -float(np.vdot(residual, inner))
    return MirrorStep(unit, place, penalty, image, inner, outer, turn, h, decrement, lp_norm(x, unit.p))


def solve_unit_diagonal(M: Array, sides: Array) -> tuple[Array, Array]:
    """Solve with a matrix of diagonal one that is positive semidefinite up to rounding, lifted where it is not.

    Returns the solution and the diagonal of the inverse.
    """
    from scipy.linalg import lapack

    factor, x, info = lapack.dposv(M, sides, lower=1)
    lift = 1e-15 * len(M)
    while info != 0 and lift < 1.0:
        raised = M.copy()
        raised.flat[:: len(M) + 1] += lift
        factor, x, info = lapack.dposv(raised, sides, lower=1)
        lift *= 30.0
    inverse, _ = lapack.dpotri(factor, lower=1)
    return np.asarray(x), np.diag(inverse)
