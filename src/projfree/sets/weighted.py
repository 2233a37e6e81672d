"""A ball of scaled coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.checks import Array, all_finite, real_array, shown
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.lp_projection import project
from projfree.sets.answer import Answer, ask
from projfree.sets.base import ConstraintSet, NormBall, Shape, SupportCost
from projfree.sets.box import check_broadcast, frozen
from projfree.sets.group import GroupBall
from projfree.sets.inputs import finished, finite, largest, like, point
from projfree.sets.lp import LpBall


@dataclass(frozen=True, eq=False)
class Weighted(NormBall):
    r"""All arrays that lie in a norm ball once their entries are multiplied by positive weights.

    .. math:: \|d \circ w\| \le r, \qquad d > 0

    So features can carry scales: a larger weight makes an entry more expensive. Everything follows from the ball,

    .. math:: \operatorname{lmo}(g) = d^{-1} \circ \operatorname{lmo}_{\text{ball}}(g \circ d^{-1}), \qquad
              \|g\|_* = \|g \circ d^{-1}\|_{\text{ball}, *},

    except for the projection, which exists for weighted l_p norms: a weighted threshold for ``p = 1``, a clip for
    ``p = inf``, and otherwise Newton's method on :math:`x_j + \mu d_j^p x_j^{p-1} = |w_j|`.

    Parameters
    ----------
    ball : NormBall
        The ball in the scaled coordinates; its radius is the radius.
    weights : float or array
        Positive and finite, broadcast to the shape of the points.

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

    @classmethod
    def examples(cls) -> tuple[ConstraintSet, ...]:
        lp = tuple(cls(LpBall(p, 1.5), np.array([0.1, 1.0, 5.0])) for p in (1.0, 1.1, 2.0, 3.0, np.inf))
        return (*lp, cls(GroupBall(2.0, 1.0, 1.5), np.array([0.5, 1.0, 2.0])), cls(LpBall(1.5, 2.0), 3.0))

    @property
    def radius(self) -> float:  # type: ignore[override]  # read-only here: the ball holds it
        return self.ball.radius

    @property
    def support_cost(self) -> SupportCost:  # type: ignore[override]  # read-only here: the ball decides
        return self.ball.support_cost

    @property
    def support_with_vertex(self) -> bool:
        return self.ball.support_with_vertex

    @property
    def is_round(self) -> bool:  # type: ignore[override]  # as above
        return self.ball.is_round

    @property
    def is_polytope(self) -> bool:  # type: ignore[override]  # as above
        return self.ball.is_polytope

    def entry_vertices(self, g: Array, most: int) -> tuple[Array, Array] | None:
        found = self.ball.entry_vertices(self._scaled(g)[0], most)
        if found is None:
            return None
        places, values = found
        return places, values / np.broadcast_to(self.weights, np.shape(g)).ravel()[places]

    def as_scaled_lp(self, shape: Shape) -> tuple[LpBall, Array] | None:
        ball = self.ball.as_lp(shape)
        return None if ball is None else (ball, np.broadcast_to(self.weights, shape))

    def as_flat(self, shape: Shape) -> FlatBall | None:
        flat = self.ball.as_flat(shape)
        if flat is None:
            return None
        weights = np.broadcast_to(self.weights, shape)
        if flat.groups is None:
            return replace(flat, costs=weights * flat.costs)
        rows, each = weights.reshape(shape[0], -1), np.empty(len(flat.costs))
        each[flat.groups] = rows[:, 0]
        if not np.array_equal(rows, np.broadcast_to(each[flat.groups, None], rows.shape)):
            return None  # weights that differ within a group bend its norm
        return replace(flat, costs=each * flat.costs)

    def check_shape(self, shape: Shape) -> None:
        check_broadcast("Weighted", "weights", np.shape(self.weights), shape)
        self.ball.check_shape(shape)

    def lmo(self, g: Array) -> Array:
        return like(g, self.ball.lmo(self._scaled(g)[0]) / self.weights)

    def oracle(self, g: Array, warm: Any = None) -> Answer:
        c, top = self._scaled(g)
        vertex, support, warm = ask(self.ball, c, warm)
        return Answer(like(g, vertex / self.weights), top * support, warm)

    def _scaled(self, g: Array) -> tuple[Array, float]:
        """The gradient in the coordinates of the ball, divided by its largest entry, and that entry."""
        c = finite("lmo(g)", g)
        self.check_shape(c.shape)
        top = largest(c)  # division by a weight must not lose a tiny gradient
        return c / top / self.weights, top

    def norm(self, w: Array) -> float:
        x = point(w)
        self.check_shape(x.shape)
        top = largest(x)
        return top * self.ball.norm(x / top * self.weights) if math.isfinite(top) else top

    def dual_norm(self, g: Array) -> float:
        c = point(g)
        self.check_shape(c.shape)
        top = largest(c)
        return top * self.ball.dual_norm(c / top / self.weights) if math.isfinite(top) else top

    def support_rtol(self, shape: Shape) -> float:
        return self.ball.support_rtol(shape) + 4.0 * float(np.finfo(np.float64).eps)

    @property
    def projectable(self) -> bool:
        return self._exponent is not None

    def project(self, w: Array) -> Array:
        if self._exponent is None:
            raise NotImplementedError(
                f"{self!r} has no projection, only weighted l_p balls have one; "
                "use PrimalAveraging or FrankWolfe, which need none."
            )
        x = finite("project(w)", w)
        self.check_shape(x.shape)
        return finished(w, project(x, self._exponent, self.radius, np.asarray(self.weights)))

    def reach(self, shape: Shape) -> float:
        return self.ball.stretch(1.0 / np.broadcast_to(self.weights, shape))

    def stretch(self, scale: Array) -> float:
        return self.ball.stretch(scale / self.weights)

    def strong_convexity_own_norm(self) -> float:
        """That of the ball: the scaling is an isometry of the two norms."""
        return self.ball.strong_convexity_own_norm()

    def strong_convexity(self, shape: Shape) -> float:
        r""":math:`\alpha\, d_{\min}^2 / d_{\max}` with the ball's Euclidean :math:`\alpha`; safe, not sharp."""
        low, high = float(np.min(self.weights)), float(np.max(self.weights))
        return self.ball.strong_convexity(shape) * low * low / high

    @property
    def _exponent(self) -> float | None:
        """The exponent where the ball is an entrywise l_p ball, else None."""
        if isinstance(self.ball, LpBall) or (isinstance(self.ball, GroupBall) and self.ball.p == self.ball.q):
            return self.ball.p
        return None
