r"""One linearisation of :math:`Hx - b + \lambda s = 0` along the mirror curve, and the steps it offers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_norm import lp_norm, power
from projfree.numerics.mirror_curve import Place, on_curve
from projfree.numerics.unit_ball import Unit

_UNMOVED = 1e-20  # entries whose x takes a smaller share of a step than this stand still
_LEAST = 1e-6  # the least part of the diagonal that counts as curvature


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

    def search(self, diagonal: Array) -> tuple[Place, float]:
        """Halve the step until the penalised function falls enough, in either of two coordinates."""
        now, t, at = self._penalised(self.place.x, self.image), 1.0, self.place
        for _ in range(30):
            for h in (self.h, diagonal):
                z = h * (at.x + t * self.inner) + self.penalty * at.s - t * self.turn
                trial = on_curve(z, h, self.penalty, self.unit.p)
                new = self._penalised(trial.x, self.unit.H @ trial.x)
                if new <= now - 1e-4 * t * self.decrement + 1e-14 * abs(now):
                    return trial, t
            t *= 0.5
        return trial, t

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
            h[on, j] = np.clip(left, _LEAST * diagonal[on, j], diagonal[on, j])
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
