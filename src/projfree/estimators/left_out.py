r"""The loss of rows that were left out, told from a fit to all of them.

A row that is left out moves its own prediction from :math:`u_i` to about :math:`u_i + \gamma\,\ell'(u_i)`, with one
:math:`\gamma` for all rows, which solves

.. math:: \frac1N \sum_i s_i\,\frac{\gamma\,\ell''(u_i)}{1 + \gamma\,\ell''(u_i)} = \frac{\mathrm{df}}{N} ,

where df are the degrees of freedom of the fit and N is the sum of the weights. For squares the mean of the losses there
is generalised cross-validation, the mean squared residual over :math:`(1 - \mathrm{df}/N)^2`.

References
----------
Craven and Wahba, "Smoothing noisy data with spline functions", Numerische Mathematik 31 (1979). Xiang and Wahba, "A
generalized approximate cross validation for smoothing splines with non-Gaussian data", Statistica Sinica 6 (1996). Rad
and Maleki, "A scalable estimate of the out-of-sample prediction error via approximate leave-one-out cross-validation",
JRSS B 82 (2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.losses.base import Loss
from projfree.objectives import Objective
from projfree.objectives.row_steps import total, weigh

#: The root is found to this relative accuracy, in at most so many steps.
ACCURACY, STEPS = 1e-4, 30
#: Where the fit uses up this part of what the rows can tell, nothing is left to say how it predicts.
FULL = 0.9


@dataclass(frozen=True)
class LeftOut(Step):
    """Weighted sums of shares of curvature, of their slopes in gamma, of losses of rows left out, and of curvatures."""

    loss: Loss
    b: Array | None
    gamma: float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0] if self.b is None else images[0] + self.b
        bend = _curvatures(self.loss, u, rows.y)
        part = 1.0 / (1.0 + self.gamma * bend)
        moved = u + self.gamma * self.loss.derivative(u, rows.y)
        terms = (self.gamma * bend * part, bend * part**2, self.loss.value(moved, rows.y), bend)
        return None, np.array([total(weigh(t, rows.s)) for t in terms])


@dataclass(frozen=True)
class Scale(Step):
    """Weighted sums of squared derivatives and of curvatures."""

    loss: Loss
    b: Array | None

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0] if self.b is None else images[0] + self.b
        bend = _curvatures(self.loss, u, rows.y)
        return None, np.array([total(weigh(self.loss.derivative(u, rows.y) ** 2, rows.s)), total(weigh(bend, rows.s))])


@dataclass(frozen=True)
class Counted(Step):
    """The number of rows with some weight."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return None, np.array([np.count_nonzero(np.broadcast_to(rows.s, len(images[0])))], dtype=np.float64)


def _curvatures(loss: Loss, u: Array, y: Array) -> Array:
    """The curvature of each output, without what couples them."""
    bend = loss.majorant(u, y)
    return np.einsum("ijj->ij", bend) if loss.coupled else bend


def rows_in(f: Objective) -> float:
    """How many rows the weights stand for: their sum, and at least the number of those that are positive."""
    data = f.data
    if data.total_weight is None:
        return float(data.n)
    counted = float(f.workspace.fold(Counted(), (f.point(np.zeros(f.shape)),))[0])
    return max(data.total_weight, counted)


def scale_of(f: Objective, x: Point, b: Array | None = None) -> tuple[float, float]:
    """The weighted means of squared derivatives and of curvatures at ``x``, added over outputs.

    With the intercept ``b``, or that of ``x`` where none is given.
    """
    b = f.evaluate(x, tangent=False).intercept if b is None else b
    slope, bend = f.workspace.fold(Scale(f.loss, b), (x,))
    return float(slope), float(bend)


def left_out_loss(f: Objective, x: Point, freedom: float, n: float) -> float:
    """The mean loss of rows left out of the fit whose answer is ``x``; infinite where the fit leaves none to tell."""
    b = f.evaluate(x, tangent=False).intercept
    share = (freedom + (0 if b is None else np.size(b))) / n

    def sums(gamma: float) -> Array:
        return f.workspace.fold(LeftOut(f.loss, b, gamma), (x,))

    bend = float(sums(0.0)[3])
    if not bend > 0.0 or not share < FULL * max(1, np.size(np.zeros(f.outputs))):
        return np.inf
    # The left side is concave in gamma, so that Newton's method from below climbs to the root.
    gamma = share / bend
    for _ in range(STEPS):
        found = sums(gamma)
        if found[0] >= share * (1.0 - ACCURACY):
            return float(found[2])
        gamma += (share - found[0]) / found[1]
        if not gamma < 1e12 / bend:
            return np.inf
    return float(found[2])
