"""The product of a set for some coordinates and a box for the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from projfree.checks import Array, instance, positive
from projfree.sets.base import FEASIBILITY, ConstraintSet, Shape, Structure, Wrapper, slack
from projfree.sets.group import checked_labels
from projfree.sets.inputs import checked_point


@dataclass(frozen=True)
class WithUnpenalized(Wrapper):
    r"""A set in which the ``free`` entries of a vector, or rows of a matrix, are not constrained by the ball.

    .. math:: C \times [-R, R]^m

    Solvers need compact sets, so the free entries are bounded; choose R much larger than any plausible coefficient. The
    certificate is valid for the product set; the multiplier of the ball does not change.

    Parameters
    ----------
    ball : ConstraintSet
        The set of the other entries (rows), in their order.
    free : sequence of int
        Indices of the free entries (rows). At least one entry must be free and at least one not.
    bound : float
        The bound R, positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import LpBall, WithUnpenalized
    >>> WithUnpenalized(LpBall(2, radius=5.0), free=[1], bound=100.0).lmo(np.array([3.0, -1.0, 4.0]))
    array([ -3., 100.,  -4.])
    """

    ball: ConstraintSet
    free: tuple[int, ...]
    bound: float

    def __post_init__(self) -> None:
        instance("WithUnpenalized(ball=...)", self.ball, ConstraintSet, "LpBall(2, radius=1.0)")
        free = sorted(set(checked_labels("WithUnpenalized(free=...)", self.free)))
        if free[0] < 0:
            raise ValueError(f"`WithUnpenalized(free=...)` must be places from 0, got {free[0]}.")
        object.__setattr__(self, "free", tuple(free))
        object.__setattr__(self, "bound", positive("WithUnpenalized(bound=...)", self.bound))

    def structure(self, shape: Shape) -> Structure:
        self.check_shape(shape)
        inner = self.ball.structure(self._rest(shape))
        simplex = inner.group_l1 is not None and inner.group_l1.tight
        if len(inner.free) or simplex:  # free indices are relative to the ball; a simplex has no monotone multiplier
            inner = replace(inner, lp=None, group_l1=None)
        free = np.array(self.free, dtype=np.intp)
        return replace(inner, absolute=False, free=free, free_bound=self.bound)

    def check_shape(self, shape: Shape) -> None:
        if not shape or self.free[-1] >= shape[0] or len(self.free) >= shape[0]:
            raise ValueError(
                f"`WithUnpenalized(free=...)` names {self.free}, which do not fit points of shape {shape}: all must be "
                "below the first side, and at least one entry must be left for the ball."
            )
        self.ball.check_shape(self._rest(shape))

    def _rest(self, shape: Shape) -> Shape:
        return (shape[0] - len(self.free), *shape[1:])

    def split(self, w: Array) -> tuple[Array, Array]:
        """Return the entries in the ball and the free entries."""
        self.check_shape(w.shape)
        return np.delete(w, self.free, axis=0), w[list(self.free)]

    def _joined(self, inside: Array, free: Array) -> Array:
        """Return the point with the given entries in the ball and free entries; the inverse of `split`."""
        out = np.empty((len(inside) + len(free), *inside.shape[1:]))
        out[list(self.free)] = free
        out[np.delete(np.arange(len(out)), self.free)] = inside
        return out

    def _inner(self, g: Array) -> Array:
        return self.split(g)[0]

    def _outer(self, vertex: Array, g: Array) -> Array:
        return self._joined(vertex, -self.bound * np.sign(self.split(g)[1]))

    def _extra(self, g: Array) -> float:
        return self.bound * float(np.abs(self.split(g)[1]).sum())

    def reach(self, shape: Shape) -> float:
        self.check_shape(shape)
        extent = self.bound * math.sqrt(len(self.free) * math.prod(shape[1:]))
        return math.hypot(self.ball.reach(self._rest(shape)), extent)

    def centre(self, shape: Shape) -> Array:
        return self._joined(self.ball.centre(self._rest(shape)), np.zeros((len(self.free), *shape[1:])))

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        inside, free = self.split(np.asarray(w))
        most = self.bound * (1.0 + slack(w, rtol))
        return bool(self.ball.contains(inside, rtol) and np.all(np.abs(free) <= most))

    @checked_point
    def project(self, w: Array) -> Array:
        inside, free = self.split(w)
        return self._joined(self.ball.project(inside), np.clip(free, -self.bound, self.bound))
