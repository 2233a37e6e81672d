"""What an intercept is: how predictions depend on what is minimised out besides the parameter."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, zeros
from projfree.checks import Array
from projfree.data import layout
from projfree.data.base import Data
from projfree.data.rows import Step
from projfree.data.workspace import Workspace
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.hull import Hull, Local, QuadraticHull
from projfree.objectives.hull_steps import ImageProducts
from projfree.objectives.row_steps import DerivativeSums, FloorSum, TangentSums, ValueSum
from projfree.objectives.tangent import Sums


class Intercept(ABC):
    """A strategy of an objective: where its intercept is, and what a tangent is there.

    Attributes
    ----------
    loss, data, outputs : Loss, Data, tuple of int
        The loss, the rows, and the trailing shape of predictions.
    constant : ndarray or None
        The intercept at w = 0, where every search starts; None where there is no intercept.
    """

    constant: Array | None = None
    #: What the description of an objective says about it, and whether the plan's prices were measured with it.
    described: str = ""
    measured: bool = True

    def __init__(self, loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
        self.loss, self.data, self.outputs = loss, data, outputs
        #: Each sum and each derivative err by at most this many units of rounding of their absolute terms.
        self.units = data.summation() + 2.0 * loss.rounding + 8.0 + sum(outputs)
        #: The weighted mean of what errors of losses are relative to besides the losses.
        self.floor = 0.0
        if type(loss).floor is not Loss.floor:
            self.floor = float(data.open().fold(FloorSum(loss), (Point(zeros(data.shape(outputs))),))[0])

    def steepest(self) -> float:
        """An upper bound on the curvature in the parameter, for a loss whose second derivative has none."""
        raise ValueError(
            f"{self.loss!r} without an intercept has no largest curvature, which this step rule needs; use "
            "`fit_intercept=True`, a solver such as `ConstrainedNewton()`, or a rule that searches: `Backtracking()` "
            "or `ExactLineSearch()` for Frank-Wolfe, `BacktrackingGradient()` for projected gradients."
        )

    def errors(self, sums: Sums) -> tuple[float, float]:
        """Bounds on the rounding of the constant of a tangent, and on the norm of that of its gradient."""
        return sums.errors(self.units, self.data, self.floor)

    def spread(self) -> tuple[float, float]:
        r"""``(a, c)`` such that optimal intercepts of feasible w differ from that of w = 0 by at most a + c max|u|."""
        return 0.0, 1.0

    def reach(self, b: Array | None, largest: float) -> float:
        """How far ``b`` is from the best intercepts where predictions are up to ``largest``, added over outputs."""
        if b is None or self.constant is None:
            return 0.0
        apart, factor = self.spread()
        return float(np.abs(b - self.constant).sum()) + b.size * (apart + factor * largest)

    def fits(self, b: Array, largest: float) -> bool:
        """Whether ``b`` may be the best intercept of a point whose predictions are up to ``largest``."""
        if self.constant is None:
            return False
        apart, factor = self.spread()
        slack = UNIT * self.units * (np.abs(self.constant) + largest)
        return bool(np.all(np.abs(b - self.constant) <= (apart + factor * largest) * (1.0 + UNIT * self.units) + slack))

    def locate(self, workspace: Workspace, points: tuple[Point, ...]) -> tuple[Array | None, ...]:
        """The intercept at each of the points."""
        return (None,) * len(points)

    def guess(self, x: Point) -> Array | None:
        """The intercept at ``x`` without looking at rows, as well as it is known."""
        return None

    def evaluate(self, workspace: Workspace, x: Point, also: tuple[Point, ...], *, keep: bool) -> Evaluation:
        """The value and the tangent at ``x`` in one sweep, with the values at further points."""
        points = (x, *also)
        return self.tangent(workspace, points, self.locate(workspace, points), keep=keep)

    def tangent(
        self, workspace: Workspace, points: tuple[Point, ...], b: tuple[Array | None, ...], *, keep: bool = False
    ) -> Evaluation:
        """The tangent at the first point and the values at the others, with intercepts as given."""
        packed, g = workspace.sweep(self.tangent_step(b), points, keep=keep)
        k = math.prod(self.outputs)
        own, end = layout.count(k), layout.count(k, len(points))
        sums = Sums.unpack(packed[:own])
        m, b0 = self.minorant(sums, packed[end:], g, b[0])
        values = packed[own:end].tolist()
        further = []
        for p, c, v in zip(points[1:], b[1:], values, strict=True):
            further.append(Evaluation(p.alone(c), v))
        return Evaluation(points[0].alone(b0), sums.value, m, tuple(further))

    def tangent_step(self, b: tuple[Array | None, ...]) -> Step:
        """The sums of a tangent with intercepts as given: those of `TangentSums`, which others may follow."""
        return TangentSums(self.loss, b)

    def recheck(self, workspace: Workspace, points: tuple[Point, Point]) -> tuple[Evaluation, Evaluation]:
        """The value at the second point and the tangent at the first, with their intercepts where they have some."""
        b = tuple(p.intercept for p in points)
        if self.constant is not None and any(c is None for c in b):
            # A tangent without an intercept bounds another function.
            b = tuple(c if c is not None else self.locate(workspace, (p,))[0] for c, p in zip(b, points, strict=True))
        found = self.tangent(workspace, points, b if self.constant is not None else (None, None))
        return found.also[0], found

    def value(self, workspace: Workspace, x: Point) -> Evaluation:
        """The value at ``x`` from its image."""
        return self.value_with(workspace, x, self.locate(workspace, (x,))[0])

    def value_with(self, workspace: Workspace, x: Point, b: Array | None) -> Evaluation:
        """The value at ``x`` from its image, with the intercept as given."""
        return Evaluation(x.alone(b), float(workspace.fold(ValueSum(self.loss, b), (x,))[0]))

    @abstractmethod
    def minorant(self, sums: Sums, rest: Array, g: Any, b: Array | None) -> tuple[Minorant, Array | None]:
        """The tangent that the sums of a sweep amount to, and the intercept there.

        ``rest`` are the sums of `tangent_step` behind those of `TangentSums`.
        """

    def estimate(self, workspace: Workspace, x: Point) -> Any:
        """An unbiased estimate of the gradient at ``x`` from the rows of a sample."""
        b = self.guess(x)
        return workspace.sweep(DerivativeSums(self.loss, 0.0 if b is None else b), (x,))[1]

    def hull(self, workspace: Workspace, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None) -> Hull:
        """The function on the simplex spanned by ``points``."""
        from projfree.objectives.image_hull import ImageHull

        if is_squared(self.loss):
            return QuadraticHull(points, gradient, tilt, True, partial(self._expanded, workspace))
        return ImageHull(self, workspace, points, gradient, tilt)

    def _expanded(self, workspace: Workspace, points: tuple[Point, ...]) -> Local:
        products = self.products(workspace, points)
        return Local(0.5 * float(products[0, 0]), products[1:, 0], products[1:, 1:])

    def products(self, workspace: Workspace, points: tuple[Point, ...]) -> Array:
        """For squares: the products of the residual at the first point and of the directions to the others.

        Weighted and times the curvature of the loss, with the intercept minimised out at each point: half of the first
        is the value there, the others are first and second derivatives.
        """
        return self.loss.smoothness * self._about(workspace, points, (0.0,) * len(points))

    def _about(self, workspace: Workspace, points: tuple[Point, ...], means: tuple[Array | float, ...]) -> Array:
        return workspace.fold(ImageProducts(means), points).reshape(len(points), len(points))


class NoIntercept(Intercept):
    """Predictions are images."""

    def minorant(self, sums: Sums, rest: Array, g: Any, b: Array | None) -> tuple[Minorant, Array | None]:
        constant_error, gradient_error = self.errors(sums)
        # For squares: rows that are off by e move the tangent by the derivative times e, by Cauchy-Schwarz; what is
        # left of other columns adds its square to the values, where (a + b t)^2 <= 2 a^2 + 2 b^2 t^2.
        off, slope = self.data.table_errors, math.sqrt(sums.square)
        constant_error += slope * off.targets + 2.0 * off.targets_left**2
        gradient_error += slope * off.features
        m = Minorant(sums.value - sums.along, g, constant_error, gradient_error, 2.0 * off.features_left**2)
        return m, None
