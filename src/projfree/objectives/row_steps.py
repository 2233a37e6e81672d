"""The sums that objectives form over rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from projfree.checks import Array
from projfree.data.rows import PER_OUTPUT, SCALARS, TANGENTS, Rows, Step
from projfree.losses.base import LogLinkLoss, Loss, SmoothedLoss

#: ``sum`` as a ufunc: the same digits, with ``axis=None`` for all entries, and half the time for short arrays.
total = partial(np.add.reduce, axis=None)


def weigh(r: Array, s: Array | float) -> Array:
    """Each row of ``r`` times its weight."""
    weighted: Array = r * s if isinstance(s, float) or r.ndim == 1 else r * s[:, None]
    return weighted


def by_column(x: Array) -> Array:
    """The sum over rows, for each output; NumPy's own takes many times as long where rows have few entries."""
    return np.asarray(total(x)) if x.ndim == 1 else np.ones(len(x)) @ x


def curvature(loss: Loss, u: Array, y: Array) -> Array:
    """The curvature of a quadratic model at ``u``, never negative: the size of the second derivative."""
    second = loss.second(u, y)
    return second if loss.convex else np.abs(second)


def summed_covariance(p: Array, s: Array | float) -> Array:
    """The weighted sum over rows of diag(p) - p p^T, the second derivative of the softmax loss."""
    weighted = weigh(p, s)
    return np.asarray(np.diag(weighted.sum(axis=0)) - weighted.T @ p)


@dataclass(frozen=True)
class TangentSums(Step):
    """The sums of a tangent at the first point, laid out as `projfree.data.rows` says, and values at further points.

    ``b`` holds the intercept at each point, None where there is none.
    """

    loss: Loss
    b: tuple[Array | None, ...] = (None,)

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u, b, s = images[0], self.b[0], rows.s
        full = u if b is None else u + b
        losses, derivative = self.loss.value(full, rows.y), self.loss.derivative(full, rows.y)
        r = weigh(derivative, s)
        weighted, size = weigh(losses, s), np.abs(r)
        value = total(weighted)
        scalars = (
            value,
            value if self.loss.lower_bound >= 0.0 else total(np.abs(weighted)),
            np.vdot(r, u),
            np.vdot(size, np.abs(u)),
            0.0 if b is None else np.vdot(size, np.abs(full)),
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


@dataclass
class Sums:
    r"""The sums of a tangent over all rows; with k outputs the last three have k entries.

    ``value`` and ``size``: of the weighted losses and of their absolute values. ``along`` and ``along_size``: the
    same for r u. ``shifted``: of \|r (u + b)\|. ``square``: the weighted mean square of the derivative. ``slope``
    and ``slope_size``: of r and \|r\|. ``mean_image``: the weighted mean of u.
    """

    value: float
    size: float
    along: float
    along_size: float
    shifted: float
    square: float
    slope: Array
    slope_size: Array
    mean_image: Array

    @classmethod
    def unpack(cls, packed: Array) -> Sums:
        """From the vector that `projfree.data.rows` describes, without the values of further points."""
        return cls(*packed[:SCALARS].tolist(), *packed[SCALARS:].reshape(PER_OUTPUT, -1))

    def recentre(self, curvature: float) -> Array:
        """For a quadratic loss, move to the exact intercept; return by how much it moves."""
        shift: Array = -self.slope / curvature
        self.value += float(shift @ self.slope + 0.5 * curvature * shift @ shift)
        self.along += float(curvature * shift @ self.mean_image)
        self.slope = np.zeros(len(self.slope))
        return shift


@dataclass(frozen=True)
class ValueSum(Step):
    """The weighted mean loss at one point; ``exact`` for that of the loss that a smoothed one stands for."""

    loss: Loss
    b: Array | None = None
    exact: bool = False

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        full = images[0] if self.b is None else images[0] + self.b
        value = self.loss.exact if self.exact and isinstance(self.loss, SmoothedLoss) else self.loss.value
        return None, np.array([weigh(value(full, rows.y), rows.s).sum()])


@dataclass(frozen=True)
class InterceptSums(Step):
    """Value, derivatives, the sizes of their terms and second derivatives in the intercept ``b``, one after another.

    Derivatives and sizes have k entries; so have second ones, except for losses that couple outputs, which have k * k.
    """

    loss: Loss
    b: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0] + self.b
        losses, r = self.loss.value(u, rows.y), weigh(self.loss.derivative(u, rows.y), rows.s)
        if self.loss.coupled:
            second = summed_covariance(self.loss.mean(u), rows.s)
        else:
            second = total(weigh(self.loss.second(u, rows.y), rows.s), axis=0)
        sums = (total(weigh(losses, rows.s)), total(r, axis=0), total(np.abs(r), axis=0), second)
        return None, np.concatenate([np.ravel(each) for each in sums])


@dataclass(frozen=True)
class FloorSum(Step):
    """The weighted sum of what the errors of values are relative to besides the values."""

    loss: LogLinkLoss

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return None, np.array([weigh(self.loss.floor(rows.y), rows.s).sum()])


@dataclass(frozen=True)
class DerivativeSums(Step):
    """The weighted derivatives, whose adjoint is an estimate of a gradient, and their sum."""

    loss: Loss
    b: Array | float = 0.0

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        r = weigh(self.loss.derivative(images[0] + self.b, rows.y), rows.s)
        return r, np.ravel(by_column(r))


@dataclass(frozen=True)
class Curvatures(Step):
    """The weighted curvature of each output, or an upper bound on it that couples none, and its sums.

    At least ``damping`` times the size of the derivative, so that no row's own Newton step is longer than its inverse.
    """

    loss: Loss
    b: Array | float = 0.0
    damping: float = 0.0

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0] + self.b
        if self.loss.coupled:  # off the diagonal each row of diag(p) - p p^T adds up to its diagonal entry (Gershgorin)
            p = self.loss.mean(u)
            h = 2.0 * p * (1.0 - p)
        else:
            h = curvature(self.loss, u, rows.y)
        if self.damping > 0.0:
            h = np.maximum(h, self.damping * np.abs(self.loss.derivative(u, rows.y)))
        h = weigh(h, rows.s)
        return h, np.ravel(by_column(h))


TANGENTS.add(TangentSums)
