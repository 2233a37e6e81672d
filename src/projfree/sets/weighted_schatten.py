"""The ball of a Schatten norm of a matrix whose rows and columns carry weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from projfree.algebra import LowRank, Structured, is_structured
from projfree.checks import Array, all_finite, at_least, positive, real_array, shown
from projfree.sets import spectral
from projfree.sets.answer import Answer
from projfree.sets.base import ConstraintSet, NormBall, Shape, SupportCost
from projfree.sets.box import frozen
from projfree.sets.inputs import finite, largest, like, matrix, point
from projfree.sets.schatten import SchattenBall


@dataclass(frozen=True, eq=False)
class WeightedSchattenBall(NormBall):
    r"""All matrices in a Schatten ball once rows and columns are multiplied by positive weights.

    .. math:: \|D_r W D_c\|_{S_p} \le r

    With weights that are powers of how often rows and columns were observed it corrects for entries that are not
    missing at random. All of it follows from the plain ball,

    .. math:: \operatorname{lmo}(G) = D_r^{-1} \operatorname{lmo}_{S_p}(D_r^{-1} G D_c^{-1})\, D_c^{-1}, \qquad
              \|G\|_* = \|D_r^{-1} G D_c^{-1}\|_{S_q},

    except for a projection, which has no closed form. Cost: that of `SchattenBall`.

    Parameters
    ----------
    p : float
        The exponent, from 1 to ``math.inf``.
    radius : float
        The radius, positive and finite.
    rows, cols : array
        The weights, positive and finite, one for each row and column.

    References
    ----------
    Salakhutdinov, Srebro (2010), Collaborative filtering in a non-uniform world: learning with the weighted trace norm.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import WeightedSchattenBall
    >>> ball = WeightedSchattenBall(1, radius=2.0, rows=[1.0, 2.0], cols=[1.0, 1.0])
    >>> ball.norm(np.diag([1.0, 0.5]))
    2.0
    """

    p: float
    radius: float
    rows: Array = field(repr=False)
    cols: Array = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", at_least("WeightedSchattenBall(p=...)", self.p, 1.0))
        object.__setattr__(self, "radius", positive("WeightedSchattenBall(radius=...)", self.radius))
        for name in ("rows", "cols"):
            call = f"WeightedSchattenBall({name}=...)"
            weights = all_finite(call, real_array(call, getattr(self, name))).astype(np.float64)
            if weights.ndim != 1 or not len(weights) or weights.min() <= 0.0:
                raise ValueError(f"`{call}` must be a vector of positive weights, got {shown(weights.tolist())}.")
            object.__setattr__(self, name, frozen(weights))

    def as_weighted_schatten(self) -> WeightedSchattenBall:
        return self

    @property
    def ball(self) -> SchattenBall:
        """The plain ball in the weighted coordinates."""
        return SchattenBall(self.p, self.radius)

    @property
    def support_cost(self) -> SupportCost:  # type: ignore[override]  # read-only here: it follows from p
        return "entries" if self.p == 2.0 else "singular values"

    @property
    def is_round(self) -> bool:  # type: ignore[override]  # as above
        return self.ball.is_round

    @classmethod
    def examples(cls) -> tuple[ConstraintSet, ...]:
        rows, cols = np.array([0.5, 1.0, 2.0, 3.0]), np.array([1.0, 0.25, 2.0])
        return tuple(cls(p, 1.5, rows, cols) for p in (1.0, 1.2, 2.0, 3.0, math.inf))

    def check_shape(self, shape: Shape) -> None:
        matrix("WeightedSchattenBall", shape, "rows x columns")
        if tuple(shape) != (len(self.rows), len(self.cols)):
            raise ValueError(
                f"`WeightedSchattenBall` has weights for {len(self.rows)} rows and {len(self.cols)} columns, got a "
                f"matrix of shape {tuple(shape)}."
            )

    def lmo(self, g: Array) -> Array:
        vertex: Array = self.oracle(g).vertex
        return vertex

    def oracle(self, g: Array, warm: Any = None) -> Answer:
        self.check_shape(np.shape(g))
        if is_structured(g):
            vertex, support, warm = spectral.oracle(self._lowered(g), self.p, self.radius, warm)
            return Answer(self._lowered(vertex), support, warm)
        c = finite("lmo(g)", g)
        top = largest(c)
        found, support, _ = self.ball.oracle(c / top / self._table)
        return Answer(like(g, found / self._table), top * support)

    def support_floor(self, g: Array, last: Answer | None) -> float:
        return spectral.support_floor(self._lowered(g), self.p, self.radius, last) if is_structured(g) else -math.inf

    def norm(self, w: Array) -> float:
        self.check_shape(np.shape(w))
        if is_structured(w):
            return spectral.norm(w.scaled(self.rows, self.cols), self.p)
        x = point(w)
        top = largest(x)
        return top * self.ball.norm(x / top * self._table) if math.isfinite(top) else top

    def shortened(self, w: Any) -> Any:
        if not isinstance(w, LowRank) or w.fits:
            return w
        # In the ball's own coordinates, where no norm grows when singular values go.
        return self._lowered(w.scaled(self.rows, self.cols).shortened())

    def dual_norm(self, g: Array) -> float:
        self.check_shape(np.shape(g))
        if is_structured(g):
            return spectral.support(self._lowered(g), self.p, 1.0)
        c = point(g)
        top = largest(c)
        return top * self.ball.dual_norm(c / top / self._table) if math.isfinite(top) else top

    def support_rtol(self, shape: Shape) -> float:
        return self.ball.support_rtol(shape) + 8.0 * float(np.finfo(np.float64).eps)

    def reach(self, shape: Shape) -> float:
        r"""That of the plain ball, divided by the smallest product of a row's and a column's weight."""
        self.check_shape(shape)
        return self.ball.reach(shape) / float(self.rows.min() * self.cols.min())

    def strong_convexity_own_norm(self) -> float:
        """That of the plain ball: the weights are an isometry of the two norms."""
        return self.ball.strong_convexity_own_norm()

    def strong_convexity(self, shape: Shape) -> float:
        r""":math:`\alpha\, d_{\min}^2 / d_{\max}` with the plain ball's :math:`\alpha` and d the weights' products."""
        low, high = float(self.rows.min() * self.cols.min()), float(self.rows.max() * self.cols.max())
        return self.ball.strong_convexity(shape) * low * low / high

    @property
    def _table(self) -> Array:
        return np.multiply.outer(self.rows, self.cols)

    def _lowered(self, g: Structured) -> Any:
        return g.scaled(1.0 / self.rows, 1.0 / self.cols)
