"""The search for an intercept on the image of a point, by folds over the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT, Point, zeros
from projfree.checks import Array
from projfree.data.base import Data
from projfree.data.rows import Rows, Step
from projfree.data.workspace import Workspace
from projfree.deadline import expired
from projfree.losses.base import Loss
from projfree.numerics.newton_root import NoRootError, increasing_root, increasing_roots
from projfree.objectives.row_steps import SlopeSums, weigh

LOCAL_STEPS = 50
#: The derivative in b counts as zero at this many units of rounding of its absolute terms.
NOISE = 16.0
#: Newton in several outputs is stuck if it ends with more than this part of the derivative's absolute terms.
STUCK, SWEEPS = 1e-8, 10
#: A closed form is asked again, at the intercept that it gave, until that moves by less than this.
SETTLED, CLOSED_STEPS = 1e-9, 6
#: How far the logarithm of exponentials is brought down where they hide the targets: then the least ones that
#: `check_positive` lets pass are seen. At minus so much exponentials of moderate predictions vanish.
DOWN = 600.0

#: A look at an intercept: value, derivative, size of the derivative's absolute terms, second derivatives.
Look = tuple[float, Array, float, Array]


@dataclass(frozen=True)
class InterceptSums(Step):
    """Value, derivative in the intercept, its absolute terms and the second derivatives, at the intercept ``b``."""

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


@dataclass(frozen=True)
class AlongOutput(Step):
    """First and second derivative along one output of the intercept, and the size of the first, of a coupled loss."""

    loss: Loss
    b: Array
    output: int

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        full = images[0] + self.b
        along = np.broadcast_to(np.eye(len(self.b))[self.output], full.shape)
        r = self.loss.derivative(full, rows.y)[:, self.output] * rows.s
        bend = np.sum(self.loss.curvature(full, rows.y, along, along) * rows.s)
        return None, np.array([r.sum(), bend, np.abs(r).sum()])


def check_classes(loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
    """Refuse targets whose intercept has no finite minimum: each output needs every class, with some weight."""
    needed = outputs[0] if loss.coupled else 2
    for labels in data.labels():
        if len(labels) < needed:
            raise no_minimum(labels)


def check_positive(loss: Loss, data: Data, outputs: tuple[int, ...]) -> None:
    """Refuse targets of a loss with a logarithmic link that push its intercept to minus infinity."""
    zero = Point(zeros(data.shape(outputs)))
    slope = InterceptSearch(data.open(), loss, zero).slopes(np.full(outputs, -DOWN)).reshape(3, -1)[0]
    if np.any(slope > -1e-250):  # the mean of the targets, negated, and what is left of the exponential
        raise ValueError(
            f"`fit_intercept=True` with {loss!r} needs a positive target in each output, got zeros only: the "
            "intercept has no finite minimum; use `fit_intercept=False`, or drop the output."
        )


def no_minimum(labels: Array) -> ValueError:
    """The sentence for targets that push the intercept to infinity."""
    return ValueError(
        f"`fit_intercept=True` needs targets of every class, got only {np.ravel(labels).tolist()[:3]}: "
        "the intercept has no finite minimum; use `fit_intercept=False`, or another loss."
    )


def search(workspace: Workspace, loss: Loss, data: Data, x: Point, start: Array, outputs: tuple[int, ...]) -> Array:
    """The intercept on the image of ``x``: shape ``()`` for one output, ``(k,)`` for several.

    For losses that are not convex the result depends on where the search starts.
    """
    b = np.array(start, dtype=np.float64)
    b = b if b.shape == outputs else np.broadcast_to(b, outputs).copy()
    found = InterceptSearch(workspace, loss, x)
    try:
        if not loss.convex:
            return found.local(b)
        if not np.isfinite(loss.smoothness):
            return found.closed(b)
        if loss.coupled:
            return found.newton(b)
        return found.roots(b)
    except NoRootError:
        if loss.labels:
            raise no_minimum(np.unique(np.concatenate(data.labels()))) from None
        raise ValueError(
            f"`fit_intercept=True` finds no finite intercept of {loss!r} that is best for these targets and "
            "predictions; rescale the targets and the columns of `X`, or use `fit_intercept=False`."
        ) from None


@dataclass(frozen=True)
class InterceptSearch:
    """The folds of one search."""

    workspace: Workspace
    loss: Loss
    x: Point

    def slopes(self, b: Array) -> Array:
        """First derivatives, second ones and sizes of the first, for each output, flat."""
        return self.workspace.fold(SlopeSums(self.loss, b), (self.x,))

    def look(self, b: Array) -> Look:
        """Value, derivative, noise of the derivative and second derivatives."""
        value, size, *rest = self.workspace.fold(InterceptSums(self.loss, b), (self.x,)).tolist()
        k = max(1, b.size)
        slope, second = np.array(rest[:k]).reshape(b.shape), np.array(rest[k:])
        return value, slope, size, second.reshape(k, k) if self.loss.coupled else second.reshape(b.shape)

    def roots(self, b: Array) -> Array:
        """The root of each output's derivative, which increases; each fold is over all outputs."""

        def looks(places: Sequence[float]) -> list[tuple[float, float, float]]:
            first, second, size = self.slopes(np.array(places).reshape(b.shape)).reshape(3, -1).tolist()
            return [(f, s, NOISE * UNIT * z) for f, s, z in zip(first, second, size, strict=True)]

        return np.array(increasing_roots(looks, b.ravel().tolist())).reshape(b.shape)

    def closed(self, b: Array) -> Array:
        """The closed form of a loss that has one, and the root where predictions are too far from ``b`` for it."""
        for _ in range(CLOSED_STEPS):
            first, second, _ = self.slopes(b).reshape(3, *b.shape)
            with np.errstate(all="ignore"):
                step = self.loss.intercept_step(first, second)
                if step is None:
                    break
                # Where the targets are lost beside the exponentials, bring these down first, which settles nothing.
                lost = np.isneginf(step)
                step = np.where(lost, -np.log(second) - DOWN, step)
            if not np.isfinite(step).all():
                break
            b = np.asarray(b + step)
            if not lost.any() and np.abs(step).max() <= SETTLED:  # exact up to the square of this and rounding
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
        unit = np.eye(len(b))[j]

        def slope(c: float) -> tuple[float, float, float]:
            step = AlongOutput(self.loss, b + (c - b[j]) * unit, j)
            first, bend, size = self.workspace.fold(step, (self.x,)).tolist()
            return first, bend, NOISE * UNIT * size

        moved: Array = b + (increasing_root(slope, float(b[j])) - b[j]) * unit
        return moved

    def local(self, b: Array) -> Array:
        """A local minimiser for a loss that is not convex."""
        wide = 4.0 / np.sqrt(self.loss.smoothness)

        def direction(look: Look) -> Array:
            # Newton with the size of the curvature, so that it descends, and moves where both have almost vanished; no
            # further than the loss is wide, so that it stays in its valley.
            h = np.maximum(np.abs(look[3]), UNIT * self.loss.smoothness)
            step: Array = np.clip(-look[1] / h, -wide, wide)
            return step

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
