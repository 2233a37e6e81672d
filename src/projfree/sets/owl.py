"""The ball of an ordered weighted l_1 norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, all_finite, positive, real_array, shown
from projfree.numerics.sums import UNIT
from projfree.sets.base import OPERATIONS, NormBall, Shape, Structure
from projfree.sets.inputs import frozen, scaled_gradient, scaled_norm


@dataclass(frozen=True, eq=False)
class OwlBall(NormBall):
    r"""The ball of the ordered weighted l_1 norm, in which the largest weight multiplies the largest absolute entry.

    .. math:: \|w\| = \sum_{i=1}^{d} \omega_i |w|_{(i)} \le r, \qquad
              |w|_{(1)} \ge |w|_{(2)} \ge \dots, \quad \omega_1 \ge \omega_2 \ge \dots \ge \omega_d \ge 0

    With equal weights it is an l_1 ball, with a single nonzero weight an l_infinity ball. Linearly decreasing weights
    give OSCAR and normal quantiles give SLOPE, which cluster entries of equal size. The dual norm is

    .. math:: \|g\|_* = \max_{j}\ \sum_{i=1}^{j} |g|_{(i)} \Big/ \sum_{i=1}^{j} \omega_i,

    and the oracle sets the j largest entries of ``g`` to :math:`\mp r / \sum_{i \le j} \omega_i` for the first j that
    attains the maximum. The ball is a polytope; its projection is not implemented. Cost: a sort.

    Parameters
    ----------
    weights : array of shape (d,)
        One weight per entry of a point, nonnegative and in decreasing order, the first one positive.
    radius : float
        The radius, positive and finite.

    References
    ----------
    Bogdan, van den Berg, Sabatti, Su, Candes (2015), SLOPE: adaptive variable selection via convex optimization; Zeng,
    Figueiredo (2014), The ordered weighted l_1 norm: atomic formulation, projections, and algorithms.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import OwlBall
    >>> ball = OwlBall([1.0, 0.5, 0.5], radius=3.0)
    >>> ball.lmo(np.array([3.0, -2.5, 0.1]))
    array([-2.,  2.,  0.])
    >>> ball.norm(np.array([1.0, -2.0, 0.0]))
    2.5
    """

    weights: Array
    radius: float

    def __post_init__(self) -> None:
        weights = all_finite("OwlBall(weights=...)", real_array("OwlBall(weights=...)", self.weights))
        if weights.ndim != 1 or not len(weights):
            raise ValueError(f"`OwlBall(weights=...)` must be a vector, got shape {weights.shape}.")
        if not (weights[0] > 0.0 and weights[-1] >= 0.0 and np.all(weights[1:] <= weights[:-1])):
            raise ValueError(
                "`OwlBall(weights=...)` must not increase, with a positive first one and no negative one, got "
                f"{shown(weights.tolist())}; sort them."
            )
        object.__setattr__(self, "weights", frozen(weights))
        object.__setattr__(self, "radius", positive("OwlBall(radius=...)", self.radius))

    def structure(self, shape: Shape) -> Structure:
        return Structure(polytope=True, absolute=True)

    def check_shape(self, shape: Shape) -> None:
        if math.prod(shape) != len(self.weights):
            raise ValueError(
                f"`OwlBall(weights=...)` has {len(self.weights)} weights, which do not fit points of shape {shape}; "
                f"give {math.prod(shape)}."
            )

    @scaled_gradient
    def lmo(self, g: Array) -> Array:
        v, sizes = np.zeros(g.size), np.abs(g).ravel()
        order = np.argsort(-sizes, kind="stable")
        best = order[: int((np.cumsum(sizes[order]) / self._sums).argmax()) + 1]
        v[best] = -self.radius / float(self._sums[len(best) - 1]) * np.sign(g.ravel()[best])
        return v.reshape(g.shape)

    @scaled_norm
    def norm(self, w: Array) -> float:
        return float(self.weights @ np.sort(np.abs(w), axis=None)[::-1])

    @scaled_norm
    def dual_norm(self, g: Array) -> float:
        return float(np.max(np.cumsum(np.sort(np.abs(g), axis=None)[::-1]) / self._sums))

    @property
    def _sums(self) -> Array:
        return np.cumsum(self.weights)

    def support_error(self, g: Array, support: float) -> float:
        # Two sequential sums of terms of one sign, and a few products.
        return UNIT * (2.0 * g.size + OPERATIONS) * abs(support)

    def reach(self, shape: Shape) -> float:
        r"""Return :math:`r \max_j \sqrt j / \sum_{i \le j} \omega_i`, which is attained at a vertex."""
        self.check_shape(shape)
        return self.radius * float(np.max(np.sqrt(np.arange(1.0, len(self.weights) + 1.0)) / self._sums))
