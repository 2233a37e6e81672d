r"""Linear functions over a polytope cut by linear constraints, by the simplex method of HiGHS.

The polytope is :math:`\{w : \sum_j c_j |w_j| \le r\}`, the part of it without negative entries, a simplex or a box. The
multipliers of the rows prove a bound whatever the tolerances of the method are, and a vertex is computed once more from
the rows that are active at it, so that it is feasible to rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.numerics.cut_set import CutSet, NoPointError
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.sums import UNIT

#: Tolerances of HiGHS on rows and on reduced costs, next to numbers of about unit size.
TOLERANCE = 1e-10
#: An entry, or a distance to a bound, that is smaller than this next to the largest entry counts as zero.
ACTIVE = 1e-9
#: The largest and the smallest distance of an interior point from the bounds, relative to the radius.
MARGIN, LEAST_MARGIN = 0.3, 1e-7
#: The least width of rows, relative to the radius, that the distance from the bounds is next to: HiGHS drops numbers
#: below 1e-9.
LEAST_ROOM = 1e-6


@dataclass(eq=False)
class CutPolytope(CutSet):
    """A polytope and rows.

    Attributes
    ----------
    flat : FlatBall or None
        The polytope as a bound on a sum of absolute values; None for a box.
    low, high : ndarray
        The bounds of single entries.
    """

    flat: FlatBall | None
    low: Array
    high: Array

    def linear(self, g: Array, y: Array) -> tuple[Array, Array]:
        size = float(np.abs(g).max(initial=0.0))
        if size == 0.0:
            return self.interior.copy(), np.zeros_like(y)
        w, y, _ = self._solve(g / size, self.lower, self.upper, self.equal)
        # Rounding is relative to the vertex, so that zeros stay zeros; a mixture of vertices has some room of its own.
        noise = self.rounding(np.abs(w))
        room = np.where(self.equal, 0.0, np.minimum(2.0 * noise, 0.1 * (self.upper - self.lower)))
        return self.pulled(self._vertex(w, y, room), noise), size * y

    def find_interior(self, near: Array) -> None:
        none, zero = np.zeros(len(self.lower), dtype=bool), np.zeros_like(near)
        # The smallest number by which all bounds must be moved; at rounding size it is zero.
        w, y, _ = self._solve(zero, self.lower, self.upper, none, (1.0, np.full(len(none), -1.0), (0.0, None)))
        if self.least(zero, y) > 1e-13 * self.radius:
            raise NoPointError(y)
        while True:
            room = np.clip((self.upper - self.lower) / self.radius, LEAST_ROOM, 1.0)
            most = (-self.radius, MARGIN * self.radius)
            w, y, margin = self._solve(zero, self.lower, self.upper, self.equal, (-1.0, room, most))
            if margin > LEAST_MARGIN * self.radius or not self.tie(y):
                self.interior = self._vertex(w, np.zeros_like(y), 0.0)
                return

    def _solve(
        self,
        g: Array,
        lower: Array,
        upper: Array,
        equal: Array,
        extra: tuple[float, Array, tuple[float, float | None]] | None = None,
    ) -> tuple[Array, Array, float]:
        """A minimiser of g, the multipliers of the rows, and the value of an extra variable.

        That variable has a cost, bounds, and a coefficient by which it is added to each row on either side.
        """
        import scipy.sparse as sp
        from scipy.optimize import linprog

        flat, signed = self.flat, self.flat is not None and self.flat.signed
        above, below = np.flatnonzero(~equal & (upper < np.inf)), np.flatnonzero(~equal & (lower > -np.inf))
        M = sp.hstack([self.M, -self.M]) if signed else self.M
        M = sp.csr_array(M)
        d, k = M.shape[1], len(above) + len(below)
        inequalities, sides = sp.vstack([M[above], -M[below]]), np.concatenate([upper[above], -lower[below]])
        equalities, at = M[equal], lower[equal]
        cost = np.concatenate([g, -g]) if signed else g
        low, high = (np.zeros(d), np.full(d, np.inf)) if signed else (self.low, self.high)
        if flat is not None:
            row = sp.csr_array(np.tile(np.ravel(flat.costs), 2 if signed else 1)[None])
            if flat.tight:
                equalities, at = sp.vstack([equalities, row]), np.append(at, flat.radius)
            else:
                inequalities, sides = sp.vstack([inequalities, row]), np.append(sides, flat.radius * (1.0 - 16 * UNIT))
        if extra is not None:
            cost, column = np.append(cost, extra[0]), np.concatenate([extra[1][above], extra[1][below]])
            column = np.append(column, np.full(inequalities.shape[0] - k, max(column.min(initial=0.0), 0.0)))
            inequalities = sp.hstack([inequalities, sp.csr_array(column[:, None])])
            equalities = sp.hstack([equalities, sp.csr_array((equalities.shape[0], 1))])
            low, high = np.append(low, extra[2][0]), np.append(high, np.inf if extra[2][1] is None else extra[2][1])
        found = linprog(
            cost,
            inequalities,
            sides,
            equalities,
            at,
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
        n = len(g)
        return found.x[:n] - found.x[n : 2 * n] if signed else found.x[:n], y, float(found.x[-1])

    def _vertex(self, w: Array, y: Array, room: Array | float) -> Array:
        """The vertex anew: entries at their bounds exactly, the others from the active rows."""
        flat, w = self.flat, np.clip(w, self.low, self.high)
        close = ACTIVE * min(self.radius, float(np.abs(w).max(initial=0.0)))
        w = np.where(np.abs(w) <= close, 0.0, w) if flat is not None else w
        w = np.where(w - self.low <= close, self.low, np.where(self.high - w <= close, self.high, w))
        some = np.flatnonzero((w != 0.0) if flat is not None else (w != self.low) & (w != self.high))
        rows = np.flatnonzero(self.equal | (y != 0.0))
        K, to = self.M[rows][:, some].toarray(), np.where(y > 0.0, self.upper - room, self.lower + room)[rows]
        signs = np.sign(w)
        level = math.inf
        if flat is not None and (flat.tight or flat.norm(w) >= flat.radius * (1.0 - ACTIVE)):
            level = flat.radius if flat.tight else flat.radius * (1.0 - 16 * UNIT)
            K = np.vstack([K, (np.ravel(flat.costs) * signs)[some]])
        if not len(some) or not len(K):
            return w
        inverse = np.linalg.pinv(K, rcond=1e-12)
        for _ in range(2):
            rest = to - self.M[rows] @ w
            if flat is not None and level < math.inf:
                rest = np.append(rest, level - flat.norm(w))
            w = w.copy()
            w[some] += inverse @ rest
        return np.clip(np.where(np.abs(w) <= UNIT**2 * self.radius, 0.0, w), self.low, self.high)
