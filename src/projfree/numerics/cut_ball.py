r"""Convex quadratics over a ball cut by linear constraints, :math:`\min\{q(w) : \|w\| \le r,\ l \le M w \le u\}`.

The method of multipliers (Hestenes 1969, Powell 1969) with the ball kept as it is: each subproblem

.. math:: \min_{\|w\| \le r} q(w) + \tfrac\rho2 \operatorname{dist}^2\bigl(M w + y/\rho, [l, u]\bigr)

is solved by a semismooth Newton method, which calls the ball's own solver for quadratics with the rows that are
outside their bounds added to the matrix. The new multipliers are :math:`\rho` times the residuals, and a point is made
feasible by a step onto the active rows and a short one towards an interior point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.cut_set import CutSet, NoPointError, spd_inverse
from projfree.numerics.root_finding import find_root
from projfree.numerics.sums import UNIT

#: The first penalty next to the mean of the diagonal of the matrix, and the factor by which it grows where the residual
#: does not fall by it.
PENALTY, GROWTH = 10.0, 10.0
#: Subproblems at most, and steps in each: both are a few.
ROUNDS, STEPS = 60, 60
#: Rounds without progress after which only rounding is left.
IDLE = 4
#: Curvatures with which linear functions are minimised, and the gap that is small enough, relatively.
FLATNESS, LINEAR = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-5, 1e-6, 1e-6), 1e-12
#: A point with this gauge lies on the sphere: half of the digits.
ON_SPHERE = 1.0 - 1e-8
#: Distances from the bounds, relative to the radius, that an interior point is looked for with.
MARGINS = (0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


class RowSolution(NamedTuple):
    """A feasible point, multipliers of the rows, and the Frank-Wolfe gap that they prove."""

    w: Array
    multipliers: Array
    gap: float


@dataclass(eq=False)
class CutBall(CutSet):
    """A ball that has a solver for quadratics, and rows.

    Attributes
    ----------
    solve : callable
        ``solve(H, b, start, share)`` minimises a quadratic over the ball, its radius multiplied by the share.
    normal : callable
        The direction of the gradient of the gauge at a point; None where the ball has corners.
    """

    solve: Callable[[Array, Array, Array, float], Array]
    normal: Callable[[Array], Array | None]

    def minimise(self, H: Array, b: Array, start: Array, y: Array, share: float = 1e-4) -> RowSolution:
        """Minimise q(w) = <w, H w> / 2 - <b, w> over the set.

        It ends when the Frank-Wolfe gap is at most this share of that at ``start`` with the multipliers y, or rounding.
        """
        g = H @ start - b
        # Multipliers are about as large as the gradient, and residuals are to be smaller than the ball.
        scale = max(float(np.mean(H.diagonal())), 0.1 * float(np.linalg.norm(g)) / self.radius, 1e-300)
        rho, w, last, idle = PENALTY * scale, start, math.inf, 0
        best, multipliers = start, y
        first = least = float(g @ start) - self.least(g, y)
        for _ in range(ROUNDS):
            w = self._subproblem(H, b, w, y / rho, rho, 1.0)
            new = rho * self.residual(self.M @ w + y / rho)
            v = self.restored(w, new)
            g = H @ v - b
            before = least
            for each in (new, self.fitted(g, v, new)):
                gap = float(g @ v) - self.least(g, each)
                if gap < least:
                    best, multipliers, least = v, each, gap
            noise = 16 * UNIT * float(np.abs(g) @ np.abs(v) + self.support(g))
            change = float(np.abs(new - y).max(initial=0.0)) / rho
            idle = 0 if least < 0.5 * before or UNIT * self.radius < change < 0.5 * last else idle + 1
            if least <= max(share * first, noise) or idle >= IDLE or expired():
                break
            if change > last / GROWTH:
                rho *= GROWTH
            y, last = new, change
        return RowSolution(best, multipliers, least)

    def fitted(self, g: Array, w: Array, y: Array) -> Array:
        """Multipliers of the rows that y uses for which the gradients at w cancel best, that of the ball included."""
        active = np.flatnonzero(self.equal | (y != 0.0))
        rows, normal = self.M[active], self.normal(w) if self.gauge(w) >= ON_SPHERE else None
        normal = np.zeros_like(g) if normal is None else normal / np.linalg.norm(normal)
        inner = rows @ normal  # the normal is taken out of the rows
        gram = (rows @ rows.T).toarray() - np.outer(inner, inner)
        inverse, fit = spd_inverse(gram), np.zeros(len(active))
        for _ in range(2):
            rest = -g - rows.T @ fit
            fit = fit + inverse(rows @ rest - inner * float(normal @ rest))
        found = np.zeros_like(y)
        found[active] = np.where(self.equal[active] | (fit * y[active] > 0.0), fit, 0.0)
        for proof in self.implied:  # rows that nothing is inside of may need multipliers without end
            size, bound = float(np.linalg.norm(g)), self.least(g, found)
            while (more := self.least(g, found + size * proof)) > bound:
                found, bound, size = found + size * proof, more, GROWTH * size
        return found

    def linear(self, g: Array, y: Array) -> tuple[Array, Array]:
        """By quadratics that are ever flatter, each around the last point."""
        size = float(np.linalg.norm(g))
        if size == 0.0:
            return self.interior.copy(), np.zeros_like(y)
        x, best = self.interior, -math.inf
        for flatness in FLATNESS:
            delta = flatness * size / self.radius
            found = self.minimise(delta * np.eye(len(g)), delta * x - g, x, y)
            x = found.w if float(g @ found.w) < float(g @ x) else x
            if (low := self.least(g, found.multipliers)) > best:
                y, best = found.multipliers, low
            if float(g @ x) - best <= LINEAR * size * self.radius or expired():
                break
        return x, y

    def _subproblem(self, H: Array, b: Array, w: Array, shift: Array, rho: float, share: float) -> Array:
        """The minimiser over the ball of q and the penalty of the rows at values shifted by multipliers."""
        before = None
        for _ in range(STEPS):
            t = self.M @ w + shift
            out = np.flatnonzero(self.equal | (t < self.lower) | (t > self.upper))
            if before is not None and np.array_equal(out, before):
                break
            rows, to = self.M[out], np.clip(t, self.lower, self.upper)[out] - shift[out]
            K = H + rho * (rows.T @ rows).toarray()
            new = self.solve(K, b + rho * (rows.T @ to), w, share)
            move = new - w
            length = self._line(H, b, w, move, t, rho)
            w, before = w + length * move, out if length == 1.0 else None
            if not np.abs(move).max(initial=0.0) > 4 * UNIT * self.radius or not length > 0.0 or expired():
                break
        return w

    def _line(self, H: Array, b: Array, w: Array, move: Array, t: Array, rho: float) -> float:
        """The best step length between 0 and 1 along a move."""
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

    def restored(self, w: Array, y: Array) -> Array:
        """A feasible point near to w: on the equalities and rows with a multiplier, then as far inside as needed."""
        v = self.onto(w, self.equal | (y != 0.0), np.where(y > 0.0, self.upper, self.lower))
        if np.any(np.abs(self.residual(self.M @ v))[self.equal] > self.noise[self.equal]):  # too many rows were active
            v = self.onto(v, self.equal, self.lower)
        return self.pulled(v, self.noise)

    def find_interior(self, near: Array) -> None:
        lower, upper = self.lower, self.upper
        while True:
            for margin in MARGINS:
                slack = np.where(self.equal, 0.0, np.minimum(margin * self.radius, 0.3 * (self.upper - self.lower)))
                inner = replace(self, lower=self.lower + slack, upper=self.upper - slack)
                w, y, clear = inner._nearest(near, margin, slack, replace(self, lower=lower, upper=upper))
                if clear:
                    self.interior = w
                    return
            if not self.tie(y):  # the ball touches the equalities
                self.interior = self.onto(w, self.equal, self.lower)
                return

    def _nearest(self, near: Array, margin: float, slack: Array, given: CutBall) -> tuple[Array, Array, bool]:
        """A point near to a given one, multipliers, and whether the point is inside; raises `NoPointError`."""
        zero, w, y, rho = np.zeros_like(near), near, np.zeros(len(self.lower)), PENALTY
        for _ in range(ROUNDS):
            w = self._subproblem(np.eye(len(near)), near, w, y / rho, rho, 1.0 - margin)
            q = given.onto(w, self.equal, self.lower)
            t, half = self.M @ q, 0.5 * slack
            inside = (t >= self.lower - half) & (t <= self.upper + half)
            if np.all(inside | self.equal) and self.gauge(q) <= 1.0 - 0.5 * margin:
                return q, y, True
            new = rho * self.residual(self.M @ w + y / rho)
            for direction in (new - y, new):
                if (size := float(np.abs(direction).max())) > 0.0:
                    direction = direction / size
                    if given.least(zero, direction) > 1e-13 * self.radius:
                        raise NoPointError(direction)
                    if self.least(zero, direction) > 1e-3 * margin * self.radius:
                        return w, direction, False
            y, rho = new, rho * GROWTH
        return w, y / max(float(np.abs(y).max()), UNIT), False
