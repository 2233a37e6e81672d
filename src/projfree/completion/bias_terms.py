r"""Offsets of rows, of columns and of all entries of a matrix: minimised out, with a ridge, outside the ball.

.. math:: F(X) = \min_b \sum_i s_i\,\ell\big(X_{r_i c_i} + o_i(b), y_i\big) + \tfrac12 \kappa \|b\|^2, \qquad
          o_i(b) = b_0 + b_{r_i} + b_{c_i}

For any b, with :math:`r_i = s_i\ell'` and h its sums over all, rows and columns, convexity and the ridge give

.. math:: F(X') \ge \sum_i (s_i\ell_i - r_i (u_i + o_i)) - \tfrac{1}{2\kappa}\|h\|^2 + \langle A^T r, X'\rangle,

which is what a tangent here is: true however inexactly the offsets were found, and tight where they are optimal.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np

from projfree.algebra import UNIT, Minorant, Point
from projfree.checks import Array
from projfree.completion.offset_steps import CurvatureAlong, OffsetMap, ValueAndResidual, WithOffsets, WithSizes
from projfree.data.entries import FactoredEntriesData
from projfree.data.rows import Step, tangent_size
from projfree.data.workspace import Workspace
from projfree.deadline import expired
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.hull import Hull, HullSums, Local, Look
from projfree.objectives.intercept import Intercept
from projfree.objectives.row_steps import Curvatures, DerivativeSums, Sums, TangentSums, ValueSum

#: Newton steps for the offsets of one image, and what they may leave of the value: so little that bounds, which feel
#: the root of it, agree to all digits that are checked.
STEPS, ENOUGH = 60, 1e-20
#: Conjugate gradient steps of one solve.
MOST_STEPS = 200


class Offsets(Intercept):
    """Vectors ``(b_0, rows, columns)``; kinds that are switched off stay zero.

    Parameters
    ----------
    loss, data, outputs
        As for every intercept; the data must be observed entries.
    kinds : tuple of bool
        Whether there is an offset for all, for each row, for each column.
    kappa : float
        The ridge.
    base : float
        Added to every prediction.
    """

    constant: Array
    described, measured = " with offsets", False

    def __init__(
        self,
        loss: Loss,
        data: FactoredEntriesData,
        outputs: tuple[int, ...],
        *,
        kinds: tuple[bool, bool, bool],
        kappa: float,
        base: float,
    ) -> None:
        super().__init__(loss, data, outputs)
        self.kappa, self.base = kappa, base
        self.map = OffsetMap((data.shape(())[0], data.shape(())[1]), kinds)
        #: The largest number of terms in a sum over one offset's entries.
        most = float(data.n if kinds[0] else data.most_in_line())
        self.rounding = replace(self.rounding, units=max(data.rounding_units, most) + 2.0 * loss.rounding + 8.0)
        self.constant = self.map.zero()

    def locate(self, workspace: Workspace, points: tuple[Point, ...]) -> tuple[Array | None, ...]:
        return tuple([self.offsets_at(workspace, x) for x in points])

    def offsets_at(self, workspace: Workspace, x: Point) -> Array:
        """The offsets that are best at one point."""
        b, kappa, loss = self.guess(x), self.kappa, self.loss
        assert b is not None
        value, slope = self._look(workspace, x, b)
        for _ in range(STEPS):
            # By the ridge, the value is at most this far above its minimum over the offsets.
            left, size = ENOUGH * abs(value), float(slope @ slope)
            if 0.5 * size / kappa <= left or expired():
                break
            share = min(max(0.3 * float(np.sqrt(2.0 * kappa * left / size)), 1e-12), 0.1)
            step = self.solve(workspace, x, b, slope, share if is_squared(loss) else max(share, 1e-4))
            length, expected, here = 1.0, float(slope @ step), self._look(workspace, x, b - step)
            while here[0] > value - 0.1 * length * expected + 1e-14 * abs(value) and length > 1e-6:
                length *= 0.5
                here = self._look(workspace, x, b - length * step)
            if here[0] >= value and float(here[1] @ here[1]) >= size:  # nothing but rounding is left
                break
            b, (value, slope) = b - length * step, here
        return b

    def moved(self, step: Step, *b: Array) -> WithOffsets:
        """A step on predictions with offsets, which are given for each point or once for all."""
        return WithOffsets(step, self.map, b, self.base)

    def _look(self, workspace: Workspace, x: Point, b: Array) -> tuple[float, Array]:
        """The value of offsets and its derivative in them."""
        sums = workspace.fold(self.moved(ValueAndResidual(self.loss), b), (x,))
        return float(sums[0]) + self.penalty(b), sums[1:] + self.kappa * b

    def solve(self, workspace: Workspace, x: Point, b: Array, slope: Array, tolerance: float) -> Array:
        """Newton's step for the curvature of the loss at offsets ``b``: conjugate gradients, scaled by the diagonal."""
        sums = workspace.fold(self.moved(Curvatures(self.loss), b), (x,))
        scale = 1.0 / (sums[1:] + self.kappa)  # the first is that over all entries
        found, r = np.zeros_like(slope), slope.copy()
        z = scale * r
        d, size = z.copy(), float(r @ z)
        first = size
        for _ in range(MOST_STEPS):
            if size <= tolerance**2 * first or size == 0.0 or expired():
                break
            applied = workspace.fold(CurvatureAlong(self.moved(Curvatures(self.loss), b), d), (x,)) + self.kappa * d
            alpha = size / float(d @ applied)
            found += alpha * d
            r -= alpha * applied
            z = scale * r
            size, old = float(r @ z), size
            d = z + (size / old) * d
        return found

    def penalty(self, b: Array | None) -> float:
        """What the offsets add to the value."""
        assert b is not None
        return 0.5 * self.kappa * float(b @ b)

    def tangent(
        self,
        workspace: Workspace,
        points: tuple[Point, ...],
        b: tuple[Array | None, ...],
        *,
        keep: bool = False,
        near: bool = False,
    ) -> Evaluation:
        # Adjoints read nothing here, and the search has left all predictions: so do folds for further values.
        step = WithSizes(self.moved(TangentSums(self.loss, (None,)), *_given(b[:1])))
        packed, g = workspace.sweep(step, points[:1], keep=keep)
        own = tangent_size(1, 1)
        sums = Sums.unpack(packed[:own])
        further = tuple([self.value_with(workspace, x, c) for x, c in zip(points[1:], b[1:], strict=True)])
        m = self._tangent(sums, packed[own:], g)
        return Evaluation(points[0].alone(b[0]), sums.value + self.penalty(b[0]), m, further)

    def value_with(self, workspace: Workspace, x: Point, b: Array | None) -> Evaluation:
        value = float(workspace.fold(self.moved(ValueSum(self.loss), *_given((b,))), (x,))[0])
        return Evaluation(x.alone(b), value + self.penalty(b))

    def _tangent(self, sums: Sums, rest: Array, g: Any) -> Minorant:
        """The tangent that sums amount to; ``rest`` are the sums of residuals over offsets, and of their sizes."""
        h, sizes = rest.reshape(2, -1)
        drop = 0.5 * float(h @ h) / self.kappa
        error, spread = self.rounding.of_tangent(sums)
        # The base is part of the predictions here, but not of the function's argument.
        constant = sums.value - sums.along + self.base * float(sums.slope[0]) - drop
        terms = float(np.abs(h) @ sizes) / self.kappa + drop + 2.0 * abs(self.base) * float(sums.slope_size[0])
        return Minorant(constant, g, error + UNIT * self.rounding.units * terms, spread)

    def estimate(self, workspace: Workspace, x: Point) -> Any:
        return workspace.sweep(self.moved(DerivativeSums(self.loss), *_given((self.guess(x),))), (x,))[1]

    def hull(
        self,
        workspace: Workspace,
        points: tuple[Point, ...],
        gradient: Array | None,
        tilt: Array | None,
        look: Look | None = None,
    ) -> Hull:
        """A quadratic, offsets minimised out; for other losses with the offsets of the first point.

        That is an upper bound which touches the function there.
        """
        offsets = cache(lambda: self.offsets_at(workspace, points[0]))

        def fold(own: tuple[Point, ...], m: Array, b: Array) -> Local:
            step = self.moved(HullSums(self.loss, tuple(m.tolist())), offsets())
            here = Local.unpack(workspace.fold(step, own), len(m))
            return replace(here, value=here.value + self.penalty(offsets()))

        return super().hull(workspace, points, gradient, tilt, fold)

    def expanded(self, workspace: Workspace, points: tuple[Point, ...]) -> Local:
        # The offsets of a mixture follow its image linearly: one Newton step leads to those of each point.
        b = [self.offsets_at(workspace, points[0])]
        for x in points[1:]:
            b.append(b[0] - self.solve(workspace, x, b[0], self._look(workspace, x, b[0])[1], 1e-8))
        k = len(points) - 1
        step = self.moved(HullSums(self.loss, (0.0,) * k), *b)
        here, ways = Local.unpack(workspace.fold(step, points), k), np.array([c - b[0] for c in b[1:]])
        return Local(
            here.value + self.penalty(b[0]),
            here.gradient + self.kappa * ways @ b[0],
            here.hessian + self.kappa * ways @ ways.T,
        )


def _given(b: tuple[Array | None, ...]) -> tuple[Array, ...]:
    assert all(c is not None for c in b), "offsets are searched for before they are used"
    return cast("tuple[Array, ...]", b)
