"""Balls of scaled coordinates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from projfree.algebra import LowRank, is_structured
from projfree.checks import Array, all_finite, at_least, positive, real_array, shown
from projfree.numerics.projections import project
from projfree.sets.base import ConstraintSet, NormBall, OracleResult, Shape, Structure, Wrapper
from projfree.sets.box import check_broadcast, frozen
from projfree.sets.group import GroupBall
from projfree.sets.inputs import finite, largest, like, matrix, point
from projfree.sets.lp import LpBall
from projfree.sets.schatten import SchattenBall


class ScaledBall(Wrapper, NormBall):
    r"""All points w whose image :math:`D w` under an invertible scaling of the entries lies in a norm ball.

    .. math:: \operatorname{lmo}(g) = D^{-1} \operatorname{lmo}_{\text{ball}}(D^{-1} g), \qquad
              \|w\| = \|D w\|_{\text{ball}}, \qquad \|g\|_* = \|D^{-1} g\|_{\text{ball}, *} .
    """

    @abstractmethod
    def _times(self, w: Any) -> Any:
        """The point in the coordinates of the ball, D w."""

    @abstractmethod
    def _divided(self, g: Any) -> Any:
        """The gradient in the coordinates of the ball, or a point of the ball in one's own: :math:`D^{-1} g`."""

    @property
    @abstractmethod
    def _range(self) -> tuple[float, float]:
        """The smallest and the largest entry of D."""

    def lmo(self, g: Array) -> Array:
        return like(g, self._divided(self.ball.lmo(self._gradient(g)[0])))

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        c, top = self._gradient(g)
        vertex, support, *rest = self.ball.oracle(c, warm)
        return OracleResult(like(g, self._divided(vertex)), top * support, *rest)

    def _gradient(self, g: Array) -> tuple[Any, float]:
        """The gradient in the coordinates of the ball, divided by its largest entry, and that entry."""
        self.check_shape(np.shape(g))
        if is_structured(g):
            return self._divided(g), 1.0
        c = finite("lmo(g)", g)
        top = largest(c)  # division by a weight must not lose a tiny gradient
        return self._divided(c / top), top

    def norm(self, w: Array) -> float:
        return self._norm(self.ball.norm, w, self._times)

    def dual_norm(self, g: Array) -> float:
        return self._norm(self.ball.dual_norm, g, self._divided)

    def _norm(self, norm: Callable[[Any], float], w: Any, change: Callable[[Any], Any]) -> float:
        self.check_shape(np.shape(w))
        if is_structured(w):
            return norm(change(w))
        x = point(w)
        top = largest(x)
        return top * norm(change(x / top)) if math.isfinite(top) else top

    def support_rtol(self, shape: Shape) -> float:
        return float(self.ball.support_rtol(shape)) + 8.0 * float(np.finfo(np.float64).eps)

    def strong_convexity(self, shape: Shape) -> float:
        r""":math:`\alpha\, d_{\min}^2 / d_{\max}` with the ball's Euclidean :math:`\alpha`; safe, not sharp."""
        low, high = self._range
        return float(self.ball.strong_convexity(shape)) * low * low / high


@dataclass(frozen=True, eq=False)
class Weighted(ScaledBall):
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

    def _times(self, w: Any) -> Any:
        return w * self.weights

    def _divided(self, g: Any) -> Any:
        return g / self.weights

    @property
    def _range(self) -> tuple[float, float]:
        return float(np.min(self.weights)), float(np.max(self.weights))

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

    def check_shape(self, shape: Shape) -> None:
        check_broadcast("Weighted", "weights", np.shape(self.weights), shape)
        self.ball.check_shape(shape)

    def project(self, w: Array) -> Array:
        x = finite("project(w)", w)
        self.check_shape(x.shape)
        structure = self.structure(x.shape)
        if structure.lp is None:
            raise NotImplementedError(
                f"{self!r} has no projection, only weighted l_p balls have one; "
                "use PrimalAveraging or FrankWolfe, which need none."
            )
        return like(w, project(x, structure.lp.p, structure.lp.radius, structure.weights))

    def reach(self, shape: Shape) -> float:
        return self.ball.stretch(1.0 / np.broadcast_to(self.weights, shape))

    def stretch(self, scale: Array) -> float:
        return self.ball.stretch(scale / self.weights)


@dataclass(frozen=True, eq=False)
class WeightedSchattenBall(ScaledBall):
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

    def structure(self, shape: Shape) -> Structure:
        return replace(self.ball.structure(shape), lp=None, group_l1=None, projection="none")

    @property
    def ball(self) -> SchattenBall:
        """The plain ball in the weighted coordinates."""
        return SchattenBall(self.p, self.radius)

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

    def _times(self, w: Any) -> Any:
        return w.scaled(self.rows, self.cols) if is_structured(w) else w * self.rows[:, None] * self.cols

    def _divided(self, g: Any) -> Any:
        if is_structured(g):
            return g.scaled(1.0 / self.rows, 1.0 / self.cols)
        return g / self.rows[:, None] / self.cols

    @property
    def _range(self) -> tuple[float, float]:
        return float(self.rows.min() * self.cols.min()), float(self.rows.max() * self.cols.max())

    def shortened(self, w: Any) -> Any:
        if not isinstance(w, LowRank) or w.fits:
            return w
        # In the ball's own coordinates, where no norm grows when singular values go.
        return self._divided(self._times(w).shortened())

    def reach(self, shape: Shape) -> float:
        r"""That of the plain ball, divided by the smallest product of a row's and a column's weight."""
        self.check_shape(shape)
        return self.ball.reach(shape) / self._range[0]
