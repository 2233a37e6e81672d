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
from typing import NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.linear_systems import IDLE, Product
from projfree.numerics.lp_norm import lp_norm, power
from projfree.numerics.projections import exponents, solve_two_powers
from projfree.numerics.secular import Solution, UnitQuadratic

#: Steps at most; 5 to 20 are usual.
STEPS = 300
#: The factor by which the penalty may change in one step: its equation is solved at points that are only predicted.
FACTOR = 10
#: The part of the distance to the sphere that Newton's step may still change when the penalty moves.
CLOSE = 0.3
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


class Place(NamedTuple):
    r"""Points of the curve and how they move: :math:`dx = a\,dz` and :math:`\lambda\,ds = c\,dz`, ``h a + c = 1``."""

    x: Array
    s: Array
    a: Array
    c: Array


def on_curve(z: Array, h: Array, penalty: float, p: float) -> Place:
    r"""Solve :math:`h x + \lambda s = z` on the curve, entry by entry; ``h > 0``, ``1 < p < inf``."""
    alpha, beta = exponents(p)
    log_z, log_h, log_l = np.log(np.maximum(np.abs(z), _TINY)), np.log(h), math.log(penalty)
    t = np.minimum((log_z - log_h) / alpha, (log_z - log_l) / beta)
    t, share = solve_two_powers(t, log_z, log_h, log_l, alpha, beta)
    rate = alpha + (beta - alpha) * share
    c = beta * share / rate
    s = np.copysign(np.exp(beta * t), z)
    # Where x takes more of a change of z than s does, the rest z - lambda s is the finer formula.
    x = np.where(c < 0.5, (z - penalty * s) / h, np.copysign(np.exp(alpha * t), z))
    live = z != 0.0
    return Place(np.where(live, x, 0.0), np.where(live, s, 0.0), alpha * np.exp(alpha * t - log_z) / rate, c)


def minimise_on_mirror_curve(
    problem: UnitQuadratic, start: Array | None = None, pseudo_inverse: Product | None = None
) -> Solution:
    """The best point that Newton's method finds, from ``start`` if that tells of a penalty.

    ``pseudo_inverse`` is that of a singular matrix, whose minimisers fill a plane: where the path comes near to it
    inside the ball, that plane is one jump away.
    """
    diagonal = problem.H.diagonal()
    # Any positive weights make a coordinate; those of the diagonal make its slope the same for all features.
    h = np.maximum(diagonal, max(_EPS * float(diagonal.max()), _TINY))[:, None] + np.zeros_like(problem.b)
    place, penalty = _first_place(problem, h, start)
    low, high, best, idle = 0.0, 1.0, problem.check(np.zeros_like(problem.b)), 0
    for _ in range(STEPS):
        if not penalty > _TINY or not np.isfinite(place.x).all():
            break  # out of the range of doubles: the best point so far is the answer
        image = problem.H @ place.x
        found = problem.check(place.x, image)
        idle = 0 if found.gap < 0.5 * best.gap else idle + 1
        best = found if found.gap < best.gap else best
        if expired() or best.gap <= best.floor or idle >= (IDLE if best.exact else 8 * IDLE):
            break
        now = MirrorStep(problem, place, penalty, image, h)
        shift = now.norm_derivative(now.inner)
        ahead = now.norm + shift
        off, weight = CLOSE * abs(ahead - 1.0), penalty * power(now.norm, problem.p)
        close = now.decrement <= off * off * weight and abs(shift) <= off
        if not (ahead > 0.0 and (close or now.decrement <= best.floor)):
            place = now.search(h)
            continue
        low, high = (penalty, high) if ahead > 1.0 else (low, penalty)
        wanted = penalty + ahead * (ahead - 1.0) / max(-now.norm_derivative(now.outer), _TINY)
        if pseudo_inverse is not None and wanted < penalty / FACTOR:
            landed = problem.check(place.x + pseudo_inverse(problem.b - image))
            best = landed if landed.gap < best.gap else best
        wanted = min(max(wanted, penalty / FACTOR), FACTOR * penalty)
        if not low < wanted < high:
            wanted = math.sqrt(max(low, high / FACTOR**2) * high)
        penalty = max(wanted, _TINY)
        place = now.leap(penalty)
    return best


def _first_place(problem: UnitQuadratic, h: Array, start: Array | None) -> tuple[Place, float]:
    r"""A point of the curve and a penalty: those of ``start``, else of the vertex that :math:`H = 0` would give."""
    if start is not None and start.any():
        pull = problem.b - problem.H @ start
        gain, weight = float(np.vdot(pull, start)), power(lp_norm(start, problem.p), problem.p)
        penalty = min(1.0, gain / weight) if weight > 0.0 else float(gain > 0.0)
        if penalty > _EPS:
            return on_curve(h * start + pull, h, penalty, problem.p), penalty
    return on_curve(problem.b, h, 1.0, problem.p), 1.0


class MirrorStep:
    r"""Newton's step ``inner`` for ``x`` at a fixed penalty, and :math:`dx/d\lambda` as ``outer``.

    ``turn`` is minus the change of :math:`\lambda s` that goes with ``inner``; ``h`` are the weights of the coordinate
    along which the curve is searched: the curvature that is left when all other entries give way. ``decrement`` is
    twice the decrease of the penalised function that Newton's step predicts; ``norm`` is that of ``x``. Columns share
    nothing but the penalty. Cost: a Cholesky inverse a column.
    """

    def __init__(self, problem: UnitQuadratic, place: Place, penalty: float, image: Array, diagonal: Array) -> None:
        self.problem, self.place, self.penalty, self.image = problem, place, penalty, image
        x, s, a, c = place
        residual = image - problem.b + penalty * s
        self.inner, self.outer, root, self.h = np.zeros_like(x), np.zeros_like(x), np.sqrt(a), diagonal.copy()
        for j in range(x.shape[1]):
            # Entries whose x takes next to nothing of a step stand still.
            on = np.flatnonzero(diagonal[:, j] * a[:, j] > _EPS**2)
            if len(on):
                scale = root[on, j]
                M = (problem.H if len(on) == len(x) else problem.H[np.ix_(on, on)]) * scale * scale[:, None]
                M.flat[:: len(on) + 1] += c[on, j]
                y, inverse = solve_unit_diagonal(M, -scale[:, None] * np.column_stack([residual[on, j], s[on, j]]))
                self.inner[on, j], self.outer[on, j] = scale * y[:, 0], scale * y[:, 1]
                left = (1.0 / np.maximum(inverse, 1.0) - c[on, j]) / a[on, j]
                self.h[on, j] = np.clip(left, math.sqrt(_EPS) * diagonal[on, j], diagonal[on, j])
        self.turn = residual + problem.H @ self.inner
        self.decrement = -float(np.vdot(residual, self.inner))
        self.norm = lp_norm(x, problem.p)

    def norm_derivative(self, direction: Array) -> float:
        """The derivative of the norm of ``x`` along a direction."""
        p, norm = self.problem.p, self.norm
        if norm == 0.0:
            return 0.0
        if p < 2.0:  # here s is the finer of the two, and its power of the norm is harmless
            return power(norm, 1.0 - p) * float(np.vdot(self.place.s, direction))
        x = self.place.x / norm
        return float(np.vdot(np.copysign(np.abs(x) ** (p - 1.0), x), direction))

    def leap(self, penalty: float) -> Place:
        """The point that is expected at another penalty."""
        by = penalty - self.penalty
        z = self.h * (self.place.x + self.inner + by * self.outer)
        z += self.penalty * self.place.s - self.turn - by * (self.problem.H @ self.outer)
        return on_curve(z, self.h, penalty, self.problem.p)

    def search(self, diagonal: Array) -> Place:
        """Halve the step until the penalised function falls, up to rounding.

        Each step is tried along two coordinates: with the weights of this step, and with those of the diagonal, which
        go further where a large p makes the other curvature vanish.
        """
        at, t = self.place, 1.0
        now = self._penalised(at.x, self.image)
        while True:
            for h in (self.h, diagonal):
                z = h * (at.x + t * self.inner) + self.penalty * at.s - t * self.turn
                trial = on_curve(z, h, self.penalty, self.problem.p)
                if t < _EPS or self._penalised(trial.x, self.problem.H @ trial.x) <= now + 64 * _EPS * abs(now):
                    return trial
            t *= 0.5

    def _penalised(self, x: Array, image: Array) -> float:
        p = self.problem.p
        return float(np.vdot(0.5 * image - self.problem.b, x) + self.penalty / p * power(lp_norm(x, p), p))


def solve_unit_diagonal(M: Array, sides: Array) -> tuple[Array, Array]:
    """Solve with a matrix of diagonal one that is positive semidefinite up to rounding, lifted where it is not.

    Returns the solution and the diagonal of the inverse.
    """
    from scipy.linalg import lapack

    factor, x, info = lapack.dposv(M, sides, lower=1)
    lift = _EPS * len(M)
    while info != 0 and lift < 1.0:
        raised = M.copy()
        raised.flat[:: len(M) + 1] += lift
        factor, x, info = lapack.dposv(raised, sides, lower=1)
        lift *= 32
    inverse, _ = lapack.dpotri(factor, lower=1)
    return np.asarray(x), np.diag(inverse)
