"""The simplex: nonnegative arrays with a given sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, positive
from projfree.numerics.flat_ball import GroupL1Ball
from projfree.numerics.projections import simplex_rows
from projfree.sets.base import FEASIBILITY, ConstraintSet, Shape, Structure, slack
from projfree.sets.inputs import checked_point, point, scaled_gradient


@dataclass(frozen=True)
class Simplex(ConstraintSet):
    r"""The nonnegative arrays of any shape whose entries sum to the radius.

    .. math:: w \ge 0, \qquad \sum_j w_j = r

    The oracle returns r times the unit vector of the first smallest entry of ``g``; the support is
    :math:`r \max_j g_j`. The entries of the centre are :math:`r/d`. The projection is a threshold (Duchi et al. 2008).

    Parameters
    ----------
    radius : float, default 1
        The sum of the entries, positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import Simplex
    >>> Simplex().lmo(np.array([0.3, -1.0, 2.0]))
    array([0., 1., 0.])
    >>> Simplex().project(np.array([1.0, 0.5, -3.0]))
    array([0.75, 0.25, 0.  ])
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("Simplex(radius=...)", self.radius))

    def structure(self, shape: Shape) -> Structure:
        simplex = GroupL1Ball(self.radius, np.broadcast_to(1.0, shape), signed=False, tight=True)
        return Structure(group_l1=simplex, polytope=True, projection="fast")

    @scaled_gradient
    def lmo(self, g: Array) -> Array:
        if not g.any():
            return self.centre(g.shape)
        v = np.zeros(g.size)
        v[int(g.argmin())] = self.radius
        return v.reshape(g.shape)

    def support(self, g: Array) -> float:
        return self.radius * float(np.max(point(g)))

    def reach(self, shape: Shape) -> float:
        return self.radius

    def diameter(self, shape: Shape) -> float:
        r"""Return :math:`\sqrt 2\, r`, the distance between two vertices, or 0 if there is only one."""
        return self.radius * math.sqrt(2.0) if int(np.prod(shape)) > 1 else 0.0

    def centre(self, shape: Shape) -> Array:
        return np.full(shape, self.radius / max(1, int(np.prod(shape))))

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        x, allowed = point(w), self.radius * slack(w, rtol)
        return bool(np.min(x, initial=0.0) >= -allowed and abs(float(x.sum()) - self.radius) <= allowed)

    @checked_point
    def project(self, w: Array) -> Array:
        return simplex_rows(w.reshape(1, -1), self.radius).reshape(w.shape)
