r"""Faces of a `FlatBall` of :math:`l_p` norms of groups, p between 1 and infinity and not 2.

.. math:: \nabla^2 \|w\|_p = \frac{p-1}{\|w\|_p} \Bigl(\operatorname{diag}(y^{p-2}) - u u^T\Bigr), \qquad
          y = |w|/\|w\|_p,\ u = \operatorname{sgn}(w)\, y^{p-1} .
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.numerics.flat_groups import LEAST, Groups
from projfree.numerics.symmetric import solve_semidefinite

#: For p < 2 entries smaller than this part of their group stay as they are: there the curvature is without bound.
SMALLEST = 1e-100


class Powers(Groups):
    """Where the size of a group is another norm than the Euclidean one."""

    landings = 4

    def face(self) -> tuple[Array, Array, Array, Array]:
        p, sizes = self.ball.exponent, self.ball.sizes(self.w.T)
        by = np.where(sizes > 0.0, sizes, 1.0)
        part = np.abs(self.w) / by[self.groups]
        on = part > SMALLEST if p < 2.0 else np.broadcast_to((sizes > 0.0)[self.groups], self.w.shape)
        rows, columns = np.nonzero(on)
        group, part = self.groups[columns], part[on]
        unit, bend = np.sign(self.w[on]) * part ** (p - 1.0), self.level * (p - 1.0) * self.ball.costs / by
        A = np.where(rows[:, None] == rows, self.matrix[np.ix_(columns, columns)], 0.0)
        A -= np.where(group[:, None] == group, bend[group] * unit * unit[:, None], 0.0)
        A[np.diag_indices_from(A)] += bend[group] * part ** (p - 2.0)
        outward = self.ball.costs[group] * unit
        sides = np.column_stack([-(self.slope[on] + self.level * outward), outward])
        steps = solve_semidefinite(A, sides, self.steepest) if len(group) else sides
        return on, steps[:, 0], steps[:, 1], outward

    def kept(self, new: Array) -> Array:
        near = super().kept(new)
        if self.ball.exponent > 2.0:
            return near
        crossed = near * self.w < 0.0  # the curvature changes without bound there: descent decides
        return np.where(crossed, LEAST * self.w, near) if crossed.any() else near
