r"""Linear programs over a polytope with linear constraints, by the simplex method of HiGHS.

The polytope is :math:`\{w : \sum_j c_j |w_j| \le r\}`, its nonnegative part, a simplex or a box. The bound from the
multipliers of the rows is valid for any tolerance of the method. The vertex is recomputed from its active rows, so that
it is feasible to rounding.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from projfree.checks import Array
from projfree.numerics.sums import UNIT
from projfree.sets.base import ConstraintSet, Shape
from projfree.sets.box import Box
from projfree.sets.cut import Cut
from projfree.sets.rows import Rows
from projfree.sets.shifted import Shifted

#: Absolute tolerance of HiGHS on rows and on reduced costs, for numbers of about unit size.
TOLERANCE = 1e-10
#: Tolerance, relative to the largest entry, below which an entry or a distance to a bound counts as zero.
ACTIVE = 1e-9
#: Largest and smallest distance of an interior point from the bounds, relative to the radius.
MARGIN, LEAST_MARGIN = 0.3, 1e-7
#: Smallest gap between the bounds of a row, relative to the radius, that scales the distance of an interior point:
#: HiGHS drops coefficients below 1e-9.
LEAST_ROOM = 1e-6


class CutPolytope(Cut):
    """The intersection of a polytope and linear constraints."""

    def __init__(self, ball: ConstraintSet, rows: tuple[Rows, ...], shape: Shape, low: Array, high: Array) -> None:
        inner = ball.ball if isinstance(ball, Shifted) else ball
        flat, self.low, self.high = inner.structure(shape).group_l1, low, high
        self.flat = None if flat is None else replace(flat, costs=np.ravel(np.broadcast_to(flat.costs, shape)))
        super().__init__(ball, rows, shape)

    def linear(self, g: Array, y: Array) -> tuple[Array, Array]:
        size = float(np.abs(g).max(initial=0.0))
        if size == 0.0:
            return self.centre, np.zeros_like(y)
        x, y, _ = self._solve(g / size, self.equal)
        # The rounding error is relative to the vertex, so that zeros stay zeros.
        noise = self.rounding(np.abs(x))
        return self.pulled(self._vertex(x, y, self.room(noise)), noise), size * y

    def gauge(self, w: Array) -> float:
        """Return the gauge of the ball; bounds on entries count only if violated, the sum of a simplex not at all."""
        x, flat = w - self.offset, self.flat
        beyond = float(np.max(np.maximum(x - self.high, self.low - x), initial=0.0))
        norm = 1.0 - 4 * UNIT if flat is None or flat.tight else flat.norm(x) / flat.radius
        return max(norm, 1.0 + beyond / self.radius) if beyond > 0.0 else norm

    def _find_interior(self) -> None:
        zero, one = np.zeros_like(self.offset), np.ones_like(self.lower)
        # Minimise the relaxation of all bounds; it is zero, up to rounding, for a feasible set.
        _, y, _ = self._solve(zero, self.equal & False, (1.0, -one, (0.0, np.inf)))
        if error := self.infeasible(y):
            raise error
        while True:
            room = np.clip((self.upper - self.lower) / self.radius, LEAST_ROOM, 1.0)
            x, y, margin = self._solve(zero, self.equal, (-1.0, room, (-self.radius, MARGIN * self.radius)))
            if margin > LEAST_MARGIN * self.radius or not self.tie(y):
                self.interior = self._vertex(x, np.zeros_like(y), 0.0)
                return

    def _solve(
        self, g: Array, equal: Array, extra: tuple[float, Array, tuple[float, float]] | None = None
    ) -> tuple[Array, Array, float]:
        """Return a minimiser of g, relative to the centre, multipliers of the rows and the value of an extra variable.

        The variable ``extra`` is given by its cost, its coefficient in each row, and its bounds.
        """
        import scipy.sparse as sp
        from scipy.optimize import linprog

        flat, at = self.flat, self.M @ self.offset
        lower, upper = self.lower - at, self.upper - at
        signed = flat is not None and flat.signed  # split entries into positive and negative parts
        M = sp.csr_array(sp.hstack([self.M, -self.M])) if signed else self.M
        low, high, n = self.low, self.high, len(g)
        if signed:
            g, low, high = np.concatenate([g, -g]), np.zeros(2 * n), np.full(2 * n, np.inf)
        above, below = np.flatnonzero(~equal & (upper < np.inf)), np.flatnonzero(~equal & (lower > -np.inf))
        inequalities, sides = sp.vstack([M[above], -M[below]]), np.concatenate([upper[above], -lower[below]])
        equalities, to, k = M[equal], lower[equal], len(above) + len(below)
        if flat is not None:
            row = sp.csr_array(np.tile(flat.costs, 2 if signed else 1)[None])
            if flat.tight:
                equalities, to = sp.vstack([equalities, row]), np.append(to, flat.radius)
            else:
                inequalities, sides = sp.vstack([inequalities, row]), np.append(sides, flat.radius * (1.0 - 16 * UNIT))
        if extra is not None:
            column = np.concatenate([extra[1][above], extra[1][below]])
            column = np.append(column, np.full(inequalities.shape[0] - k, max(column.min(initial=0.0), 0.0)))
            inequalities = sp.hstack([inequalities, sp.csr_array(column[:, None])])
            equalities = sp.hstack([equalities, sp.csr_array((equalities.shape[0], 1))])
            g, low, high = np.append(g, extra[0]), np.append(low, extra[2][0]), np.append(high, extra[2][1])
        found = linprog(
            g,
            inequalities,
            sides,
            equalities,
            to,
            np.column_stack([low, high]),
            method="highs-ds",
            options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
        )
        if found.x is None:
            raise RuntimeError(f"HiGHS found no vertex of the rows: {found.message}")
        y, marginals = np.zeros(len(lower)), found.ineqlin.marginals
        y[equal] = -found.eqlin.marginals[: int(equal.sum())]
        np.add.at(y, above, -np.minimum(marginals[: len(above)], 0.0))
        np.add.at(y, below, np.minimum(marginals[len(above) : k], 0.0))
        return found.x[:n] - found.x[n : 2 * n] if signed else found.x[:n], y, float(found.x[-1])

    def _vertex(self, x: Array, y: Array, room: Array | float) -> Array:
        """Recompute the vertex: set entries at their bounds exactly and solve the active rows for the others."""
        flat, x = self.flat, np.clip(x, self.low, self.high)
        close = ACTIVE * min(self.radius, float(np.abs(x).max(initial=0.0)))
        x = np.where(np.abs(x) <= close, 0.0, x) if flat is not None else x
        x = np.where(x - self.low <= close, self.low, np.where(self.high - x <= close, self.high, x))
        some = np.flatnonzero((x != 0.0) if flat is not None else (x != self.low) & (x != self.high))
        rows = np.flatnonzero(self.equal | (y != 0.0))
        to = (np.where(y > 0.0, self.upper - room, self.lower + room) - self.M @ self.offset)[rows]
        K, M, level = self.M[rows][:, some].toarray(), self.M[rows], math.inf
        if flat is not None and (flat.tight or flat.norm(x) >= flat.radius * (1.0 - ACTIVE)):
            level = flat.radius if flat.tight else flat.radius * (1.0 - 16 * UNIT)
            K = np.vstack([K, (flat.costs * np.sign(x))[some]])
        if len(some) and len(K):
            inverse = np.linalg.pinv(K, rcond=1e-12)
            for _ in range(2):
                rest = to - M @ x
                rest = np.append(rest, level - flat.norm(x)) if flat is not None and level < math.inf else rest
                x[some] += inverse @ rest
            x = np.clip(np.where(np.abs(x) <= UNIT**2 * self.radius, 0.0, x), self.low, self.high)
        return np.asarray(x + self.offset)


def sides(ball: ConstraintSet, shape: Shape) -> tuple[Array, Array] | None:
    """Return the bounds on the entries of a polytope, relative to its centre; None for other sets."""
    inner = ball.ball if isinstance(ball, Shifted) else ball
    structure, d = inner.structure(shape), math.prod(shape)
    flat, lp = structure.group_l1, structure.lp
    if len(structure.free) or (flat is not None and flat.groups is not None):
        return None
    if flat is not None:
        return np.full(d, -np.inf if flat.signed else 0.0), np.full(d, np.inf)
    if isinstance(inner, Box):
        low, high = (np.ravel(np.broadcast_to(b, shape)).astype(np.float64) for b in (inner.lower, inner.upper))
        return low, high
    if lp is not None and lp.p == math.inf:
        high = np.full(d, lp.radius) / (1.0 if structure.weights is None else np.ravel(structure.weights))
        return -high, high
    return None
