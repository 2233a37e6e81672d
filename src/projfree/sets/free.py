"""A ball for some coordinates, wide bounds for the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.checks import Array, instance, positive
from projfree.sets.base import FEASIBILITY, ConstraintSet, OracleResult, Shape, Structure, Wrapper, slack
from projfree.sets.group import checked_labels
from projfree.sets.inputs import finite, like, point
from projfree.sets.lp import LpBall


@dataclass(frozen=True)
class WithFree(Wrapper):
    r"""A set whose ``free`` entries of a vector, or rows of a matrix, lie outside the ball.

    .. math:: C \times [-R, R]^m

    Solvers need compact sets, so the free entries have a bound, meant to be far beyond what the data can ask for. A
    certificate is then one over the product; the multiplier of the ball is not touched by it.

    Parameters
    ----------
    ball : ConstraintSet
        The set of the other entries (rows), in their order.
    free : sequence of int
        Which entries (rows) are free, at least one, from 0; the others must not be empty either.
    bound : float
        R, positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import LpBall, WithFree
    >>> WithFree(LpBall(2, radius=5.0), free=[1], bound=100.0).lmo(np.array([3.0, -1.0, 4.0]))
    array([ -3., 100.,  -4.])
    """

    ball: ConstraintSet
    free: tuple[int, ...]
    bound: float

    def __post_init__(self) -> None:
        instance("WithFree(ball=...)", self.ball, ConstraintSet, "LpBall(2, radius=1.0)")
        free = sorted(set(checked_labels("WithFree(free=...)", self.free)))
        if free[0] < 0:
            raise ValueError(f"`WithFree(free=...)` must be places from 0, got {free[0]}.")
        object.__setattr__(self, "free", tuple(free))
        object.__setattr__(self, "bound", positive("WithFree(bound=...)", self.bound))

    @classmethod
    def examples(cls) -> tuple[ConstraintSet, ...]:
        return cls(LpBall(2.0, 1.5), (0,), 3.0), cls(LpBall(1.0, 1.5), (1,), 0.5)

    def structure(self, shape: Shape) -> Structure:
        self.check_shape(shape)
        free = np.array(self.free, dtype=np.intp)
        inner = self.ball.structure(self._inner(shape))
        if len(inner.free):  # numbered within the ball
            inner = replace(inner, lp=None, group_l1=None)
        return replace(inner, round=False, absolute=False, free=free, free_bound=self.bound)

    def check_shape(self, shape: Shape) -> None:
        if not shape or self.free[-1] >= shape[0] or len(self.free) >= shape[0]:
            raise ValueError(
                f"`WithFree(free=...)` names {self.free}, which do not fit points of shape {shape}: all must lie "
                "below the first side, and at least one entry must be left for the ball."
            )
        self.ball.check_shape(self._inner(shape))

    def _inner(self, shape: Shape) -> Shape:
        return (shape[0] - len(self.free), *shape[1:])

    def _kept(self, n: int) -> Array:
        kept: Array = np.ones(n, dtype=bool)
        kept[list(self.free)] = False
        return kept

    def split(self, w: Array) -> tuple[Array, Array]:
        """The part in the ball, and the free part."""
        self.check_shape(w.shape)
        kept = self._kept(len(w))
        return w[kept], w[~kept]

    def multiplier(self, gradient: Array, support: float | None = None) -> float | None:
        return self.ball.multiplier(self.split(gradient)[0])

    def joined(self, inside: Array, free: Array) -> Array:
        """The point with these parts."""
        out = np.empty((len(inside) + len(free), *inside.shape[1:]))
        kept = self._kept(len(out))
        out[kept], out[~kept] = inside, free
        return out

    def lmo(self, g: Array) -> Array:
        inside, free = self.split(finite("lmo(g)", g))
        return like(g, self.joined(self.ball.lmo(inside), -self.bound * np.sign(free)))

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        inside, free = self.split(finite("lmo(g)", g))
        vertex, support, *rest = self.ball.oracle(inside, warm)
        vertex = self.joined(vertex, -self.bound * np.sign(free))
        return OracleResult(like(g, vertex), support + self._free_support(free), *rest)

    def support(self, g: Array) -> float:
        inside, free = self.split(point(g))
        return self.ball.support(inside) + self._free_support(free)

    def _free_support(self, free: Array) -> float:
        return self.bound * float(np.abs(free).sum())

    def support_error(self, g: Array, support: float) -> float:
        inside, free = self.split(point(g))
        extent = self._free_support(free)
        # Two sums of like-signed terms, and one addition on top.
        rounding = self.support_rtol(g.shape) * extent
        last = 2.0 * float(np.finfo(np.float64).eps) * (abs(support) + extent)
        # What the ball has added, known up to that rounding.
        return self.ball.support_error(inside, abs(support - extent) + last) + rounding + last

    def support_rtol(self, shape: Shape) -> float:
        return super().support_rtol(shape) + self.ball.support_rtol(self._inner(shape))

    def reach(self, shape: Shape) -> float:
        self.check_shape(shape)
        return math.hypot(self.ball.reach(self._inner(shape)), self._extent(shape))

    def diameter(self, shape: Shape) -> float:
        self.check_shape(shape)
        return math.hypot(self.ball.diameter(self._inner(shape)), 2.0 * self._extent(shape))

    def _extent(self, shape: Shape) -> float:
        return self.bound * math.sqrt(len(self.free) * math.prod(shape[1:]))

    def centre(self, shape: Shape) -> Array:
        return self.joined(self.ball.centre(self._inner(shape)), np.zeros((len(self.free), *shape[1:])))

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        inside, free = self.split(np.asarray(w))
        most = self.bound * (1.0 + slack(w, rtol))
        return bool(self.ball.contains(inside, rtol) and np.all(np.abs(free) <= most))

    def project(self, w: Array) -> Array:
        inside, free = self.split(finite("project(w)", w))
        return like(w, self.joined(self.ball.project(inside), np.clip(free, -self.bound, self.bound)))
