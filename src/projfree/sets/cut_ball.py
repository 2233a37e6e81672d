r"""Convex quadratics over a ball cut by linear constraints, :math:`\min\{q(w) : \|w\| \le r,\ l \le M w \le u\}`.

The method of multipliers (Hestenes 1969, Powell 1969) for the rows, with the ball as a constraint. Each subproblem

.. math:: \min_{\|w\| \le r} q(w) + \tfrac\rho2 \operatorname{dist}^2\bigl(M w + y/\rho, [l, u]\bigr)

is solved by a semismooth Newton method: the solver for quadratics over the ball is called with the violated rows added
to the matrix. The new multipliers are :math:`\rho` times the residuals. A point is made feasible by a projection onto
the active rows and a short step towards an interior point.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.lp_norm import conjugate
from projfree.numerics.root_finding import find_root
from projfree.numerics.sums import UNIT
from projfree.sets.base import resized
from projfree.sets.cut import Cut, spd_inverse
from projfree.sets.lp import LpBall
from projfree.sets.quadratic import minimise_model
from projfree.sets.unpenalized import WithUnpenalized

#: Initial penalty relative to the mean of the diagonal of H. It is multiplied by GROWTH unless the residual decreases
#: by that factor.
PENALTY, GROWTH = 10.0, 10.0
#: Maximum number of subproblems, and of steps in each; a few suffice.
ROUNDS = 60
#: Number of consecutive rounds without progress after which the method stops.
IDLE = 4
#: Relative curvatures for the minimisation of linear functions, and its relative tolerance on the gap.
FLATNESS, LINEAR = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-5, 1e-6, 1e-6), 1e-12
#: A point with at least this gauge counts as a boundary point: half of the digits.
ON_SPHERE = 1.0 - 1e-8
#: Distances of an interior point from the bounds, relative to the radius, in the order in which they are tried. With
#: columns of very different scales, 1e-8 may be needed. Proofs of an empty interior are most accurate at `PROOF`.
MARGINS, PROOF = (0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10), 1e-6


class CutBall(Cut):
    """The intersection of linear constraints and a norm ball that has a solver for quadratics."""

    def minimise(self, H: Array, b: Array, start: Array, y: Array, share: float = 1e-4) -> tuple[Array, Array]:
        """Return a feasible approximate minimiser of q(w) = <w, H w> / 2 - <b, w>, and multipliers of the rows.

        The method stops when the Frank-Wolfe gap is below ``share`` times that at ``start`` with the multipliers y, or
        of rounding size.
        """
        g = H @ start - b
        # Multipliers are about as large as the gradient, and residuals should be smaller than the radius.
        scale = max(float(np.mean(H.diagonal())), 0.1 * float(np.linalg.norm(g)) / self.radius, 1e-300)
        rho, w, last, idle = PENALTY * scale, start, math.inf, 0
        best, multipliers = start, y
        first = least = float(g @ start) - self.least(g, y)
        for _ in range(ROUNDS):
            w = self._subproblem(H, b, w, y / rho, rho)
            new = rho * self.residual(self.M @ w + y / rho)
            v = self._restored(w, new)
            g, before = H @ v - b, least
            for each in (new, self.fitted(g, v, new)):
                gap = float(g @ v) - self.least(g, each)
                if gap < least:
                    best, multipliers, least = v, each, gap
            support = float(self.ball.support(g.reshape(self.shape)))
            noise = 16 * UNIT * (float(np.abs(g) @ np.abs(v)) + abs(support))
            change = float(np.abs(new - y).max(initial=0.0)) / rho
            idle = 0 if least < 0.5 * before or UNIT * self.radius < change < 0.5 * last else idle + 1
            if least <= max(share * first, noise) or idle >= IDLE or expired():
                break
            if change > last / GROWTH:
                rho *= GROWTH
            y, last = new, change
        return best, multipliers

    def linear(self, g: Array, y: Array) -> tuple[Array, Array]:
        """Minimise <g, w> by a proximal point method with decreasing curvature."""
        size = float(np.linalg.norm(g))
        if size == 0.0:
            return self.centre, np.zeros_like(y)
        x, best = self.interior, -math.inf
        for flatness in FLATNESS:
            delta = flatness * size / self.radius
            w, found = self.minimise(delta * np.eye(len(g)), delta * x - g, x, y)
            x = w if float(g @ w) < float(g @ x) else x
            if (low := self.least(g, found)) > best:
                y, best = found, low
            if float(g @ x) - best <= LINEAR * size * self.radius or expired():
                break
        return x, y

    def fitted(self, g: Array, w: Array, y: Array) -> Array:
        """Return the multipliers of the active rows that best satisfy stationarity at w, by least squares.

        The multiplier of the ball is eliminated.
        """
        active = np.flatnonzero(self.equal | (y != 0.0))
        rows, normal = self.M[active], self._normal(w)
        inner = rows @ normal  # project the normal out of the rows
        inverse, fit = spd_inverse((rows @ rows.T).toarray() - np.outer(inner, inner)), np.zeros(len(active))
        for _ in range(2):
            rest = -g - rows.T @ fit
            fit = fit + inverse(rows @ rest - inner * float(normal @ rest))
        found = np.zeros_like(y)
        found[active] = np.where(self.equal[active] | (fit * y[active] > 0.0), fit, 0.0)
        for proof in self.implied:  # multipliers are unbounded without a strict interior
            size, bound = float(np.linalg.norm(g)), self.least(g, found)
            while (more := self.least(g, found + size * proof)) > bound:
                found, bound, size = found + size * proof, more, GROWTH * size
        return found

    @property
    def centre(self) -> Array:
        """The centre of the ball, made feasible; Newton steps from a point deep in the interior may be poor."""
        near = self.onto(np.ravel(self.ball.centre(self.shape)), self.equal, self.lower)
        return self.pulled(near, self.noise)

    def gauge(self, w: Array) -> float:
        x = w - self.offset
        norm = float(self.inner.norm(x[~self.free].reshape(self.inner_shape)) / self.inner.radius)
        if isinstance(self.ball, WithUnpenalized):
            return max(norm, float(np.abs(x[self.free]).max()) / self.ball.bound)
        return norm

    def _normal(self, w: Array) -> Array:
        """Return the unit normal at a boundary point of a smooth ball, else zero."""
        structure, normal, inside = self.inner.structure(self.inner_shape), np.zeros_like(w), ~self.free
        if structure.lp is not None and 1.0 < structure.lp.p < math.inf and self.gauge(w) >= ON_SPHERE:
            weights = 1.0 if structure.weights is None else np.ravel(structure.weights)
            point = (w - self.offset)[inside] * weights
            normal[inside] = -LpBall(conjugate(structure.lp.p), 1.0).lmo(point) * weights
        return normal / max(float(np.linalg.norm(normal)), UNIT)

    # ------------------------------------------------------------ subproblems

    def _subproblem(self, H: Array, b: Array, w: Array, shift: Array, rho: float) -> Array:
        """Return the minimiser over the ball of q plus the penalty of the rows at the values ``M w + shift``."""
        before = None
        for _ in range(ROUNDS):
            t = self.M @ w + shift
            out = np.flatnonzero(self.equal | (t < self.lower) | (t > self.upper))
            if before is not None and np.array_equal(out, before):
                break
            rows, to = self.M[out], np.clip(t, self.lower, self.upper)[out] - shift[out]
            K, side = H + rho * (rows.T @ rows).toarray(), b + rho * (rows.T @ to)
            move = np.ravel(minimise_model(K, side.reshape(self.shape), self.ball, w.reshape(self.shape))) - w
            length = self._line(H, b, w, move, t, rho)
            w, before = w + length * move, out if length == 1.0 else None
            if not np.abs(move).max(initial=0.0) > 4 * UNIT * self.reach or not length > 0.0 or expired():
                break
        return w

    def _line(self, H: Array, b: Array, w: Array, move: Array, t: Array, rho: float) -> float:
        """Return the step length in [0, 1] along ``move`` that minimises the penalised objective."""
        along, image = self.M @ move, H @ move
        slope, curvature = float(move @ (H @ w - b)), float(move @ image)

        def look(a: float) -> tuple[float, float, float]:
            rest = self.residual(t + a * along)
            out = self.equal | (rest != 0.0)
            return (
                slope + a * curvature + rho * float(rest @ along),
                curvature + rho * float(along[out] @ along[out]),
                4 * UNIT * (abs(slope) + rho * float(np.abs(rest) @ np.abs(along))),
            )

        return 1.0 if look(1.0)[0] <= 0.0 else find_root(look, 1.0, 0.0, 1.0)

    # ------------------------------------------------------------ feasible points

    def _restored(self, w: Array, y: Array) -> Array:
        """Return a feasible point near w: project onto the active rows, then move towards the interior point."""
        room = self.room(self.noise)
        v = self.onto(w, self.equal | (y != 0.0), np.where(y > 0.0, self.upper - room, self.lower + room))
        if np.any(np.abs(self.residual(self.M @ v))[self.equal] > self.noise[self.equal]):  # rows are inconsistent
            v = self.onto(v, self.equal, self.lower)
        return self.pulled(v, self.noise)

    def _find_interior(self) -> None:
        near = self.interior
        while True:
            proofs = []
            for margin in MARGINS:
                w, y, inside = self._nearest(near, margin)
                if inside:
                    self.interior = w
                    return
                if margin <= PROOF:
                    proofs.append(y)
            last = self.tied(y)
            accurate = next(y for y in proofs if np.array_equal(self.tied(y), last))
            if not self.tie(accurate):  # the ball and the equalities are tangent
                self.interior = self.onto(w, self.equal, self.lower)
                return

    def _nearest(self, near: Array, margin: float) -> tuple[Array, Array, bool]:
        """Return a point close to ``near`` with a relative distance from the bounds, multipliers, and a success flag.

        The flag is true if the distance is at least half of ``margin``. Raises InfeasibleError if the multipliers prove
        that no point satisfies the rows.
        """
        slack, inner = np.minimum(margin * self.radius, 0.3 * (self.upper - self.lower)), copy(self)
        slack[self.equal] = 0.0
        inner.lower, inner.upper = self.lower + slack, self.upper - slack
        inner.ball = resized(self.ball, (1.0 - margin) * self.inner.radius)
        w, y, rho, zero = near, np.zeros_like(slack), PENALTY, np.zeros_like(near)
        for _ in range(ROUNDS):
            w = inner._subproblem(np.eye(len(near)), near, w, y / rho, rho)
            q = self.onto(w, self.equal, self.lower)
            t = self.M @ q
            inside = self.equal | ((t >= self.lower + 0.5 * slack) & (t <= self.upper - 0.5 * slack))
            if inside.all() and self.gauge(q) <= 1.0 - 0.5 * margin:
                return q, y, True
            new = rho * inner.residual(self.M @ w + y / rho)
            for direction in (new - y, new):
                if (length := float(np.abs(direction).max())) > 0.0:
                    direction = direction / length
                    if error := self.infeasible(direction):
                        raise error
                    if inner.least(zero, direction) > 1e-3 * margin * self.radius:
                        return w, direction, False
            y, rho = new, rho * GROWTH
        return w, y / max(float(np.abs(y).max()), UNIT), False
