"""Sums over rows that objectives need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from projfree.checks import Array
from projfree.data.rows import TANGENTS, Rows, Step
from projfree.losses.base import Loss, SmoothedLoss
from projfree.losses.softmax import Softmax

#: ``sum`` as a ufunc: the same digits, with ``axis=None`` for all entries, in half the time for short arrays.
total = partial(np.add.reduce, axis=None)


def weigh(r: Array, s: Array | float) -> Array:
    """Multiply each row of ``r`` by its weight."""
    weighted: Array = r * s if isinstance(s, float) or r.ndim == 1 else r * s.reshape(-1, *[1] * (r.ndim - 1))
    return weighted


def by_column(x: Array) -> Array:
    """Sum over the rows for each output; NumPy's sum is many times slower for rows with few entries."""
    return np.asarray(total(x)) if x.ndim == 1 else np.tensordot(np.ones(len(x)), x, axes=1)


class Curvature:
    """The weighted second derivatives of a loss at the predictions of some rows.

    Parameters
    ----------
    loss, u, rows
        The loss, the predictions, and the targets and weights.
    model : bool
        Whether to use the absolute values for non-convex losses, so that the curvature of a model is non-negative.
    """

    def __init__(self, loss: Loss, u: Array, rows: Rows, model: bool = False) -> None:
        self.s = rows.s
        # For softmax, diag(p) - p p^T for each row, without forming a matrix.
        self.p = loss.mean(u) if type(loss) is Softmax else None
        self.h = np.zeros(0) if self.p is not None else weigh(loss.second(u, rows.y), rows.s)
        if model and not loss.convex:
            self.h = np.abs(self.h)

    def times(self, a: Array) -> Array:
        """Return the products with an array of the shape of the predictions."""
        if self.p is not None:
            return weigh(self.p * (a - np.einsum("ij,ij->i", self.p, a)[:, None]), self.s)
        return np.asarray(self.h * a if self.h.ndim == a.ndim else np.einsum("nij,nj->ni", self.h, a))

    def summed(self) -> Array:
        """Return the sum over the rows, a matrix over the outputs."""
        if self.p is not None:
            weighted = weigh(self.p, self.s)
            return np.asarray(np.diag(weighted.sum(axis=0)) - weighted.T @ self.p)
        sums = by_column(self.h)
        return sums.reshape(1, 1) if sums.ndim == 0 else np.diag(sums) if self.h.ndim < 3 else sums

    def products(self, ways: Sequence[Array], first: int) -> tuple[Array, Array]:
        """Return inner products of the first directions with all, and of all with the intercepts of the outputs."""
        bent = [self.times(a) for a in ways]
        flat = [np.array([a.ravel() for a in each]) for each in (bent[:first], ways)]
        return flat[0] @ flat[1].T, np.array([np.ravel(by_column(h)) for h in bent])


@dataclass(frozen=True)
class TangentSums(Step):
    """Compute the sums of a tangent at the first point, ordered as in `projfree.data.rows`, and further values.

    ``b`` contains the intercept at each point, None if there is none. Values are computed at all points.
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

    ``value`` and ``size``: of the weighted losses and of their absolute values. ``along`` and ``along_size``: of r u
    and its absolute values. ``shifted``: of \|r (u + b)\|. ``square``: the weighted mean square of the derivative.
    ``slope`` and ``slope_size``: of r and \|r\|. ``mean_image``: the weighted mean of u.
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

    def recentre(self, curvature: float) -> Array:
        """For a quadratic loss, convert the sums to those at the optimal intercept; return its change."""
        shift: Array = -self.slope / curvature
        self.value += float(shift @ self.slope + 0.5 * curvature * shift @ shift)
        self.along += float(curvature * shift @ self.mean_image)
        self.slope = np.zeros(len(self.slope))
        return shift


@dataclass(frozen=True)
class ValueSum(Step):
    """Compute the weighted mean loss at one point; with ``exact`` that of the loss before smoothing."""

    loss: Loss
    b: Array | None = None
    exact: bool = False

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        full = images[0] if self.b is None else images[0] + self.b
        value = self.loss.exact if self.exact and isinstance(self.loss, SmoothedLoss) else self.loss.value
        return None, np.array([weigh(value(full, rows.y), rows.s).sum()])


@dataclass(frozen=True)
class SquaredDifference(Step):
    """Compute the weighted sum of squares of the difference of two predictions minus ``shift``."""

    shift: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return None, np.array([weigh((images[1] - images[0] - self.shift) ** 2, rows.s).sum()])


@dataclass(frozen=True)
class Curvatures(Step):
    """Compute the weighted curvature of each output, or a separable upper bound for coupled outputs, and its sums.

    It is at least ``damping`` times the absolute value of the derivative, so that the Newton step of a single row is at
    most ``1 / damping``.
    """

    loss: Loss
    b: Array | float = 0.0
    damping: float = 0.0

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0] + self.b
        if self.loss.coupled:  # off-diagonal entries of diag(p) - p p^T sum to the diagonal one (Gershgorin)
            p = self.loss.mean(u)
            h = weigh(2.0 * p * (1.0 - p), rows.s)
        else:
            h = weigh(np.abs(self.loss.second(u, rows.y)), rows.s)
        if self.damping > 0.0:
            h = np.maximum(h, self.damping * weigh(np.abs(self.loss.derivative(u, rows.y)), rows.s))
        return h, np.ravel(by_column(h))


TANGENTS.add(TangentSums)
