"""The intercept of an objective, which is unconstrained and optimised for each parameter.

For squares it is a linear function of the parameter, and is eliminated exactly. For other losses it is computed by a
search on the predictions of a point. A tangent is valid at any value b of the intercept: its constant is lowered by the
derivative in b times the range of the optimal intercepts, see `Rounding.of_tangent`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from projfree.algebra import UNIT, Point, is_structured, zeros
from projfree.checks import Array
from projfree.data.base import Data
from projfree.data.rows import FormPredictions
from projfree.data.workspace import Workspace
from projfree.deadline import expired
from projfree.losses.base import LogLinkLoss, Loss
from projfree.losses.squared import is_squared
from projfree.numerics.root_finding import NoRootError, find_roots
from projfree.objectives.hull import RCOND, HullSums, Local
from projfree.objectives.rounding import FEW

#: Maximum number of steps of one search, much larger than needed in practice.
MOST_STEPS = 200
#: Factor by which the damping grows after a step that fails, and decreases after a descent step.
DAMPING = 10.0


class Intercept:
    r"""The intercept of an objective as a function of its parameter.

    For squares it is :math:`b(w) = \bar y - \langle\bar x, w\rangle`, in O(d); a tangent then costs one pass.

    For other convex losses it is the global minimiser over b, so that :math:`F(w) = \min_b f(w, b)` is convex, with the
    gradient of f in w (envelope theorem); for non-convex losses it is a local minimiser, computed by descent from the
    intercept of the previous point. It depends on all predictions, so that a tangent costs two passes.

    The range of intercepts of feasible points (``spread``): for an elementwise convex loss the derivative is
    increasing, so the optimal intercept changes by at most ``max|u|``. For softmax, a comparison of the class
    frequencies at both intercepts gives a range of ``2 max|u|`` plus the negative logarithm of the rarest frequency.

    Attributes
    ----------
    searched : bool
        Whether the intercept needs a search, because the loss is not quadratic.
    constant : ndarray
        The intercept at w = 0, where every search starts.
    spread : pair of float
        ``(a, c)`` such that optimal intercepts of feasible w differ from the constant by at most a + c max|u|.
    """

    def __init__(self, loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
        self.loss, self.data, self.searched, self.spread = loss, data, not is_squared(loss), (0.0, 1.0)
        start: Array | float = 0.0
        if loss.labels:
            for labels in data.labels():  # each output needs every class with nonzero weight
                if len(labels) < (outputs[0] if loss.coupled else 2):
                    raise ValueError(
                        f"`fit_intercept=True` needs targets of every class, got only {np.ravel(labels).tolist()[:3]}: "
                        "the intercept has no finite minimum; use `fit_intercept=False`, or another loss."
                    )
        elif not self.searched:
            start = data.mean_target()
        elif not isinstance(loss, LogLinkLoss):
            start = data.quantile(0.5)  # the minimum of a non-convex loss is among the targets
        elif np.any((start := data.mean_target()) <= 0.0):
            raise ValueError(
                f"`fit_intercept=True` with {loss!r} needs a positive target in each output, got zeros only: the "
                "intercept has no finite minimum; use `fit_intercept=False`, or drop the output."
            )
        else:
            start = np.log(start)
        self.constant = np.broadcast_to(np.asarray(start, dtype=np.float64), outputs).copy()
        if self.searched:
            self.constant = search(data.open(), loss, Point(zeros(data.shape(outputs))), self.constant)
        if loss.coupled:
            self.spread = float(np.ptp(self.constant) + np.log(len(self.constant))), 2.0

    def radius(self, largest: float) -> float:
        """Return a bound on the distance of optimal intercepts from the constant, for predictions up to ``largest``."""
        return self.spread[0] + self.spread[1] * largest

    def mean_prediction(self, w: Any) -> Array:
        """Return the weighted mean of the predictions of ``w``, computed from the mean of the rows."""
        row = self.data.column_stats.mean
        return np.asarray(row.inner(w) if is_structured(row) else np.tensordot(row, w, axes=row.ndim))

    def guess(self, x: Point) -> Array:
        """Return the intercept of ``x`` if it has one of the right shape, else an estimate in O(d), without a pass."""
        b = x.intercept
        if b is not None and b.shape == self.constant.shape:
            return b
        return self.constant if self.searched else np.asarray(self.constant - self.mean_prediction(x.w))

    def locate(self, workspace: Workspace, points: tuple[Point, ...], near: bool = False) -> tuple[Array, ...]:
        """Return the optimal intercept at each point, or with ``near`` an estimate without a search."""
        if near:
            return tuple(map(self.guess, points))
        if not self.searched:
            return tuple([np.asarray(self.constant - self.mean_prediction(x.w)) for x in points])
        if any(x.w.any() for x in points):  # compute all predictions in one pass
            workspace.fold(FormPredictions(), points)
        known = [self.loss.convex and not x.w.any() for x in points]  # the constant is optimal at zero
        return tuple(
            self.constant if at_zero else search(workspace, self.loss, x, self.guess(x))
            for x, at_zero in zip(points, known, strict=True)
        )


def outer(row: Any, slope: Array) -> Any:
    """Return the outer product of a parameter with one output and the slopes of all outputs."""
    return row * float(slope) if is_structured(row) else np.multiply.outer(row, slope)


def search(workspace: Workspace, loss: Loss, x: Point, start: Array) -> Array:
    """Return the optimal intercept for the predictions of ``x``, in the shape of ``start``.

    The derivative of an elementwise convex loss is increasing, and has one root for each output. Other losses use
    damped Newton steps (Levenberg, 1944) that decrease the value, until the derivative is within rounding or no step
    succeeds; for non-convex losses the result depends on ``start``.
    """

    def look(places: Any) -> Local:
        return HullSums(loss, b=np.reshape(places, start.shape)).local(workspace, (x,))

    def slopes(places: Sequence[float]) -> list[Any]:
        here = look(places)
        return list(zip(here.gradient.tolist(), here.hessian.diagonal().tolist(), here.noise.tolist(), strict=True))

    if not loss.convex or loss.coupled:
        return _descend(look, loss, start)
    try:
        return np.array(find_roots(slopes, start.ravel().tolist())).reshape(start.shape)
    except NoRootError:
        raise ValueError(
            f"`fit_intercept=True` finds no finite intercept of {loss!r} that is best for these targets and "
            "predictions; rescale the targets and the columns of `X`, or use `fit_intercept=False`."
        ) from None


def _descend(look: Callable[[Array], Local], loss: Loss, b: Array) -> Array:
    """Minimise over the intercept by damped Newton steps.

    For a non-convex loss they use the absolute value of the curvature, and are not longer than the width of the loss,
    so that they stay in the same valley. If the curvature of softmax vanishes, decreasing damping lets the steps grow.
    """
    here, least = look(b), UNIT * loss.smoothness
    damping, wide = least, math.inf if loss.convex else 2.0 / math.sqrt(loss.smoothness)
    for _ in range(MOST_STEPS):
        if np.abs(here.gradient).max() <= here.noise.sum() or expired():
            break
        H = here.hessian if loss.convex else np.abs(here.hessian)
        # The minimum-norm step, because softmax is invariant to a common shift of its intercepts.
        step = -np.linalg.lstsq(H + damping * np.eye(b.size), here.gradient, rcond=RCOND)[0]
        new = b + np.clip(step, -wide, wide).reshape(b.shape)
        if np.array_equal(new, b):
            break
        there = look(new)
        # Near the minimum values agree up to rounding, so compare the derivatives.
        level = there.value <= here.value + FEW * UNIT * abs(here.value)
        if there.value < here.value or (level and np.abs(there.gradient).max() < np.abs(here.gradient).max()):
            b, here = new, replace(there, value=min(there.value, here.value))
            damping = max(damping / DAMPING, least)
        else:
            damping *= DAMPING
    return b
