"""Balls of scaled coordinates."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from projfree.algebra import LowRank, is_structured
from projfree.checks import Array, all_finite, at_least, positive, real_array, shown
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.projections import project
from projfree.sets.base import ConstraintSet, NormBall, Shape, Structure, Wrapper
from projfree.sets.inputs import check_broadcast, check_matrix, checked_point, frozen
from projfree.sets.lp import hoelder
from projfree.sets.schatten import SchattenBall


class ScaledBall(Wrapper, NormBall):
    r"""All points w whose image :math:`D w` under an invertible scaling of the entries, `_times`, lies in a norm ball.

    With the inverse of the scaling, `_inner`,

    .. math:: \operatorname{lmo}(g) = D^{-1} \operatorname{lmo}_{\text{ball}}(D^{-1} g), \qquad
              \|w\| = \|D w\|_{\text{ball}}, \qquad \|g\|_* = \|D^{-1} g\|_{\text{ball}, *} .
    """

    @abstractmethod
    def _times(self, w: Any) -> Any:
        """The point in the coordinates of the ball, D w."""

    @property
    @abstractmethod
    def _range(self) -> tuple[float, float]:
        """The smallest and the largest entry of D."""

    def _outer(self, vertex: Any, g: Any) -> Any:
        return self._inner(vertex)

    def norm(self, w: Array) -> float:
        x, scale = self._scaled(w)
        return scale * float(self.ball.norm(self._times(x)))

    def dual_norm(self, g: Array) -> float:
        return self.support(g) / self.radius

    def strong_convexity(self, shape: Shape) -> float:
        r""":math:`\alpha\, d_{\min}^2 / d_{\max}` with the ball's Euclidean :math:`\alpha`; safe, not sharp."""
        low, high = self._range
        return float(self.ball.strong_convexity(shape)) * low * low / high

    def reach(self, shape: Shape) -> float:
        self.check_shape(shape)
        return float(self.ball.reach(shape)) / self._range[0]


@dataclass(frozen=True, eq=False)
class Weighted(ScaledBall):
    r"""All arrays that lie in a norm ball once their entries are multiplied by positive weights.

    .. math:: \|d \circ w\| \le r, \qquad d > 0

    So features can carry scales: a larger weight makes an entry more expensive. The projection exists for weighted l_p
    norms: a weighted threshold for ``p = 1``, a clip for ``p = inf``, and otherwise Newton's method on
    :math:`x_j + \mu d_j^p x_j^{p-1} = |w_j|`.

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

    @property
    def radius(self) -> float:  # type: ignore[override]  # read-only here: the ball holds it
        return self.ball.radius

    def _times(self, w: Any) -> Any:
        return w * self.weights

    def _inner(self, g: Any) -> Any:
        return g / self.weights

    @property
    def _range(self) -> tuple[float, float]:
        return float(np.min(self.weights)), float(np.max(self.weights))

    def check_shape(self, shape: Shape) -> None:
        check_broadcast("Weighted", "weights", np.shape(self.weights), shape)
        self.ball.check_shape(shape)

    def reach(self, shape: Shape) -> float:
        r"""For l_p balls :math:`r \|1/d\|_t` with :math:`1/t = \max(0, 1/2 - 1/p)`, by Hoelder, attained."""
        inner = self.ball.structure(shape).plain_lp
        if inner is None:
            return super().reach(shape)
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


@dataclass(frozen=True, eq=False)
class WeightedSchattenBall(ScaledBall):
    r"""All matrices in a Schatten ball once rows and columns are multiplied by positive weights.

    .. math:: \|D_r W D_c\|_{S_p} \le r

    With weights that are powers of how often rows and columns were observed it corrects for entries that are not
    missing at random. The projection has no closed form. Cost: that of `SchattenBall`.

    Parameters
    ----------
    p, radius : float
        The exponent, from 1 to ``math.inf``, and the radius, positive and finite.
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

    @property
    def ball(self) -> SchattenBall:
        """The plain ball in the weighted coordinates."""
        return SchattenBall(self.p, self.radius)

    def structure(self, shape: Shape) -> Structure:
        return replace(self.ball.structure(shape), lp=None, group_l1=None, projection="none")

    def check_shape(self, shape: Shape) -> None:
        check_matrix("WeightedSchattenBall", shape, "rows x columns")
        if tuple(shape) != (len(self.rows), len(self.cols)):
            raise ValueError(
                f"`WeightedSchattenBall` has weights for {len(self.rows)} rows and {len(self.cols)} columns, got a "
                f"matrix of shape {tuple(shape)}."
            )

    def _times(self, w: Any) -> Any:
        return w.scaled(self.rows, self.cols) if is_structured(w) else w * self.rows[:, None] * self.cols

    def _inner(self, g: Any) -> Any:
        if is_structured(g):
            return g.scaled(1.0 / self.rows, 1.0 / self.cols)
        return g / self.rows[:, None] / self.cols

    @property
    def _range(self) -> tuple[float, float]:
        return float(self.rows.min() * self.cols.min()), float(self.rows.max() * self.cols.max())


def compressed(ball: ConstraintSet, w: Any) -> Any:
    """``w`` itself, or where it is a matrix whose factors have grown too large, a smaller one nearby in the set."""
    if not isinstance(w, LowRank) or w.fits:
        return w
    if isinstance(ball, WeightedSchattenBall):  # in the coordinates where no norm grows when singular values go
        return ball._inner(ball._times(w).compressed(columns=w.capacity // 2))
    return w.compressed(columns=w.capacity // 2) if isinstance(ball, SchattenBall) else w
