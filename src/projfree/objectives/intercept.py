"""The intercept of an objective: unconstrained, minimised out, and part of what a tangent proves.

For squares it is a linear function of the parameter, and is eliminated exactly. For other losses it is searched for on
the predictions of a point. A tangent holds at any value b of the intercept: it is charged with the derivative in b
times the range in which the optimal intercept must lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, is_structured, zeros
from projfree.checks import Array
from projfree.data import layout
from projfree.data.base import Data
from projfree.data.rows import FormImages, Rows, Step
from projfree.data.workspace import Workspace
from projfree.deadline import expired
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.numerics.root_finding import NoRootError, find_root, find_roots
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.hull import Hull, Local, PredictionHull, PredictionProducts, QuadraticHull
from projfree.objectives.row_steps import DerivativeSums, FloorSum, SlopeSums, Sums, TangentSums, ValueSum, weigh

LOCAL_STEPS = 50
#: The derivative in b counts as zero at this many units of rounding of its absolute terms.
NOISE = 16.0
#: Newton in several outputs is stuck if it ends with more than this part of the derivative's absolute terms: half of
#: the digits.
STUCK, SWEEPS = 1e-8, 10
#: A closed form is applied again, at the intercept that it gave, until that moves by less than this, whose square is
#: below rounding.
SETTLED, CLOSED_STEPS = 1e-9, 6


class Intercept:
    """How an objective treats its intercept. This class is the strategy for objectives without one.

    Attributes
    ----------
    loss, data, outputs : Loss, Data, tuple of int
        The loss, the rows, and the trailing shape of predictions.
    constant : ndarray or None
        The intercept at w = 0, where every search starts; None where there is no intercept.
    """

    constant: Array | None = None
    #: What the description of an objective says about it, and whether values are means of losses over rows alone.
    described: str = ""
    measured: bool = True
    #: Whether the intercept has to be searched for.
    searched: bool = False

    def __init__(self, loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
        self.loss, self.data, self.outputs = loss, data, outputs
        #: Each sum and each derivative err by at most this many units of rounding of their absolute terms.
        self.units = data.rounding_units + 2.0 * loss.rounding + 8.0 + sum(outputs)
        #: The weighted mean of what errors of losses are relative to besides the losses.
        self.floor = 0.0
        if type(loss).floor is not Loss.floor:
            self.floor = float(data.open().fold(FloorSum(loss), (self._zero,))[0])

    @property
    def _zero(self) -> Point:
        """The point w = 0, whose predictions take no read."""
        return Point(zeros(self.data.shape(self.outputs)))

    def steepest(self) -> float:
        """An upper bound on the curvature in the parameter, for a loss whose second derivative has none."""
        about, way = ("", "") if self.constant is not None else (" without an intercept", "`fit_intercept=True`, ")
        raise ValueError(
            f"{self.loss!r}{about} has no largest curvature, which this step rule needs; use {way}a solver such as "
            "`ConstrainedNewton()`, or a rule that searches: `Backtracking()` or `ExactLineSearch()` for Frank-Wolfe, "
            "`BacktrackingGradient()` for projected gradients."
        )

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

    def given(self, workspace: Workspace, points: tuple[Point, ...]) -> tuple[Array | None, ...]:
        """The intercept that each of the points has, located where it has none that may be one of this function."""
        if self.constant is None:
            return (None,) * len(points)
        shape = self.constant.shape
        known = [None if p.intercept is None or p.intercept.shape != shape else p.intercept for p in points]
        return tuple([self.locate(workspace, (p,))[0] if b is None else b for p, b in zip(points, known, strict=True)])

    def guess(self, x: Point) -> Array | None:
        """An approximate intercept at ``x``, without a look at the rows."""
        return None

    def mean_difference(self, x: Point, v: Point) -> Array | float:
        """The weighted mean of the difference of predictions that an intercept takes up."""
        return 0.0

    def tangent(
        self,
        workspace: Workspace,
        points: tuple[Point, ...],
        b: tuple[Array | None, ...],
        *,
        keep: bool = False,
        near: bool = False,
    ) -> Evaluation:
        """The tangent at the first point and the values at the others, with intercepts as given.

        ``near`` says that the intercept need not be the best one; the evaluation then tells the derivative in it.
        """
        packed, g = workspace.sweep(TangentSums(self.loss, b), points, keep=keep)
        own = layout.count(math.prod(self.outputs))
        sums = Sums.unpack(packed[:own])
        m, b0 = self.minorant(sums, g, b[0])
        further = zip(points[1:], b[1:], packed[own:].tolist(), strict=True)
        also = tuple([Evaluation(p.alone(c), v) for p, c, v in further])
        return Evaluation(points[0].alone(b0), sums.value, m, also, rest=sums.slope if near and self.searched else None)

    def value_with(self, workspace: Workspace, x: Point, b: Array | None) -> Evaluation:
        """The value at ``x`` from its predictions, with the intercept as given."""
        return Evaluation(x.alone(b), float(workspace.fold(ValueSum(self.loss, b), (x,))[0]))

    def minorant(self, sums: Sums, g: Any, b: Array | None) -> tuple[Minorant, Array | None]:
        """The tangent that the sums of a sweep amount to, and the intercept there."""
        constant_error, gradient_error = sums.errors(self.units, self.data.column_stats, self.floor)
        # For squares: rows that are off by e move the tangent by the derivative times e, by Cauchy-Schwarz; what is
        # left of other columns adds its square to the values, where (a + b t)^2 <= 2 a^2 + 2 b^2 t^2.
        off, slope = self.data.column_stats.errors, math.sqrt(sums.square)
        constant_error += slope * off.targets + 2.0 * off.targets_left**2
        gradient_error += slope * off.features
        m = Minorant(sums.value - sums.along, g, constant_error, gradient_error, 2.0 * off.features_left**2)
        return m, None

    def estimate(self, workspace: Workspace, x: Point) -> Any:
        """An unbiased estimate of the gradient at ``x`` from the rows of a sample."""
        b = self.guess(x)
        return workspace.sweep(DerivativeSums(self.loss, 0.0 if b is None else b), (x,))[1]

    def hull(self, workspace: Workspace, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None) -> Hull:
        """The function on the simplex spanned by ``points``."""
        if is_squared(self.loss):
            return QuadraticHull(points, gradient, tilt, True, partial(self._expanded, workspace))
        return PredictionHull(self, workspace, points, gradient, tilt)

    def _expanded(self, workspace: Workspace, points: tuple[Point, ...]) -> Local:
        products = self.products(workspace, points)
        return Local(0.5 * float(products[0, 0]), products[1:, 0], products[1:, 1:])

    def products(self, workspace: Workspace, points: tuple[Point, ...]) -> Array:
        """For squares: the products of the residual at the first point and of the directions to the others.

        Weighted and times the curvature of the loss, with the intercept minimised out at each point: half of the first
        is the value there, the others are first and second derivatives.
        """
        b = tuple([0.0 if c is None else c for c in self.locate(workspace, points)])
        return self.loss.smoothness * workspace.fold(PredictionProducts(b), points).reshape(len(points), len(points))


class FittedIntercept(Intercept):
    """What intercepts of both kinds share: the charge for a derivative that is not zero."""

    constant: Array
    described = " with intercept"

    def mean_prediction(self, w: Any) -> Array:
        """The weighted mean of the predictions of ``w``, through the mean row."""
        row = self.data.column_stats.mean
        return np.asarray(row.inner(w) if is_structured(row) else np.tensordot(row, w, axes=row.ndim))

    def mean_difference(self, x: Point, v: Point) -> Array | float:
        return self.mean_prediction(v.w - x.w) if self.loss.convex else 0.0

    def minorant(self, sums: Sums, g: Any, b: Array | None) -> tuple[Minorant, Array | None]:
        assert b is not None
        constant_error, gradient_error = sums.errors(self.units, self.data.column_stats, self.floor)
        apart, factor = self.spread()
        slope = np.abs(sums.slope) + UNIT * self.units * sums.slope_size
        constant_error += float(slope @ (np.abs((b - self.constant).ravel()) + apart))
        gradient_error += factor * self.data.column_stats.row_norm * float(np.add.reduce(slope))
        return Minorant(sums.value - sums.along, g, constant_error, gradient_error), b


class Centred(FittedIntercept):
    r"""The intercept of squares, :math:`b(w) = \bar y - \langle\bar x, w\rangle`: O(d), and one read for a tangent.

    The sums of a sweep tell by how much the rounded intercept misses the best one; values, gradients and the intercept
    are then moved there.
    """

    def __init__(self, loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
        super().__init__(loss, data, outputs)
        self.constant = data.mean_target()

    def locate(self, workspace: Workspace, points: tuple[Point, ...]) -> tuple[Array | None, ...]:
        return tuple([self.guess(x) for x in points])

    def guess(self, x: Point) -> Array:
        return np.asarray(self.constant - self.mean_prediction(x.w))

    def minorant(self, sums: Sums, g: Any, b: Array | None) -> tuple[Minorant, Array | None]:
        assert b is not None
        slope = sums.slope.reshape(self.outputs)
        moved = UNIT * self.units * self.data.column_stats.row_norm * float(np.add.reduce(np.abs(slope), axis=None))
        b = b + sums.recentre(self.loss.smoothness).reshape(self.outputs)
        m, b = super().minorant(sums, g - outer(self.data.column_stats.mean, slope), b)
        return replace(m, gradient_error=m.gradient_error + moved), b

    def estimate(self, workspace: Workspace, x: Point) -> Any:
        # With the means of all rows, which keeps the estimate unbiased.
        slope, g = workspace.sweep(DerivativeSums(self.loss, self.guess(x)), (x,))
        return g - outer(self.data.column_stats.mean, slope.reshape(self.outputs))


def outer(row: Any, slope: Array) -> Any:
    """The outer product of a parameter with one output and the slopes of all outputs."""
    return row * float(slope) if is_structured(row) else np.multiply.outer(row, slope)


class Profiled(FittedIntercept):
    r"""For a convex loss the global minimiser over b, so that :math:`F(w) = \min_b f(w, b)` is convex.

    The gradient is that of f in w (envelope theorem). For other losses it is a local minimiser, reached by monotone
    steps from where the last point had it. It depends on all predictions, so that a tangent costs two reads.
    """

    searched = True

    def __init__(self, loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
        super().__init__(loss, data, outputs)
        needed = outputs[0] if loss.coupled else 2
        for labels in data.labels() if loss.labels else ():  # each output needs every class, with some weight
            if len(labels) < needed:
                raise no_minimum(labels)
        start: Array | float = 0.0
        if not math.isfinite(loss.smoothness):
            start = _log_mean(loss, data)
        elif not loss.labels:
            start = data.quantile(0.5)  # the minimum of a loss that is not convex is among the targets
        self.constant = search(data.open(), loss, data, self._zero, start, outputs)

    def locate(self, workspace: Workspace, points: tuple[Point, ...]) -> tuple[Array | None, ...]:
        away = [x for x in points if x.w.any() or not self.loss.convex]  # at zero the one minimum is known
        if len(away) > 1:  # the predictions of all in one read
            workspace.fold(FormImages(), away)
        found: list[Array] = []
        for x in points:
            known = self.loss.convex and not x.w.any()
            b = self.constant if known else search(workspace, self.loss, self.data, x, self.guess(x), self.outputs)
            found.append(b)
        return tuple(found)

    def guess(self, x: Point) -> Array:
        b = x.intercept  # that of a point of another function means nothing here
        return self.constant if b is None or np.shape(b) != self.outputs else b

    def steepest(self) -> float:
        """The largest curvature where the best intercept has a closed form.

        The second derivatives then have the same mean at every best intercept, and the Hessian is that mean times the
        covariance of the rows under some weights, so at most the square of the largest norm of a row.
        """
        known = self.loss.intercept_step(np.zeros(1), np.ones(1)) is not None
        return self._mean_second * self.data.column_stats.row_norm**2 if known else super().steepest()

    @cached_property
    def _mean_second(self) -> float:
        slopes = InterceptSearch(self.data.open(), self.loss, self._zero).slopes(self.constant)
        return float(slopes.reshape(3, -1)[1].max())

    def spread(self) -> tuple[float, float]:
        r"""See `Intercept.spread`.

        For an elementwise convex loss the derivative increases, so the intercept moves by at most ``max|u|``. For
        softmax, comparing the class frequencies that both must reproduce gives a range of ``2 max|u|`` and the
        logarithm of the rarest frequency.
        """
        if not self.loss.coupled:
            return 0.0, 1.0
        return float(np.ptp(self.constant)) + float(np.log(len(self.constant))), 2.0


def _log_mean(loss: Loss, data: Data) -> Array | float:
    """The logarithm of the mean target, for losses with a logarithmic link; an error where it is not finite."""
    if loss.domain[0] < 0.0:
        return 0.0
    mean = data.mean_target()
    if np.any(mean <= 0.0):
        raise ValueError(
            f"`fit_intercept=True` with {loss!r} needs a positive target in each output, got zeros only: the "
            "intercept has no finite minimum; use `fit_intercept=False`, or drop the output."
        )
    return np.log(mean)


def no_minimum(labels: Array) -> ValueError:
    """The error for targets that push the intercept to infinity."""
    return ValueError(
        f"`fit_intercept=True` needs targets of every class, got only {np.ravel(labels).tolist()[:3]}: "
        "the intercept has no finite minimum; use `fit_intercept=False`, or another loss."
    )


def search(workspace: Workspace, loss: Loss, data: Data, x: Point, start: Any, outputs: tuple[int, ...]) -> Array:
    """The best intercept for the predictions of ``x``: shape ``()`` for one output, ``(k,)`` for several.

    For losses that are not convex the result depends on where the search starts.
    """
    b = np.broadcast_to(np.asarray(start, dtype=np.float64), outputs).copy()
    try:
        return InterceptSearch(workspace, loss, x).find(b)
    except NoRootError:
        if loss.labels:
            raise no_minimum(np.unique(np.concatenate(data.labels()))) from None
        raise ValueError(
            f"`fit_intercept=True` finds no finite intercept of {loss!r} that is best for these targets and "
            "predictions; rescale the targets and the columns of `X`, or use `fit_intercept=False`."
        ) from None


@dataclass(frozen=True)
class InterceptSums(Step):
    """Value, absolute terms of the derivative, derivative and second derivatives at the intercept ``b``."""

    loss: Loss
    b: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        full = images[0] + self.b
        losses, r = self.loss.value_and_derivative(full, rows.y)
        r = weigh(r, rows.s)
        if self.loss.coupled:
            second = self.loss.summed_second(full, rows.y, np.broadcast_to(rows.s, len(full)))
        else:
            second = weigh(self.loss.second(full, rows.y), rows.s).sum(axis=0)
        value, size = weigh(losses, rows.s).sum(), np.abs(r).sum()
        return None, np.concatenate([[value, size], np.ravel(r.sum(axis=0)), np.ravel(second)])


#: Value, derivative, absolute terms of the derivative and second derivatives at one intercept.
Look = tuple[float, Array, float, Array]


@dataclass(frozen=True)
class InterceptSearch:
    """A search for the intercept by folds over the predictions of ``x``."""

    workspace: Workspace
    loss: Loss
    x: Point

    def find(self, b: Array) -> Array:
        """The minimiser by the method that suits the loss, from ``b``."""
        if not self.loss.convex:
            return self.local(b)
        if not np.isfinite(self.loss.smoothness):
            return self.closed(b)
        return self.newton(b) if self.loss.coupled else self.roots(b)

    def slopes(self, b: Array) -> Array:
        """First derivatives, second ones and sizes of the first, for each output, flat."""
        return self.workspace.fold(SlopeSums(self.loss, b), (self.x,))

    def look(self, b: Array) -> Look:
        """Value, derivative, absolute terms of the derivative and second derivatives."""
        value, size, *rest = self.workspace.fold(InterceptSums(self.loss, b), (self.x,)).tolist()
        k = max(1, b.size)
        slope, second = np.array(rest[:k]).reshape(b.shape), np.array(rest[k:])
        return value, slope, size, second.reshape(k, k) if self.loss.coupled else second.reshape(b.shape)

    def roots(self, b: Array) -> Array:
        """The root of each output's derivative, which increases; each fold is over all outputs."""

        def looks(places: Sequence[float]) -> list[tuple[float, float, float]]:
            first, second, size = self.slopes(np.array(places).reshape(b.shape)).reshape(3, -1).tolist()
            return [(f, s, NOISE * UNIT * z) for f, s, z in zip(first, second, size, strict=True)]

        return np.array(find_roots(looks, b.ravel().tolist())).reshape(b.shape)

    def closed(self, b: Array) -> Array:
        """The closed form of a loss that has one, and the root where predictions are too far from ``b`` for it."""
        for _ in range(CLOSED_STEPS):
            first, second, _ = self.slopes(b).reshape(3, *b.shape)
            with np.errstate(all="ignore"):
                step = self.loss.intercept_step(first, second)
            if step is None or not np.isfinite(step).all():
                break
            b = np.asarray(b + step)
            if np.abs(step).max() <= SETTLED:
                return b
        return self.roots(b)

    def newton(self, b: Array) -> Array:
        """Newton in all outputs of a coupled loss together."""

        def direction(look: Look) -> Array:
            # The Hessian may be singular (softmax does not see a common shift), so steps have least norm.
            with np.errstate(over="ignore", invalid="ignore"):
                step: Array = -np.linalg.lstsq(look[3], look[1], rcond=1e-14)[0]
            return step

        for _ in range(SWEEPS):
            b, look = self._descend(b, direction)
            if np.abs(look[1]).max() <= STUCK * look[2]:
                break
            for j in range(len(b)):  # slow, but out of any place where the curvature has vanished
                b = self._along(b, j)
        return b

    def _along(self, b: Array, j: int) -> Array:
        """The minimiser in one output of the intercept."""
        unit = np.eye(len(b))[j]

        def slope(c: float) -> tuple[float, float, float]:
            _, first, size, second = self.look(b + (c - b[j]) * unit)
            return float(first[j]), float(second[j, j]), NOISE * UNIT * size

        return np.asarray(b + (find_root(slope, float(b[j])) - b[j]) * unit)

    def local(self, b: Array) -> Array:
        """A local minimiser for a loss that is not convex."""
        wide = 4.0 / np.sqrt(self.loss.smoothness)

        def direction(look: Look) -> Array:
            # Newton with the size of the curvature, so that it descends, and moves where both have almost vanished; no
            # further than the loss is wide, so that it stays in its valley.
            h = np.maximum(np.abs(look[3]), UNIT * self.loss.smoothness)
            return np.asarray(np.clip(-look[1] / h, -wide, wide))

        return self._descend(b, direction)[0]

    def _descend(self, b: Array, direction: Callable[[Look], Array]) -> tuple[Array, Look]:
        """Monotone descent in b; ends at a derivative of rounding size, or where no step helps."""
        here = self.look(b)
        for _ in range(LOCAL_STEPS):
            if np.abs(here[1]).max() <= NOISE * UNIT * here[2]:
                break
            step = direction(here)
            if expired() or not np.isfinite(step).all():  # no curvature left to speak of
                break
            for power in range(30):
                trial = b + step * 0.5**power
                there = self.look(trial)
                # Close to the minimum values agree to rounding; there the derivative decides.
                level = there[0] <= here[0] + 4.0 * UNIT * abs(here[0])
                if there[0] < here[0] or (level and np.abs(there[1]).max() < np.abs(here[1]).max()):
                    break
            else:
                break
            b, here = trial, (min(there[0], here[0]), *there[1:])
        return b, here
