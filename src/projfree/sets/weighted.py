"""`Weighted`: a norm ball in scaled coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.checks import Array, all_finite, real_array, shown
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.projections import project
from projfree.sets.base import NormBall, Shape, Structure, Wrapper
from projfree.sets.inputs import check_broadcast, checked_point, frozen
from projfree.sets.lp import hoelder


@dataclass(frozen=True, eq=False)
class Weighted(Wrapper, NormBall):
    r"""The arrays whose elementwise product with positive weights lies in a norm ball.

    .. math:: \|d \circ w\| \le r, \qquad d > 0

    Weights scale the features: an entry with a larger weight is penalised more. Weighted l_p balls have a projection: a
    weighted threshold for ``p = 1``, clipping for ``p = inf``, and otherwise Newton's method on
    :math:`x_j + \mu d_j^p x_j^{p-1} = |w_j|`.

    Parameters
    ----------
    ball : NormBall
        The ball in the scaled coordinates, which defines the radius.
    weights : float or array
        The weights d, positive and finite, broadcast to the shape of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import LpBall, Weighted
    >>> ball = Weighted(LpBall(1, radius=1.0), weights=[1.0, 4.0])
    >>> ball.lmo(np.array([1.0, -2.0]))
    array([-1.,  0.])
    >>> ball.norm(np.array([0.5, 0.125]))
    1.0
    """

    ball: NormBall
    weights: float | Array

    def __post_init__(self) -> None:
        if not isinstance(self.ball, NormBall):
            raise TypeError(f"`Weighted(ball=...)` must be a norm ball such as LpBall, got {shown(self.ball)}.")
        weights = all_finite("Weighted(weights=...)", real_array("Weighted(weights=...)", self.weights))
        if not np.all(weights > 0.0):
            raise ValueError(
                f"`Weighted(weights=...)` must be positive, got {shown(weights.min())}; drop that feature."
            )
        object.__setattr__(self, "weights", frozen(weights))

    @property
    def radius(self) -> float:  # type: ignore[override]  # read-only: stored in the ball
        return self.ball.radius

    def _inner(self, g: Any) -> Any:
        return g / self.weights

    def _outer(self, vertex: Any, g: Any) -> Any:
        return self._inner(vertex)

    def norm(self, w: Array) -> float:
        x, scale = self._scaled(w)
        return scale * float(self.ball.norm(x * self.weights))

    def dual_norm(self, g: Array) -> float:
        return self.support(g) / self.radius

    def strong_convexity(self, shape: Shape) -> float:
        r"""Return the lower bound :math:`\alpha\, d_{\min}^2 / d_{\max}` with the :math:`\alpha` of the ball."""
        low, high = float(np.min(self.weights)), float(np.max(self.weights))
        return float(self.ball.strong_convexity(shape)) * low * low / high

    def check_shape(self, shape: Shape) -> None:
        check_broadcast("Weighted", "weights", np.shape(self.weights), shape)
        self.ball.check_shape(shape)

    def reach(self, shape: Shape) -> float:
        r"""Return :math:`r \|1/d\|_t` with :math:`1/t = \max(0, 1/2 - 1/p)` for l_p balls (Hoelder), attained."""
        inner = self.ball.structure(shape).plain_lp
        if inner is None:
            self.check_shape(shape)
            return float(self.ball.reach(shape)) / float(np.min(self.weights))
        return inner.radius * lp_norm(np.broadcast_to(1.0 / np.asarray(self.weights), shape), hoelder(inner.p))

    def structure(self, shape: Shape) -> Structure:
        inner, weights = self.ball.structure(shape), np.broadcast_to(self.weights, shape)
        l1 = inner.group_l1
        if l1 is not None and l1.groups is None:
            l1 = replace(l1, costs=weights * l1.costs)
        elif l1 is not None:
            rows, each = weights.reshape(shape[0], -1), np.empty(len(l1.costs))
            each[l1.groups] = rows[:, 0]
            same = np.array_equal(rows, np.broadcast_to(each[l1.groups, None], rows.shape))
            l1 = replace(l1, costs=each * l1.costs) if same else None  # unequal weights change the norm of a group
        own = weights if inner.weights is None else weights * inner.weights
        return replace(inner, weights=own, group_l1=l1, projection="none" if inner.lp is None else "fast")

    @checked_point
    def project(self, w: Array) -> Array:
        structure = self.structure(w.shape)
        if structure.lp is None:
            raise NotImplementedError(
                f"{self!r} has no projection, only weighted l_p balls have one; "
                "use PrimalAveraging or FrankWolfe, which need none."
            )
        return project(w, structure.lp.p, structure.lp.radius, structure.weights)
