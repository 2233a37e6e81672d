"""An intercept that is searched for on the image of each point."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import Minorant, Point, zeros
from projfree.checks import Array
from projfree.data.base import Data
from projfree.data.rows import FormImages
from projfree.data.workspace import Workspace
from projfree.losses.base import Loss
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.intercepts.base import Intercept
from projfree.objectives.intercepts.root_search import InterceptSearch, check_classes, check_positive, search
from projfree.objectives.tangent import Sums, intercept_error


class Profiled(Intercept):
    r"""For a convex loss the global minimiser over b, so that :math:`F(w) = \min_b f(w, b)` is convex.

    The gradient is that of f in w (envelope theorem). For other losses it is a local minimiser, reached by monotone
    steps from where the last point had it. It depends on the whole image, so a tangent costs two reads.
    """

    constant: Array
    described = " with intercept"

    def __init__(self, loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
        super().__init__(loss, data, outputs)
        if loss.labels:
            check_classes(loss, data, outputs)
        linked = not math.isfinite(loss.smoothness)
        if linked:
            check_positive(loss, data, outputs)
        # A regression loss that is not convex has its minimum among the targets: begin at their median.
        start = loss.constant(data.mean_target()) if loss.labels else None if linked else data.median_target()
        zero = Point(zeros(data.shape(outputs)))  # no read, because its image is zero
        self.constant = search(data.open(), loss, data, zero, np.zeros(outputs) if start is None else start, outputs)

    def locate(self, workspace: Workspace, points: tuple[Point, ...]) -> tuple[Array | None, ...]:
        moved = [x.w.any() or not self.loss.convex for x in points]  # at zero the one minimum is known
        if sum(moved) > 1:  # the predictions of all in one read
            workspace.fold(FormImages(), [x for x, away in zip(points, moved, strict=True) if away])
        shared = self.loss, self.data
        found: tuple[Array | None, ...] = ()
        for x, away in zip(points, moved, strict=True):
            found += (search(workspace, *shared, x, self.guess(x), self.outputs) if away else self.constant,)
        return found

    def near(self, workspace: Workspace, x: Point) -> Evaluation:
        """The tangent at ``x`` with the intercept that it has, which is not searched for: one read."""
        packed, g = workspace.sweep(self.tangent_step((x.intercept,)), (x,), keep=True)
        sums = Sums.unpack(packed)
        m, b = self.minorant(sums, packed[:0], g, x.intercept)
        return Evaluation(x.alone(b), sums.value, m, rest=sums.slope)

    def guess(self, x: Point) -> Array:
        b = x.intercept  # that of a point of another function means nothing here
        return self.constant if b is None or np.shape(b) != self.outputs else b

    def minorant(self, sums: Sums, rest: Array, g: Any, b: Array | None) -> tuple[Minorant, Array | None]:
        assert b is not None
        constant_error, gradient_error = self.errors(sums)
        constant_part, gradient_part = intercept_error(
            sums, b, self.units, self.constant, self.data.row_norm, *self.spread()
        )
        m = Minorant(sums.value - sums.along, g, constant_error + constant_part, gradient_error + gradient_part)
        return m, b

    def steepest(self) -> float:
        """The largest curvature where the best intercept has a closed form.

        The second derivatives then have the same mean at every best intercept, and the Hessian is that mean times the
        covariance of the rows under some weights, so at most the square of the largest norm of a row.
        """
        if self.loss.intercept_step(np.zeros(1), np.ones(1)) is None:
            raise ValueError(
                f"{self.loss!r} has no largest curvature that is known, which this step rule needs; use a solver such "
                "as `ConstrainedNewton()`, or a rule that searches: `Backtracking()` or `ExactLineSearch()` for "
                "Frank-Wolfe, `BacktrackingGradient()` for projected gradients."
            )
        return self._mean_second * self.data.row_norm**2

    @cached_property
    def _mean_second(self) -> float:
        zero = Point(zeros(self.data.shape(self.outputs)))
        return float(InterceptSearch(self.data.open(), self.loss, zero).slopes(self.constant).reshape(3, -1)[1].max())

    def spread(self) -> tuple[float, float]:
        r"""``(a, c)`` such that optimal intercepts of feasible w differ from that of w = 0 by at most a + c max|u|.

        For an elementwise convex loss the derivative increases, so the intercept moves by at most ``max|u|``. For
        softmax, comparing the class frequencies that both must reproduce gives a range of ``2 max|u|`` and the
        logarithm of the rarest frequency.
        """
        if not self.loss.coupled:
            return 0.0, 1.0
        return float(np.ptp(self.constant)) + float(np.log(len(self.constant))), 2.0
