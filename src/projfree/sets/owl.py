"""The ball of an ordered weighted l_1 norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, all_finite, positive, real_array, shown
from projfree.numerics.sums import UNIT
from projfree.sets.base import OPERATIONS, NormBall, Shape, Structure
from projfree.sets.inputs import finite, frozen, largest, like, point


@dataclass(frozen=True, eq=False)
class OwlBall(NormBall):
    r"""All arrays whose ordered weighted l_1 norm is at most the radius: the largest entry meets the largest weight.

    .. math:: \|w\| = \sum_{i=1}^{d} \omega_i |w|_{(i)} \le r, \qquad
              |w|_{(1)} \ge |w|_{(2)} \ge \dots, \quad \omega_1 \ge \omega_2 \ge \dots \ge \omega_d \ge 0

    With equal weights it is an l_1 ball, with a single one other than zero an l_infinity ball; weights that fall
    linearly make OSCAR, those of a normal quantile SLOPE, which group entries of equal size. The dual norm is a maximum
    over the largest entries,

    .. math:: \|g\|_* = \max_{j}\ \sum_{i=1}^{j} |g|_{(i)} \Big/ \sum_{i=1}^{j} \omega_i,

    and the oracle puts :math:`\mp r / \sum_{i \le j} \omega_i` on the j largest entries of ``g`` for the first j that
    attains it. The ball is a polytope; it has no projection here. Cost: a sort.

    Parameters
    ----------
    weights : array of shape (d,)
        As many as a point has entries, in decreasing order, without negative ones, the first one positive.
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

    def lmo(self, g: Array) -> Array:
        c = finite("lmo(g)", g)
        v = np.zeros(c.size)
        if c.any():
            order, ratios = self._ratios(c)
            j = int(ratios.argmax()) + 1
            v[order[:j]] = -self.radius / float(self._sums[j - 1]) * np.sign(c.ravel()[order[:j]])
        return like(g, v.reshape(c.shape))

    def norm(self, w: Array) -> float:
        x = np.abs(point(w)).ravel()
        self.check_shape(np.shape(w))
        top = largest(x)
        return top * float(self.weights @ np.sort(x / top)[::-1]) if math.isfinite(top) else top

    def dual_norm(self, g: Array) -> float:
        c = point(g)
        top = largest(c)
        return top * float(self._ratios(c)[1].max()) if math.isfinite(top) else top

    def _ratios(self, c: Array) -> tuple[Array, Array]:
        """The order of the entries from the largest on, and the ratio of each sum of them to that of the weights."""
        self.check_shape(c.shape)
        sizes = np.abs(c).ravel() / largest(c)
        order = np.argsort(-sizes, kind="stable")
        return order, np.cumsum(sizes[order]) / self._sums

    @property
    def _sums(self) -> Array:
        return np.cumsum(self.weights)

    def support_error(self, g: Array, support: float) -> float:
        # Two sums of like-signed terms, one after the other, and a few products.
        return UNIT * (2.0 * g.size + OPERATIONS) * abs(support)

    def reach(self, shape: Shape) -> float:
        r""":math:`r \max_j \sqrt j / \sum_{i \le j} \omega_i`, attained at a vertex."""
        self.check_shape(shape)
        return self.radius * float(np.max(np.sqrt(np.arange(1.0, len(self.weights) + 1.0)) / self._sums))
