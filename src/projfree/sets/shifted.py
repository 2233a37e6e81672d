"""`Shifted`: the translate of a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array, all_finite, instance, real_array
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.sums import UNIT
from projfree.sets.base import FEASIBILITY, OPERATIONS, ConstraintSet, Shape, Structure, Wrapper, slack, sum_error
from projfree.sets.inputs import check_broadcast, checked_point, frozen, point


@dataclass(frozen=True, eq=False)
class Shifted(Wrapper):
    r"""The translate of a set by a given point.

    .. math:: \{w : w - c \in C\}

    With an l_1 ball it bounds the turnover of a portfolio with holdings c.

    Parameters
    ----------
    ball : ConstraintSet
        The set C.
    offset : float or array
        The point c, broadcast to the shape of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import LpBall, Shifted
    >>> Shifted(LpBall(1, radius=0.5), [0.25, 0.75]).lmo(np.array([1.0, 2.0]))
    array([0.25, 0.25])
    """

    ball: ConstraintSet
    offset: float | Array

    def __post_init__(self) -> None:
        instance("Shifted(ball=...)", self.ball, ConstraintSet, "LpBall(1, radius=1.0)")
        object.__setattr__(
            self, "offset", frozen(all_finite("Shifted(offset=...)", real_array("Shifted(offset=...)", self.offset)))
        )

    def structure(self, shape: Shape) -> Structure:
        inner = self.ball.structure(shape)
        return Structure(polytope=inner.polytope, projection=inner.projection)

    def check_shape(self, shape: Shape) -> None:
        check_broadcast("Shifted", "an offset", np.shape(self.offset), shape)
        self.ball.check_shape(shape)

    def _inner(self, g: Any) -> Any:
        return g

    def _outer(self, vertex: Any, g: Any) -> Any:
        return vertex + self.offset

    def _extra(self, g: Any) -> float:
        # Rounded up, because it may cancel with the support of the ball.
        terms = point(g * self.offset)
        return float(terms.sum()) + sum_error(terms.size) * float(np.abs(terms).sum())

    def support_error(self, g: Array, support: float) -> float:
        terms = abs(support) + float(np.abs(point(g) * self.offset).sum())
        return float(self.ball.support_error(g, terms)) + OPERATIONS * UNIT * terms

    def reach(self, shape: Shape) -> float:
        return self.ball.reach(shape) + lp_norm(np.broadcast_to(self.offset, shape).ravel(), 2.0)

    def diameter(self, shape: Shape) -> float:
        return self.ball.diameter(shape)

    def strong_convexity(self, shape: Shape) -> float:
        return self.ball.strong_convexity(shape)

    def centre(self, shape: Shape) -> Array:
        return np.asarray(self.ball.centre(shape) + self.offset)

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        x = point(w)
        moved = x - self.offset
        size = lp_norm(moved.ravel(), 2.0)
        # Subtracting the offset cancels leading digits.
        lost = lp_norm(x.ravel(), 2.0) + lp_norm(np.ravel(self.offset) + np.zeros(1), 2.0)
        return self.ball.contains(moved, slack(w, rtol) * (1.0 + lost / size) if size > 0.0 else rtol)

    @checked_point
    def project(self, w: Array) -> Array:
        return np.asarray(self.ball.project(w - self.offset) + self.offset)


def shifted(ball: ConstraintSet, centre: Array) -> Shifted:
    """Translate a set by ``centre``, for example an l_1 ball around current holdings, which bounds the turnover.

    Examples
    --------
    >>> from projfree.sets import LpBall, shifted
    >>> shifted(LpBall(1, radius=0.5), [0.25, 0.75]).contains([0.5, 0.5])
    True
    """
    return Shifted(ball, centre)
