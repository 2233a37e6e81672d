"""The Birkhoff polytope: doubly stochastic matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.numerics.sums import UNIT
from projfree.sets.base import FEASIBILITY, ConstraintSet, OracleResult, Shape, Structure, slack
from projfree.sets.inputs import finite, largest, like, point


@dataclass(frozen=True)
class Birkhoff(ConstraintSet):
    r"""The nonnegative square matrices whose rows and columns sum to one.

    .. math:: W \ge 0, \qquad W \mathbf 1 = \mathbf 1, \qquad W^T \mathbf 1 = \mathbf 1

    The vertices are the permutation matrices. The oracle solves an assignment problem in :math:`O(n^3)`. The support is
    the value of the dual problem: for any v and :math:`u_i = \max_j (g_{ij} - v_j)`

    .. math:: \max_W \langle g, W\rangle \le \sum_i u_i + \sum_j v_j,

    with equality for the dual solution, which is computed by shortest paths. The bound is therefore valid despite
    rounding errors in the assignment; a bound on the rounding error of the sum is added. The entries of the centre are
    :math:`1/n`. There is no projection.

    References
    ----------
    Birkhoff (1946); Crouse (2016), On implementing 2D rectangular assignment algorithms.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import Birkhoff
    >>> Birkhoff().lmo(np.array([[1.0, 0.0], [3.0, 1.0]]))
    array([[1., 0.],
           [0., 1.]])
    """

    def structure(self, shape: Shape) -> Structure:
        return Structure(polytope=True)

    def check_shape(self, shape: Shape) -> None:
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise ValueError(f"`Birkhoff()` needs square matrices, got shape {shape}; use Simplex for vectors.")

    def lmo(self, g: Array) -> Array:
        return np.asarray(self.oracle(g).vertex)

    def support(self, g: Array) -> float:
        return self.oracle(-point(g)).support

    def oracle(self, g: Array, warm: object = None) -> OracleResult:
        c = finite("lmo(g)", g)
        self.check_shape(c.shape)
        if not c.any():
            return OracleResult(like(g, self.centre(c.shape)), 0.0)
        from scipy.optimize import linear_sum_assignment

        top = largest(c)
        cost, v = c / top, np.zeros(c.shape)
        column = linear_sum_assignment(cost)[1]
        v[np.arange(len(c)), column] = 1.0
        return OracleResult(like(g, v), top * _dual(cost, column))

    def reach(self, shape: Shape) -> float:
        self.check_shape(shape)
        return math.sqrt(shape[0])

    def centre(self, shape: Shape) -> Array:
        self.check_shape(shape)
        return np.full(shape, 1.0 / shape[0])

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        x, allowed = point(w), slack(w, rtol)
        self.check_shape(x.shape)
        sums = np.concatenate([x.sum(axis=0), x.sum(axis=1)])
        return bool(np.min(x) >= -allowed and np.all(np.abs(sums - 1.0) <= allowed))


def _dual(cost: Array, column: Array) -> float:
    """Return an upper bound on the support of ``-cost``, exact to rounding if the assignment ``column`` is optimal."""
    rows = np.empty_like(column)
    rows[column] = np.arange(len(column))
    # Entry (j, k): cost increase if the row assigned to column j moves to column k. Shortest paths are the dual prices.
    dearer = cost[rows] - cost[rows, np.arange(len(rows))][:, None]
    price = np.minimum.reduce(dearer, axis=0)
    for _ in range(len(rows)):
        shorter = np.minimum(price, np.min(price[:, None] + dearer, axis=0))
        if np.array_equal(shorter, price):
            break
        price = shorter
    least = np.min(cost - price, axis=1)
    # fsum is exact up to the final rounding, and each difference was rounded once.
    size = math.fsum(np.abs(least)) + math.fsum(np.abs(price))
    return -math.fsum([*least, *price]) + 4 * UNIT * size
