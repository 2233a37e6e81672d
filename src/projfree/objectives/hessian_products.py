r"""Products with the Hessian of an objective, intercept minimised out, for parameters too many to form it.

.. math:: H v = \sum_i s_i A_i^T \ell''_i \big((A v)_i - c\big), \qquad
          \sum_i s_i \ell''_i \big((A v)_i - c\big) = 0,

with c = 0 where there is no intercept: the Schur complement without a matrix.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import Point, frozen, is_structured
from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.data.workspace import Workspace
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.objectives.intercepts.base import Intercept
from projfree.objectives.intercepts.centred import outer
from projfree.objectives.row_steps import Curvatures, by_column, weigh

if TYPE_CHECKING:
    from projfree.objectives.base import SmoothFunction
    from projfree.objectives.quadratic import QuadraticForm


class HessianProducts(ABC):
    """The Hessian of a function at one point, known by its products."""

    @abstractmethod
    def product(self, v: Array) -> Array:
        """The product with ``v``, which has the shape of a parameter."""

    def product_of(self, v: Point) -> Array:
        """The product with a point; a mixture that it is part of may then have its image for nothing."""
        return self.product(v.w)

    @abstractmethod
    def diagonal(self) -> Array:
        """About the size of the entries of the diagonal, of the shape of a parameter; may cost one read.

        A scale for other methods, not a bound: the intercept and how curvature goes with features are left out.
        """


@dataclass(frozen=True)
class FormedProducts(HessianProducts):
    """A Hessian that was formed, of shape ``(D, D)``."""

    H: Array
    shape: tuple[int, ...]

    def product(self, v: Array) -> Array:
        return np.asarray(self.H @ v.ravel()).reshape(self.shape)

    def diagonal(self) -> Array:
        return np.diag(self.H).reshape(self.shape)


class FormProducts(HessianProducts):
    """The matrix of a quadratic form, which acts on each column of a parameter."""

    def __init__(self, f: QuadraticForm) -> None:
        self.f = f

    def product(self, v: Array) -> Array:
        self.f._workspace.count += 1
        return np.asarray(self.f.H @ v)

    def diagonal(self) -> Array:
        return np.multiply.outer(np.diag(self.f.H), np.ones(self.f.shape[1:]))


class SlopeProducts(HessianProducts):
    """The Hessian of a quadratic, whose products are differences of gradients."""

    def __init__(self, f: SmoothFunction) -> None:
        self._f, self._at_zero = f, f.minorant(f.point(np.zeros(f.shape))).gradient

    def product(self, v: Array) -> Array:
        return np.asarray(self._f.minorant(self._f.point(v)).gradient - self._at_zero)

    def diagonal(self) -> Array:
        ones = np.ones(self._f.shape)
        return np.full(ones.shape, float(np.vdot(ones, self.product(ones))) / ones.size)


@dataclass(frozen=True)
class CurvatureTimes(Step):
    """The weighted curvature at the first image times the last image less ``shift``, and its sums.

    Attributes
    ----------
    loss : Loss
        The loss.
    b : ndarray or float
        The intercept at the point of the first image.
    shift : ndarray or float
        What is taken off the last image.
    """

    sums_residuals = True
    loss: Loss
    b: Array | float
    shift: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        a = images[-1] - self.shift
        if is_squared(self.loss):  # the same everywhere
            bent = self.loss.smoothness * a
        else:
            bent = self.loss.majorant_times(images[0] + self.b, rows.y, a)
        r = weigh(bent, rows.s)
        return r, np.ravel(by_column(r))


@dataclass(frozen=True)
class SummedCurvature(Step):
    """The weighted sum of the curvatures of a loss that couples its outputs."""

    loss: Loss
    b: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0] + self.b
        return None, self.loss.summed_second(u, rows.y, np.broadcast_to(rows.s, len(u))).ravel()


class RowProducts(HessianProducts):
    """The Hessian of a mean of losses over rows: one read a product, two where an intercept couples outputs.

    With an intercept and a loss that is neither quadratic nor coupled one read more is made at first: it tells how
    gradients change with the intercept.
    """

    def __init__(self, intercept: Intercept, workspace: Workspace, x: Point) -> None:
        self._intercept, self._workspace, self._x = intercept, workspace, x
        self._free, self._loss = intercept.constant is not None, intercept.loss
        self._own: Array | None = None
        self._cross: Any = None
        self._constant = is_squared(self._loss)
        self._b: Array | float = 0.0
        if self._constant:
            return
        (b,) = intercept.locate(workspace, (x,))
        self._b = 0.0 if b is None else b
        if self._free and self._loss.coupled:
            k = math.prod(intercept.outputs)
            self._own = workspace.fold(SummedCurvature(self._loss, self._b), (x,)).reshape(k, k)
        elif self._free:
            sums, self._cross = workspace.sweep(Curvatures(self._loss, self._b), (x,))
            self._own = sums.reshape(intercept.outputs)

    def product(self, v: Array) -> Array:
        return self.product_of(Point(frozen(np.array(v))))

    def product_of(self, v: Point) -> Array:
        if not self._free:
            return np.asarray(self._sweep(v, 0.0)[1])
        # About the mean, so that little is left to be taken off.
        shift = self._mean(v.w)
        if self._loss.coupled:
            rest = self._workspace.fold(CurvatureTimes(self._loss, self._b, shift), (self._x, v))
            assert self._own is not None
            away: Array = np.linalg.lstsq(self._own, rest, rcond=1e-14)[0]  # softmax does not see a common shift
            return np.asarray(self._sweep(v, shift + away)[1])
        sums, g = self._sweep(v, shift)
        rest = sums.reshape(self._intercept.outputs)
        if self._own is None:
            return np.asarray(g - outer(self._intercept.data.mean_row(), rest))
        share = np.divide(rest, self._own, out=np.zeros_like(rest), where=self._own > 0.0)
        return np.asarray(g - self._cross * share)

    def diagonal(self) -> Array:
        data, k = self._intercept.data, self._intercept.outputs
        squares = data.column_sizes()[0] ** 2
        self._workspace.meter.rows += data.n
        if self._constant:
            bend = np.full(k, self._loss.smoothness)
        elif self._loss.coupled:
            second = self._workspace.fold(SummedCurvature(self._loss, self._b), (self._x,))
            bend = np.diag(second.reshape(*k, *k))
        else:
            bend = self._workspace.fold(Curvatures(self._loss, self._b), (self._x,)).reshape(k)
        return np.asarray(np.multiply.outer(squares, bend))

    def _sweep(self, point: Point, shift: Array | float) -> tuple[Array, Any]:
        points = (point,) if self._constant else (self._x, point)
        return self._workspace.sweep(CurvatureTimes(self._loss, self._b, shift), points, keep=not self._constant)

    def _mean(self, v: Array) -> Array:
        """The weighted mean of the image of ``v``."""
        row = self._intercept.data.mean_row()
        return np.asarray(row.inner(v) if is_structured(row) else np.tensordot(row, v, axes=row.ndim))
