"""What objectives ask of rows: the sums of a tangent, of values, of slopes in the intercept, and of derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from projfree.checks import Array
from projfree.data import layout
from projfree.data.native import register_step
from projfree.data.rows import Rows, Step
from projfree.losses.base import Loss

#: ``sum`` as a ufunc: the same digits, with ``axis=None`` for all entries, and half the time for short arrays.
total = partial(np.add.reduce, axis=None)


def weigh(r: Array, s: Array | float) -> Array:
    """Each row of ``r`` times its weight."""
    weighted: Array = r * s if isinstance(s, float) or r.ndim == 1 else r * s[:, None]
    return weighted


def by_column(x: Array) -> Array:
    """The sum over rows, for each output; NumPy's own takes many times as long where rows have few entries."""
    return np.asarray(total(x)) if x.ndim == 1 else np.ones(len(x)) @ x


def products(r: Array, size: Array, u: Array) -> tuple[float, float]:
    """The sums of ``r u`` and of ``|r u|``, where ``size`` is ``|r|``."""
    return float(np.vdot(r, u)), float(np.vdot(size, np.abs(u)))


@dataclass(frozen=True)
class TangentSums(Step):
    """The sums of a tangent at the first point, whose layout `data.layout` states, and values at further points.

    Attributes
    ----------
    loss : Loss
        The loss of a row.
    b : tuple of (ndarray or None)
        The intercept at each point, None where there is none.
    """

    sums_residuals = True
    loss: Loss
    b: tuple[Array | None, ...] = (None,)

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u, b, s = images[0], self.b[0], rows.s
        full = u if b is None else u + b
        losses, derivative = self.loss.value_and_derivative(full, rows.y)
        r = weigh(derivative, s)
        weighted, size = weigh(losses, s), np.abs(r)
        value = total(weighted)
        scalars = (
            value,
            value if self.loss.least >= 0.0 else total(np.abs(weighted)),
            *products(r, size, u),
            0.0 if b is None else products(r, size, full)[1],
            np.vdot(r, derivative),
        )
        further = []
        for v, c in zip(images[1:], self.b[1:], strict=True):
            further.append(total(weigh(self.loss.value(v if c is None else v + c, rows.y), s)))
        if r.ndim == 1:
            return r, np.array((*scalars, total(r), total(size), total(u * s), *further))
        mean = s * by_column(u) if isinstance(s, float) else s @ u
        by_output = np.array((by_column(r), by_column(size), mean))
        return r, np.concatenate([scalars, by_output.ravel(), further])

    def residual_sum(self, sums: Array, outputs: tuple[int, ...]) -> Array:
        first = layout.SCALARS + layout.SLOPE
        return sums[first : first + math.prod(outputs)].reshape(outputs)


@dataclass(frozen=True)
class ValueSum(Step):
    """The weighted mean loss at one point."""

    loss: Loss
    b: Array | None = None

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        full = images[0] if self.b is None else images[0] + self.b
        return None, np.array([weigh(self.loss.value(full, rows.y), rows.s).sum()])


@dataclass(frozen=True)
class ValueAndResidual(Step):
    """The weighted mean loss at one point, and the weighted derivatives as residuals."""

    loss: Loss

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        losses, derivative = self.loss.value_and_derivative(images[0], rows.y)
        return weigh(derivative, rows.s), np.array([weigh(losses, rows.s).sum()])


@dataclass(frozen=True)
class SlopeSums(Step):
    """For each output the sums of first derivatives in the intercept, of second ones, and of the sizes of the first.

    For losses that act on each output by itself; an array of shape ``(3, k)``, flat.

    Attributes
    ----------
    loss, b : Loss, ndarray
        The loss and the intercept.
    """

    loss: Loss
    b: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        first, second = self.loss.slopes(images[0] + self.b, rows.y)
        each = 1.0
        if isinstance(rows.s, float):
            each = rows.s
        else:
            first, second = weigh(first, rows.s), weigh(second, rows.s)
        sums = (total(first, axis=0), total(second, axis=0), total(np.abs(first), axis=0))
        return None, each * np.array(sums).ravel()


@dataclass(frozen=True)
class FloorSum(Step):
    """The weighted sum of what the errors of values are relative to besides the values."""

    loss: Loss

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        floor = self.loss.floor(rows.y)
        return None, np.array([0.0 if floor is None else weigh(floor, rows.s).sum()])


@dataclass(frozen=True)
class DerivativeSums(Step):
    """The weighted derivatives, whose adjoint is an estimate of a gradient, and their sum."""

    sums_residuals = True
    loss: Loss
    b: Array | float = 0.0

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        r = weigh(self.loss.derivative(images[0] + self.b, rows.y), rows.s)
        return r, np.ravel(by_column(r))


@dataclass(frozen=True)
class Curvatures(Step):
    """The weighted curvature of each output, for losses that act on each by itself, and its sums."""

    sums_residuals = True
    loss: Loss
    b: Array | float = 0.0

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        h = weigh(self.loss.majorant(images[0] + self.b, rows.y), rows.s)
        return h, np.ravel(by_column(h))


@dataclass(frozen=True)
class DiagonalCurvatures(Step):
    """The weighted curvature of each output, or an upper bound on it that couples none."""

    loss: Loss
    b: Array | float = 0.0

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return weigh(self.loss.diagonal_majorant(images[0] + self.b, rows.y), rows.s), np.zeros(0)


for _step, _kind in ((TangentSums, "tangent"), (ValueSum, "values"), (SlopeSums, "slopes")):
    register_step(_step, _kind)
