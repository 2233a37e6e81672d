r"""The mean loss at observed entries, minimised over the offsets (bias terms) of rows, columns and all entries.

.. math:: F(X) = \min_b \sum_i s_i\,\ell\big(X_{r_i c_i} + o_i(b), y_i\big) + \tfrac12 \kappa \|b\|^2, \qquad
          o_i(b) = \text{base} + b_0 + b_{r_i} + b_{c_i}

For any b, with :math:`r_i = s_i\ell'` and h its sums over all entries, rows and columns, convexity and the ridge give

.. math:: F(X') \ge \sum_i (s_i\ell_i - r_i (u_i + o_i)) - \tfrac{1}{2\kappa}\|h\|^2 + \text{base} \sum_i r_i
                  + \langle A^T r, X'\rangle,

This is the tangent used here. It is valid for any offsets b, and tight if they are optimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from projfree.algebra import UNIT, Pattern
from projfree.checks import Array, at_least
from projfree.deadline import expired
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared

#: Smallest ridge of an offset, in ratings, because bounds divide by it.
MIN_RIDGE = 1e-6
#: Number of entries that are processed at a time, to limit temporary arrays.
BLOCK = 1 << 18
#: Relative tolerance of the minimisation over offsets; the error of bounds is its square root.
OFFSET_TOL = 1e-16


class Tangent(NamedTuple):
    """A value and a tangent, with bounds on the rounding errors of its constant and (in norm) of its gradient."""

    value: float
    constant: float
    gradient: Any
    constant_error: float
    gradient_error: float


class ObservedLoss:
    """Weighted mean of a loss over observed entries, as a function of the predictions without offsets.

    The loss must be elementwise and convex with bounded curvature. The ``ridge`` of an offset is equivalent to this
    number of ratings of zero. ``kinds`` selects a common offset, row offsets and column offsets. ``base`` is a constant
    that is added to all predictions.
    """

    def __init__(
        self,
        pattern: Pattern,
        y: Array,
        weight: Array | None,
        loss: Loss,
        *,
        ridge: float = 3.0,
        kinds: tuple[bool, bool, bool] = (True, True, True),
        base: float = 0.0,
    ) -> None:
        if not loss.convex or loss.coupled or not math.isfinite(loss.smoothness):
            raise TypeError(
                "`MatrixCompletion(loss=...)` must be a convex loss of one prediction with a largest curvature, got "
                f"{loss!r}; use `Squared()`, `Huber()` or `Logistic()`."
            )
        self.pattern, self.y, self.weight, self.loss = pattern, y, weight, loss
        self.ridge, self.kinds, self.base = at_least("ridge", ridge, MIN_RIDGE), kinds, float(base)
        self.n = len(y)
        self.kappa = loss.smoothness * self.ridge / self.n
        #: Cache of the regression targets and weights of rows and columns, which are constant for squares.
        self.regressions: dict[int, Any] = {}

    @property
    def s(self) -> Array | float:
        """The weight of each entry."""
        return 1.0 / self.n if self.weight is None else self.weight

    def offsets(self, b: Array) -> Array:
        """Return the base plus the offsets at each entry."""
        m, at = self.pattern.shape[0], self.pattern
        out = np.full(self.n, self.base + b[0])
        if self.kinds[1]:
            out += np.repeat(b[1 : 1 + m], np.diff(at.indptr))
        if self.kinds[2]:
            out += b[1 + m :][at.indices]
        return out

    def sums(self, r: Array) -> Array:
        """Return the sums of ``r`` over all entries, each row and each column; zero without such an offset."""
        (m, n), at = self.pattern.shape, self.pattern
        out = np.zeros(1 + m + n)
        if self.kinds[0]:
            out[0] = r.sum()
        if self.kinds[1]:
            out[1 : 1 + m] = np.bincount(at.rows, weights=r, minlength=m)
        if self.kinds[2]:
            out[1 + m :] = np.bincount(at.indices, weights=r, minlength=n)
        return out

    def penalty(self, b: Array) -> float:
        """Return the ridge penalty of the offsets."""
        return 0.5 * self.kappa * float(b @ b)

    def best_offsets(self, u: Array, start: Array | None = None) -> Array:
        """Minimise over the offsets for given predictions, by Newton's method."""
        m, n = self.pattern.shape
        b = np.zeros(1 + m + n) if start is None or len(start) != 1 + m + n else start
        value, slope = self._value_and_slope(u, b)
        for _ in range(60):  # usually a few steps suffice
            # By strong convexity, the value is at most |slope|^2 / (2 kappa) above its minimum over the offsets.
            allowed, size = OFFSET_TOL * abs(value), float(slope @ slope)
            if 0.5 * size / self.kappa <= allowed or expired():
                break
            share = min(max(0.3 * math.sqrt(2.0 * self.kappa * allowed / size), 1e-12), 0.1)
            step = self._newton_step(u, b, slope, share if is_squared(self.loss) else max(share, 1e-4))
            length, expected, there = 1.0, float(slope @ step), self._value_and_slope(u, b - step)
            while there[0] > value - 0.1 * length * expected + 1e-14 * abs(value) and length > 1e-6:
                length *= 0.5
                there = self._value_and_slope(u, b - length * step)
            if there[0] >= value and float(there[1] @ there[1]) >= size:  # only rounding errors are left
                break
            b, (value, slope) = b - length * step, there
        return b

    def _value_and_slope(self, u: Array, b: Array) -> tuple[float, Array]:
        """Return the value for given offsets, and its gradient with respect to them."""
        r, losses = self._with_offsets(u, b), 0.0
        for part, s in self._blocks():
            losses += float(np.sum(s * self.loss.value(r[part], self.y[part])))
            r[part] = s * self.loss.derivative(r[part], self.y[part])
        return losses + self.penalty(b), self.sums(r) + self.kappa * b

    def _with_offsets(self, u: Array, b: Array) -> Array:
        """Return the predictions plus offsets."""
        full = self.offsets(b)
        full += u
        return full

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield ranges of entries and their weights, to avoid temporary arrays over all entries."""
        for start in range(0, self.n, BLOCK):
            part = slice(start, start + BLOCK)
            yield part, 1.0 / self.n if self.weight is None else self.weight[part]

    def _newton_step(self, u: Array, b: Array, slope: Array, tolerance: float) -> Array:
        """Solve for a Newton step by conjugate gradients with a diagonal preconditioner."""
        from scipy.sparse.linalg import LinearOperator, cg

        h = self._with_offsets(u, b)
        for part, s in self._blocks():
            h[part] = s * self.loss.second(h[part], self.y[part])

        def curvature(d: Array) -> Array:
            change = self.offsets(d)
            change -= self.base
            change *= h
            return self.sums(change) + self.kappa * d

        shape, diagonal = (len(b), len(b)), self.sums(h) + self.kappa
        scaling = LinearOperator(shape, matvec=lambda r: r / diagonal, dtype=np.float64)
        system = LinearOperator(shape, matvec=curvature, dtype=np.float64)
        step, _ = cg(system, slope, rtol=tolerance, maxiter=200, M=scaling)
        return np.asarray(step)

    def value(self, u: Array, b: Array) -> float:
        """Return the value for given offsets."""
        return self._value_and_slope(u, b)[0]

    def tangent(self, u: Array, b: Array) -> Tangent:
        """Return the tangent; its gradient holds the values at the observed entries."""
        full, r = self._with_offsets(u, b), np.empty(self.n)
        value = size = along = along_size = square = 0.0
        for part, s in self._blocks():
            losses = s * self.loss.value(full[part], self.y[part])
            derivative = self.loss.derivative(full[part], self.y[part])
            r[part] = s * derivative
            value, size = value + float(losses.sum()), size + float(np.abs(losses).sum())
            along += float(r[part] @ full[part])
            along_size += float(np.abs(r[part]) @ np.abs(full[part]))
            square += float(r[part] @ derivative)
        h, slope, sizes = self.sums(r), float(r.sum()), self.sums(np.abs(r, out=full))
        drop = 0.5 * float(h @ h) / self.kappa
        constant = value - along + self.base * slope - drop
        # Rounding errors of sums of n terms in any order, and of losses and derivatives.
        unit = UNIT * (self.n + 2.0 * self.loss.rounding + 8.0)
        terms = size + along_size + 2.0 * abs(self.base) * float(full.sum())
        terms += float(np.abs(h) @ sizes) / self.kappa + drop
        return Tangent(value + self.penalty(b), constant, r, unit * terms, unit * math.sqrt(square) + 1e-290)

    # ------------------------------------------------------------ scales

    @cached_property
    def offsets_only(self) -> Array:
        """The optimal offsets if the matrix is zero."""
        return self.best_offsets(np.zeros(self.n))

    @cached_property
    def value_without_offsets(self) -> float:
        """The mean loss if each prediction is the base."""
        return float(np.sum(self.s * self.loss.value(np.full(self.n, self.base), self.y)))

    @cached_property
    def target_norm(self) -> float:
        """Euclidean norm of the targets minus the base, clipped for losses with bounded slope."""
        slope = self.loss.derivative(np.full(self.n, self.base), self.y)
        return float(np.linalg.norm(slope)) / self.loss.smoothness

    @property
    def unit(self) -> float:
        """The magnitude of a target, rounded to a power of 1,024: one for usual ratings.

        The initial factors are proportional to its square root, so that sweeps do not depend on the unit of the
        ratings.
        """
        size = self.target_norm / math.sqrt(self.n)
        return float(1024.0 ** round(math.log(size, 1024.0))) if size > 0.0 else 1.0
