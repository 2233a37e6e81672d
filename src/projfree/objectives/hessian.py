r"""The Hessian of a function at a point, the intercept minimised out, as a matrix or through products.

.. math:: H = H_{ww} - H_{wb} H_{bb}^{+} H_{bw}

For functions that are not convex it is that of a convex quadratic model that touches them at the point.
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
    """The Hessian of a function at one point; nothing is computed before it is needed.

    Attributes
    ----------
    matrix : ndarray of shape (D, D)
        The matrix over the D entries of a parameter.
    intercept_response : pair of ndarray or None
        :math:`H_{wb} H_{bb}^{+}` of shape (D, k), by which the best intercept falls where the parameter moves, and
        :math:`H_{bb}^{+}`. None where there is no intercept, or where it follows exactly without it.
    """

    matrix: Array
    intercept_response: tuple[Array, Array] | None = None

    @abstractmethod
    def times(self, v: Array) -> Array:
        """The product with an array of the shape of a parameter."""

    @abstractmethod
    def diagonal(self) -> Array:
        """About the size of the entries of the diagonal, of the shape of a parameter; may cost one read.

        A scale for other methods, not a bound: the intercept and how curvature goes with features are left out.
        """

    @abstractmethod
    def products(self, points: tuple[Point, ...], others: tuple[Point, ...] = ()) -> Array:
        r"""The products :math:`\langle p, H q\rangle` of ``points`` with themselves and then with ``others``.

        At most one read of the data, however many points there are.
        """

    def columns(self, damping: float = 0.0) -> Columns | None:
        """The matrix through the columns of a table, without forming it; None where `matrix` is to be used.

        For losses that couple outputs, an upper bound on the Hessian that does not. Rows have at least a curvature of
        ``damping`` times their derivative.
        """
        return None


class RowHessian(Hessian):
    """The Hessian of a mean of losses over rows.

    It is taken at the intercept that the point has, and at the best one where it has none.

    The matrix costs one read and O(n d^2) work for each pair of outputs that the loss couples. A product costs one
    read, two where an intercept couples outputs; with an intercept and a loss that is neither quadratic nor coupled,
    one read more is made for the first of them.

    Parameters
    ----------
    f : Objective
        The function.
    x : Point
        Where.
    features : ndarray, optional
        The features to which the matrix belongs, all by default. For squares it is then of shape (m, m) for m
        features, because all outputs share it.
    """

    def __init__(self, f: Objective, x: Point, features: Array | None = None) -> None:
        self._f, self._workspace, self._x, self._features = f, f.workspace, x, features
        self._loss, self._outputs, self._k = f.loss, f.outputs, f.structure.outputs
        self._constant, self._free = is_squared(f.loss), f.fit_intercept
        self._response: tuple[Array, Array] | None = None
        # The intercept, which the curvature of squares does not depend on.
        self._b: Array | float = 0.0
        if f.intercept is not None and f.intercept.searched:
            b = x.intercept if x.intercept is not None and x.intercept.shape == f.outputs else None
            self._b = f.intercept.locate(f.workspace, (x,))[0] if b is None else b

    @property
    def intercept_response(self) -> tuple[Array, Array] | None:  # type: ignore[override]
        return self._response if len(self.matrix) else None

    @cached_property
    def matrix(self) -> Array:  # type: ignore[override]
        k, free = 1 if self._constant else self._k, self._free  # all outputs of squares have the same matrix
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
        # The last coordinate is that of the intercept.
        d, response = len(joint) - 1, None
        H = joint[:d, :, :d, :].reshape(d * k, d * k)
        if free:
            cross, own = joint[:d, :, d, :].reshape(d * k, k), joint[d, :, d, :]
            if k > 1:  # softmax does not see a common shift of its intercepts
                inverse = np.linalg.pinv(own, rcond=RCOND, hermitian=True)
            else:  # the inverse of a number that is not normal overflows; all rows are then flat
                inverse = 1.0 / own if own[0, 0] >= np.finfo(np.float64).tiny else np.zeros((1, 1))
            response = cross @ inverse, inverse
            H -= response[0] @ cross.T
        H += H.T
        H *= 0.5
        if self._features is not None:
            return H
        if self._constant:  # whose response is known without
            return np.kron(H, np.eye(self._k)) if self._k > 1 else H
        if response is not None and self._loss.convex:  # else the model is none in the intercept
            # The moments are about a row that is not zero.
            centre = np.kron(self._f.data.column_stats.centre[:, None], np.eye(k))
            self._response = response[0] + centre, response[1]
        return H

    @cached_property
    def _of_intercept(self) -> tuple[Array, Any]:
        """The second derivative in the intercept and, unless outputs are coupled, how gradients change with it."""
        if self._loss.coupled:
            return HullSums(self._loss, b=np.asarray(self._b)).local(self._workspace, (self._x,)).hessian, None
        sums, cross = self._sweep(zeros(self._f.shape), -1.0)
        return np.diag(sums), cross

    def times(self, v: Array) -> Array:
        if self._f.intercept is None:
            return np.asarray(self._sweep(v, 0.0)[1])
        # About the mean, so that little is left to be taken off.
        rest, g = self._sweep(v, self._f.intercept.mean_prediction(v))
        if self._constant:
            return np.asarray(g - outer(self._f.data.column_stats.mean, rest.reshape(self._outputs)))
        own, cross = self._of_intercept
        away = np.linalg.lstsq(own, rest, rcond=RCOND)[0].reshape(self._outputs)  # softmax sees no common shift
        return np.asarray(g - (cross * away if cross is not None else self._sweep(zeros(self._f.shape), -away)[1]))

    def _sweep(self, v: Array, shift: Array | float) -> tuple[Array, Any]:
        """The sums over rows of the curvature times the predictions of ``v`` less a shift, and their adjoint."""
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
    r"""The joint moments of a loss that couples outputs, given those of the weights :math:`p_j p_l` of pairs."""
    size, each = pairs.shape[1], np.arange(k)
    one, other = np.triu_indices(k, 1)
    joint, line = np.empty((size, k, size, k)), np.zeros((k, k, size))
    for i in range(size):  # the rows of one feature stay in the cache while their outputs are interleaved
        line[one, other] = line[other, one] = pairs[:, i]
        joint[i] = -line.transpose(0, 2, 1)
        joint[i, each, :, each] = line.sum(axis=1)  # rows of the softmax Hessian add up to zero
    return joint


@dataclass(frozen=True)
class PairWeights(Step):
    r"""The weighted curvature of each pair of outputs, negated: :math:`p_j p_l` for softmax."""

    loss: Loss
    b: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        one, other = np.triu_indices(images[0].shape[1], 1)
        p = self.loss.mean(images[0] + self.b)
        return weigh(p[:, one] * p[:, other], rows.s), np.zeros(0)


@dataclass(frozen=True)
class CurvatureTimes(Step):
    """The weighted curvature at the first point times the predictions of the last less ``shift``, and its sums."""

    loss: Loss
    b: Array | float
    shift: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        # That of squares is the same everywhere, so that the last point is the only one.
        r = Curvature(self.loss, images[0] + self.b, rows, model=True).times(images[-1] - self.shift)
        return r, np.ravel(by_column(r))


@dataclass(frozen=True)
class DirectionProducts(Step):
    """Products of the predictions of points through the curvature at the first one, see `Curvature.products`."""

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
