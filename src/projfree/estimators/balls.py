"""From the parameters of an estimator to its constraint set, and what a set says about a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from projfree import sets
from projfree.checks import Array, shown
from projfree.sets import ConstraintSet, LpBall, NormBall, Positive, WithFree
from projfree.sets.base import resized

NORMS = ("lp", "group", "schatten")
#: The radius of ``ball_`` where ``radius_`` is 0, as balls need a positive one: products with its points vanish.
ZERO_RADIUS = float(np.finfo(np.float64).tiny)


def make_ball(
    norm: Any, p: float, q: float | None, radius: float, *, positive: bool, groups: Any, shape: tuple[int, ...]
) -> ConstraintSet:
    """The set for parameters of this shape, or a sentence on which argument does not fit."""
    if isinstance(norm, ConstraintSet):
        ball = norm
    elif norm == "lp":
        ball = LpBall(p, radius)
    elif norm == "group":
        ball = sets.GroupBall(p, 1.0 if q is None else q, radius, None if groups is None else labels(groups))
    elif norm == "schatten":
        ball = sets.SchattenBall(p, radius)
    else:
        raise ValueError(f"`norm` must be one of {', '.join(map(repr, NORMS))} or a ConstraintSet, got {shown(norm)}.")
    _refuse(norm, groups, shape)
    if positive:
        if not isinstance(ball, NormBall):
            raise TypeError(
                f"`positive=True` needs an l_p or a group ball, got {shown(ball)}; use `Positive` yourself."
            )
        ball = Positive(ball)
    ball.check_shape(shape)
    return ball


def _refuse(norm: Any, groups: Any, shape: tuple[int, ...]) -> None:
    if groups is not None and norm != "group":
        raise ValueError(f"`feature_groups` needs `norm='group'`, got {shown(norm)}.")
    if norm == "group" and groups is None and len(shape) == 1:
        raise ValueError("`norm='group'` with one output needs `feature_groups`, a label for each feature.")
    if norm == "schatten" and len(shape) == 1:
        raise ValueError("`norm='schatten'` needs coefficients that are a matrix: several outputs, classes or tasks.")


def labels(groups: Any) -> tuple[int, ...]:
    """Labels of any kind as whole numbers; a list of lists of columns names the groups one after the other."""
    if isinstance(groups, Sequence) and groups and all(isinstance(g, list | tuple | np.ndarray) for g in groups):
        places = np.concatenate([np.asarray(g, dtype=np.intp) for g in groups])
        if sorted(places.tolist()) != list(range(len(places))):
            raise ValueError("`feature_groups` as lists of columns must name each column once, from 0.")
        owner: Array = np.empty(len(places), dtype=np.intp)
        for label, members in enumerate(groups):
            owner[np.asarray(members, dtype=np.intp)] = label
        return tuple(owner.tolist())
    return tuple(np.unique(np.asarray(groups), return_inverse=True)[1].tolist())


def radius_of(ball: ConstraintSet) -> float | None:
    """The radius of a ball, None where the set has none."""
    inner = ball.ball if isinstance(ball, WithFree) else ball
    radius = getattr(inner, "radius", None)
    return None if radius is None else 0.0 if radius == ZERO_RADIUS else float(radius)


def ball_through(ball: ConstraintSet, w: Array) -> ConstraintSet:
    """The ball with ``w`` on its boundary."""
    through: ConstraintSet = resized(ball, own_norm(ball, w) or ZERO_RADIUS)
    return through


def own_norm(ball: ConstraintSet, w: Array) -> float:
    """The norm of the ball behind a set, of the part of ``w`` that lies in it."""
    if isinstance(ball, WithFree):
        return own_norm(ball.ball, ball.split(w)[0])
    inner = ball.ball if isinstance(ball, Positive) else ball
    if not isinstance(inner, NormBall):
        raise TypeError(f"penalties and radius grids need a norm ball, got {shown(ball)}; give the set a size.")
    return inner.norm(w)


def inside(ball: ConstraintSet, w: Array | None, shape: tuple[int, ...]) -> Array | None:
    """``w`` if it lies in the set, else the nearest point; None where there is no way to it."""
    if w is None or w.shape != shape or not np.isfinite(w).all():
        return None
    if ball.contains(w):
        return w
    radius = radius_of(ball)
    if radius is not None and not isinstance(ball, WithFree):
        try:
            shrunk: Array = w * (radius / own_norm(ball, w))
        except TypeError:
            shrunk = w
        if ball.contains(shrunk):
            return shrunk
    return ball.project(w) if ball.structure(shape).projection != "none" else None
