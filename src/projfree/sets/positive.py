"""The intersection of a norm ball and the nonnegative orthant."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from projfree import sets
from projfree.checks import Array, shown
from projfree.sets.base import FEASIBILITY, NormBall, Shape, Structure, Wrapper, slack
from projfree.sets.inputs import checked_point, point


@dataclass(frozen=True)
class Positive(Wrapper):
    r"""The nonnegative arrays of a norm ball, for a norm that depends only on absolute values.

    .. math:: w \ge 0, \qquad \|w\| \le r

    Every w in the set satisfies :math:`\langle g, w\rangle \le \langle g_+, w\rangle \le r \|g_+\|_*` with
    :math:`g_+ = \max(g, 0)`, and the maximiser of :math:`g_+` over the ball is nonnegative. Therefore

    .. math:: \operatorname{lmo}(g) = \operatorname{lmo}_{\text{ball}}(\min(g, 0)), \qquad
              \operatorname{support}(g) = r \|\max(g, 0)\|_*, \qquad
              \operatorname{project}(w) = \operatorname{project}_{\text{ball}}(\max(w, 0)) :

    setting a negative entry to zero decreases both the norm and the distance to every point of the orthant.

    Parameters
    ----------
    ball : NormBall
        An `LpBall` or a `GroupBall`, or one of these `Weighted`. Spectral norms depend on signs and are not supported.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import LpBall, Positive
    >>> Positive(LpBall(2, radius=5.0)).lmo(np.array([-3.0, 2.0, -4.0]))
    array([3., 0., 4.])
    >>> Positive(LpBall(1, radius=1.0)).project(np.array([2.0, -1.5, 1.5]))
    array([0.75, 0.  , 0.25])
    """

    ball: NormBall

    def __post_init__(self) -> None:
        inner = self.ball.ball if isinstance(self.ball, sets.Weighted) else self.ball
        if not isinstance(inner, sets.LpBall | sets.GroupBall):
            raise TypeError(
                "`Positive(ball=...)` must be an LpBall or a GroupBall, or a Weighted one of these, "
                f"got {shown(self.ball)}."
            )

    @property
    def radius(self) -> float:
        """The radius of the ball."""
        return self.ball.radius

    def structure(self, shape: Shape) -> Structure:
        inner = self.ball.structure(shape)
        l1 = inner.group_l1 if inner.group_l1 is not None and inner.group_l1.groups is None else None
        group_l1 = None if l1 is None else replace(l1, signed=False)
        return Structure(group_l1=group_l1, polytope=inner.polytope, projection=inner.projection)

    def _inner(self, g: Array) -> Array:
        return np.minimum(g, 0.0)

    def reach(self, shape: Shape) -> float:
        return self.ball.reach(shape)

    def centre(self, shape: Shape) -> Array:
        return np.zeros(shape)

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        x = point(w)
        least = -slack(w, rtol) * self.reach(x.shape)
        return bool(np.min(x, initial=0.0) >= least and self.ball.contains(w, rtol))

    @checked_point
    def project(self, w: Array) -> Array:
        return self.ball.project(np.maximum(w, 0.0))
