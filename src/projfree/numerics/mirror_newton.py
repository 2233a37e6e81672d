r"""Minimisation of a quadratic over the l_p unit ball, :math:`1 < p < \infty`, by Newton's method on the mirror curve.

With :math:`s = \operatorname{sgn}(x)|x|^{p-1}` the optimality conditions on the sphere are

.. math:: H x - b + \lambda s = 0, \qquad \|x\|_p = 1.

One of ``x`` and ``s`` is not differentiable at zero as a function of the other unless ``p = 2``. As functions of
Minty's coordinate :math:`z = h x + \lambda s`, with any :math:`h \ge 0`, both have bounded derivatives for every
``p``. Newton's method therefore iterates on ``z``, with a matrix scaled to unit diagonal, and computes ``x`` and ``s``
from it. The same step updates the penalty by Newton's method on :math:`1/\|x(\lambda)\|_p` (Hebden).
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

#: Maximum number of steps; 5 to 20 are usual.
STEPS = 300
#: Largest factor by which the penalty changes in one step, because the norm at the new penalty is only predicted.
FACTOR = 10
#: The penalty is updated if the Newton step changes the distance to the sphere by at most this fraction.
CLOSE = 0.3
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


class Place(NamedTuple):
    r"""Point of the curve and its derivatives: :math:`dx = a\,dz` and :math:`\lambda\,ds = c\,dz`, ``h a + c = 1``."""

    x: Array
    s: Array
    a: Array
    c: Array


def on_curve(z: Array, h: Array, penalty: float, p: float) -> Place:
    r"""Solve :math:`h x + \lambda s = z` on the curve for every entry; ``h > 0``, ``1 < p < inf``."""
    alpha, beta = exponents(p)
    log_z, log_h, log_l = np.log(np.maximum(np.abs(z), _TINY)), np.log(h), math.log(penalty)
    t = np.minimum((log_z - log_h) / alpha, (log_z - log_l) / beta)
    t, share = solve_two_powers(t, log_z, log_h, log_l, alpha, beta)
    rate = alpha + (beta - alpha) * share
    c = beta * share / rate
    s = np.copysign(np.exp(beta * t), z)
    # If x changes more with z than s does, the difference z - lambda s is more accurate.
    x = np.where(c < 0.5, (z - penalty * s) / h, np.copysign(np.exp(alpha * t), z))
    live = z != 0.0
    return Place(np.where(live, x, 0.0), np.where(live, s, 0.0), alpha * np.exp(alpha * t - log_z) / rate, c)


def minimise_on_mirror_curve(
    problem: UnitQuadratic, start: Array | None = None, pseudo_inverse: Product | None = None
) -> Solution:
    """Return the best iterate of Newton's method on the mirror curve, from ``start`` if it implies a positive penalty.

    ``pseudo_inverse`` multiplies by the pseudo-inverse of a singular H. If the penalty tends to zero, the method also
    tries the unconstrained minimiser nearest to the iterate.
    """
    diagonal = problem.H.diagonal()
    # Any positive weights define a coordinate; with the diagonal of H it is scaled equally for all features.
    h = np.maximum(diagonal, max(_EPS * float(diagonal.max()), _TINY))[:, None] + np.zeros_like(problem.b)
    place, penalty = _first_place(problem, h, start)
    low, high, best, idle = 0.0, 1.0, problem.check(np.zeros_like(problem.b)), 0
    for _ in range(STEPS):
        if not penalty > _TINY or not np.isfinite(place.x).all():
            break  # overflow or underflow: return the best point so far
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
    r"""Return the initial point of the curve and the penalty, from ``start`` or from the solution for :math:`H = 0`."""
    if start is not None and start.any():
        pull = problem.b - problem.H @ start
        gain, weight = float(np.vdot(pull, start)), power(lp_norm(start, problem.p), problem.p)
        penalty = min(1.0, gain / weight) if weight > 0.0 else float(gain > 0.0)
        if penalty > _EPS:
            return on_curve(h * start + pull, h, penalty, problem.p), penalty
    return on_curve(problem.b, h, 1.0, problem.p), 1.0


class MirrorStep:
    r"""Newton step ``inner`` for ``x`` at a fixed penalty, and the derivative ``outer`` :math:`= dx/d\lambda`.

    ``turn`` is minus the change of :math:`\lambda s` in this step; ``h`` are the weights of the coordinate for the line
    search, the curvature of each entry after minimisation over the others (Schur complement). ``decrement`` is twice
    the decrease of the penalised function that the quadratic model predicts; ``norm`` is that of ``x``. The columns
    are coupled only by the penalty. Cost: one Cholesky inverse per column.
    """

    def __init__(self, problem: UnitQuadratic, place: Place, penalty: float, image: Array, diagonal: Array) -> None:
        self.problem, self.place, self.penalty, self.image = problem, place, penalty, image
        x, s, a, c = place
        residual = image - problem.b + penalty * s
        self.inner, self.outer, root, self.h = np.zeros_like(x), np.zeros_like(x), np.sqrt(a), diagonal.copy()
        for j in range(x.shape[1]):
            # Entries whose x hardly depends on z are fixed.
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
        """Return the directional derivative of the norm of ``x``."""
        p, norm = self.problem.p, self.norm
        if norm == 0.0:
            return 0.0
        if p < 2.0:  # s is more accurate than x, and the power of the norm cannot overflow
            return power(norm, 1.0 - p) * float(np.vdot(self.place.s, direction))
        x = self.place.x / norm
        return float(np.vdot(np.copysign(np.abs(x) ** (p - 1.0), x), direction))

    def leap(self, penalty: float) -> Place:
        """Return the point that the linearisation predicts at another penalty."""
        by = penalty - self.penalty
        z = self.h * (self.place.x + self.inner + by * self.outer)
        z += self.penalty * self.place.s - self.turn - by * (self.problem.H @ self.outer)
        return on_curve(z, self.h, penalty, self.problem.p)

    def search(self, diagonal: Array) -> Place:
        """Halve the step until the penalised function decreases, up to rounding (backtracking line search).

        Each step length is tried in two coordinates: with the weights of this step, and with the diagonal, which allows
        longer steps if the other weights are near zero because of a large p.
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
    """Solve a linear system with a matrix of unit diagonal that is positive semidefinite up to rounding.

    The diagonal is increased if the factorisation fails. Returns the solution and the diagonal of the inverse.
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
