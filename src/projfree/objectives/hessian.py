"""The Hessian of a function at a point, with the intercept eliminated, as a matrix or through products.

.. math:: H = H_{ww} - H_{wb} H_{bb}^{+} H_{bw}

For non-convex functions it is the Hessian of a convex quadratic model with the same tangent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import Point, frozen, zeros
from projfree.checks import Array
from projfree.data.gram import Moments
from projfree.data.rows import Rows, Step
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.objectives.hull import RCOND, HullSums
from projfree.objectives.intercept import outer
from projfree.objectives.row_steps import Curvature, Curvatures, by_column, weigh

if TYPE_CHECKING:
    from projfree.numerics.group_l1_qp import Columns
    from projfree.objectives.erm import Objective


class Hessian(ABC):
    """The Hessian of a function at one point; its parts are computed when they are needed.

    Attributes
    ----------
    matrix : ndarray of shape (D, D)
        The matrix over the D entries of a parameter.
    intercept_response : pair of ndarray or None
        :math:`H_{wb} H_{bb}^{+}` of shape (D, k), the negative derivative of the optimal intercept in the parameter,
        and :math:`H_{bb}^{+}`. None if there is no intercept, or if the intercept is known without them.
    """

    matrix: Array
    intercept_response: tuple[Array, Array] | None = None

    @abstractmethod
    def times(self, v: Array) -> Array:
        """Return the product with an array of the shape of a parameter."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return approximate diagonal entries, in the shape of a parameter; this may cost one pass.

        They are a scale for other methods, not a bound: they ignore the intercept and the correlation of curvature and
        features.
        """

    @abstractmethod
    def products(self, points: tuple[Point, ...], others: tuple[Point, ...] = ()) -> Array:
        r"""Return the products :math:`\langle p, H q\rangle` of ``points`` with themselves and then with ``others``.

        This costs at most one pass for any number of points.
        """

    def columns(self, damping: float = 0.0) -> Columns | None:
        """Return the matrix as products of the columns of a table, without forming it; None if `matrix` should be used.

        For losses that couple outputs it is a separable upper bound on the Hessian. The curvature of a row is at least
        ``damping`` times its derivative.
        """
        return None


class RowHessian(Hessian):
    """The Hessian of a mean of losses over rows.

    It is evaluated at the intercept of the point, or at the optimal one if the point has none.

    The matrix costs one pass and O(n d^2) operations for each pair of outputs that the loss couples. A product costs
    one pass, or two if an intercept couples outputs; with an intercept and a loss that is neither quadratic nor
    coupled, the first product costs one more.

    Parameters
    ----------
    f : Objective
        The function.
    x : Point
        The point.
    features : ndarray, optional
        The features of the matrix, by default all. For squares the matrix then has the shape (m, m) for m features,
        because all outputs share it.
    """

    def __init__(self, f: Objective, x: Point, features: Array | None = None) -> None:
        self._f, self._workspace, self._x, self._features = f, f.workspace, x, features
        self._loss, self._outputs, self._k = f.loss, f.outputs, f.structure.outputs
        self._constant, self._free = is_squared(f.loss), f.fit_intercept
        self._response: tuple[Array, Array] | None = None
        # The intercept, on which the curvature of squares does not depend.
        self._b: Array | float = 0.0
        if f.intercept is not None and f.intercept.searched:
            b = x.intercept if x.intercept is not None and x.intercept.shape == f.outputs else None
            self._b = f.intercept.locate(f.workspace, (x,))[0] if b is None else b

    @property
    def intercept_response(self) -> tuple[Array, Array] | None:  # type: ignore[override]
        return self._response if len(self.matrix) else None

    @cached_property
    def matrix(self) -> Array:  # type: ignore[override]
        k, free = 1 if self._constant else self._k, self._free  # for the squared loss, all outputs share one matrix
        step: Step = PairWeights(self._loss, self._b) if self._loss.coupled else Curvatures(self._loss, self._b)
        if self._loss.coupled:
            wanted = Moments(k * (k - 1) // 2, free, self._features)
            joint = _interleaved(self._workspace.moments(step, self._x, wanted), k)
        else:
            M = self._workspace.moments(step, self._x, Moments(k, free, self._features))
            size = M.shape[1]
            joint = M.reshape(size, 1, size, 1) if k == 1 else np.zeros((size, k, size, k))
            for j in range(k if k > 1 else 0):
                joint[:, j, :, j] = M[j]
        # The last coordinate is the intercept.
        d, response = len(joint) - 1, None
        H = joint[:d, :, :d, :].reshape(d * k, d * k)
        if free:
            cross, own = joint[:d, :, d, :].reshape(d * k, k), joint[d, :, d, :]
            if k > 1:  # softmax is invariant to a common shift of its intercepts
                inverse = np.linalg.pinv(own, rcond=RCOND, hermitian=True)
            else:  # the inverse of a subnormal number overflows; the loss is then constant
                inverse = 1.0 / own if own[0, 0] >= np.finfo(np.float64).tiny else np.zeros((1, 1))
            response = cross @ inverse, inverse
            H -= response[0] @ cross.T
        H += H.T
        H *= 0.5
        if self._features is not None:
            return H
        if self._constant:  # the intercept is then known without its response
            return np.kron(H, np.eye(self._k)) if self._k > 1 else H
        if response is not None and self._loss.convex:  # a non-convex loss has no model in the intercept
            # The moments are about the nonzero `centre`.
            centre = np.kron(self._f.data.column_stats.centre[:, None], np.eye(k))
            self._response = response[0] + centre, response[1]
        return H

    @cached_property
    def _of_intercept(self) -> tuple[Array, Any]:
        """The second derivative in the intercept and, unless outputs are coupled, the derivative of gradients in it."""
        if self._loss.coupled:
            return HullSums(self._loss, b=np.asarray(self._b)).local(self._workspace, (self._x,)).hessian, None
        sums, cross = self._sweep(zeros(self._f.shape), -1.0)
        return np.diag(sums), cross

    def times(self, v: Array) -> Array:
        if self._f.intercept is None:
            return np.asarray(self._sweep(v, 0.0)[1])
        # Subtract the mean first, to avoid cancellation.
        rest, g = self._sweep(v, self._f.intercept.mean_prediction(v))
        if self._constant:
            return np.asarray(g - outer(self._f.data.column_stats.mean, rest.reshape(self._outputs)))
        own, cross = self._of_intercept
        away = np.linalg.lstsq(own, rest, rcond=RCOND)[0].reshape(self._outputs)  # minimum-norm solution
        return np.asarray(g - (cross * away if cross is not None else self._sweep(zeros(self._f.shape), -away)[1]))

    def _sweep(self, v: Array, shift: Array | float) -> tuple[Array, Any]:
        """Return the sums of the curvature times the predictions of ``v`` minus ``shift``, and their adjoint."""
        point, step = Point(frozen(np.array(v))), CurvatureTimes(self._loss, self._b, shift)
        return self._workspace.sweep(step, (point,) if self._constant else (self._x, point), keep=not self._constant)

    def diagonal(self) -> Array:
        curvature = self._workspace.fold(Curvatures(self._loss, self._b), (self._x,)).reshape(self._outputs)
        return np.asarray(np.multiply.outer(self._f.data.column_stats.root_mean_square**2, curvature))

    def products(self, points: tuple[Point, ...], others: tuple[Point, ...] = ()) -> Array:
        q, m, k = len(points), len(points) + len(others), self._k
        step = DirectionProducts(self._loss, self._b, q)
        sums, _ = self._workspace.sweep(step, (self._x, *points, *others))
        products, cross, own = np.split(sums, [q * m, q * m + m * k])
        products, cross = products.reshape(q, m), cross.reshape(m, k)
        if not self._free:
            return products
        return np.asarray(products - cross[:q] @ np.linalg.lstsq(own.reshape(k, k), cross.T, rcond=RCOND)[0])

    def columns(self, damping: float = 0.0) -> Columns | None:
        from projfree.numerics.group_l1_qp import MOST_FORMED, Columns

        f, k = self._f, self._k
        features = np.arange(f.shape[0]) if self._features is None else self._features
        exact = self._loss.coupled and len(features) * k <= MOST_FORMED
        if exact or not f.structure.hessian:
            return None
        step = Curvatures(self._loss, self._b, 0.0 if self._constant else damping)
        found = self._workspace.moments(step, self._x, Moments(k, self._free, features, factors=True))
        if found is None:
            return None
        table, h = found[0], found[1].reshape(len(found[1]), -1)
        return Columns.of_table(table, h[:, :1] if self._constant else h, k, intercept=self._free)


def _interleaved(pairs: Array, k: int) -> Array:
    """Return the joint moments of a loss that couples outputs, from those of the pair weights :math:`p_j p_l`."""
    size, each = pairs.shape[1], np.arange(k)
    one, other = np.triu_indices(k, 1)
    joint, line = np.empty((size, k, size, k)), np.zeros((k, k, size))
    for i in range(size):  # the rows of one feature stay in the cache
        line[one, other] = line[other, one] = pairs[:, i]
        joint[i] = -line.transpose(0, 2, 1)
        joint[i, each, :, each] = line.sum(axis=1)  # rows of the softmax Hessian sum to zero
    return joint


@dataclass(frozen=True)
class PairWeights(Step):
    """The negative weighted curvature of each pair of outputs: :math:`p_j p_l` for softmax."""

    loss: Loss
    b: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        one, other = np.triu_indices(images[0].shape[1], 1)
        p = self.loss.mean(images[0] + self.b)
        return weigh(p[:, one] * p[:, other], rows.s), np.zeros(0)


@dataclass(frozen=True)
class CurvatureTimes(Step):
    """Multiply the curvature at the first point by the predictions of the last one minus ``shift``, and sum."""

    loss: Loss
    b: Array | float
    shift: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        # The curvature of squares is constant, so that the last point is the only one.
        r = Curvature(self.loss, images[0] + self.b, rows, model=True).times(images[-1] - self.shift)
        return r, np.ravel(by_column(r))


@dataclass(frozen=True)
class DirectionProducts(Step):
    """Inner products of predictions, weighted by the second derivative at the first point; see `Curvature.products`."""

    loss: Loss
    b: Array | float
    fresh: int

    @property
    def transient(self) -> bool:
        return True

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        curvature = Curvature(self.loss, images[0] + self.b, rows, model=True)
        products, cross = curvature.products(images[1:], self.fresh)
        return None, np.concatenate([each.ravel() for each in (products, cross, curvature.summed())])
