"""The box: elementwise lower and upper bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, all_finite, first_index, real_array, shown
from projfree.numerics.lp_norm import lp_norm
from projfree.sets.base import FEASIBILITY, ConstraintSet, Shape, Structure, slack, sum_error
from projfree.sets.inputs import check_broadcast, checked_point, frozen, point, scaled_gradient, scaled_norm


@dataclass(frozen=True, eq=False)
class Box(ConstraintSet):
    r"""The arrays between elementwise lower and upper bounds.

    .. math:: l \le w \le u

    The oracle returns ``l`` where ``g`` is positive, ``u`` where it is negative and the midpoint where it is 0. In the
    support :math:`\sum_j \max(l_j g_j, u_j g_j)` terms may cancel; a bound on its rounding error is added, so that it
    is an upper bound in floating point too. The projection clips the entries.

    Parameters
    ----------
    lower, upper : float or array
        The bounds, finite, broadcast to the shape of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import Box
    >>> Box(0.0, [1.0, 2.0]).lmo(np.array([1.0, -1.0]))
    array([0., 2.])
    """

    lower: float | Array
    upper: float | Array

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            bound = all_finite(f"Box({name}=...)", real_array(f"Box({name}=...)", getattr(self, name)))
            object.__setattr__(self, name, frozen(bound))
        try:
            wrong = np.greater(self.lower, self.upper)
        except ValueError:
            shapes = f"{np.shape(self.lower)} and {np.shape(self.upper)}"
            raise ValueError(f"`Box(lower=..., upper=...)` need shapes that fit together, got {shapes}.") from None
        if wrong.any():
            where = first_index(wrong)
            low, high = (np.broadcast_to(b, self._shape())[where] for b in (self.lower, self.upper))
            raise ValueError(
                f"`Box(lower=...)` must not exceed `upper`, got {shown(low)} > {shown(high)}"
                f"{f' at index {where}' if wrong.ndim else ''}."
            )

    def structure(self, shape: Shape) -> Structure:
        return Structure(polytope=True, projection="fast")

    def check_shape(self, shape: Shape) -> None:
        check_broadcast("Box", "bounds", self._shape(), shape)

    @scaled_gradient
    def lmo(self, g: Array) -> Array:
        return np.where(g == 0.0, self.centre(g.shape), np.where(g > 0.0, self.lower, self.upper))

    @scaled_norm
    def support(self, g: Array) -> float:
        terms = np.maximum(self.lower * g, self.upper * g)
        return float(terms.sum()) + sum_error(terms.size) * float(np.abs(terms).sum())

    def reach(self, shape: Shape) -> float:
        return lp_norm(
            np.ascontiguousarray(np.broadcast_to(np.maximum(np.abs(self.lower), np.abs(self.upper)), shape)), 2.0
        )

    def diameter(self, shape: Shape) -> float:
        return lp_norm(np.ascontiguousarray(np.broadcast_to(np.subtract(self.upper, self.lower), shape)), 2.0)

    def centre(self, shape: Shape) -> Array:
        return np.broadcast_to(np.add(np.multiply(0.5, self.lower), np.multiply(0.5, self.upper)), shape).copy()

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        x = point(w)
        allowed = slack(w, rtol) * np.maximum(np.abs(self.lower), np.abs(self.upper))
        return bool(np.all((x >= self.lower - allowed) & (x <= self.upper + allowed)))

    @checked_point
    def project(self, w: Array) -> Array:
        return np.clip(w, self.lower, self.upper)

    def _shape(self) -> Shape:
        return np.broadcast_shapes(np.shape(self.lower), np.shape(self.upper))
