"""Radii chosen from the data: one cheap choice, and the grid of a path."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.estimators.balls import own_norm
from projfree.objectives import Objective
from projfree.sets.base import ConstraintSet

#: The default grid goes from the cheap radius divided by the first number to it times the second.
BELOW, ABOVE = 30.0, 30.0


def auto_radius(f: Objective, ball: ConstraintSet) -> float:
    r"""The norm of one gradient step from zero, in two passes.

    .. math:: r = \|\eta\,\nabla f(0)\|, \qquad
              \eta = \frac{\|\nabla f(0)\|_2^2}{L\,\frac1n \sum_i |(A \nabla f(0))_i|^2} ,

    with L the largest curvature of the loss: the step that minimises the bound which that curvature gives along the
    gradient, and for squares f itself. It is the first iterate of gradient descent, so strongly regularised where
    features are correlated and almost unconstrained where they are not. 1 where the gradient vanishes.
    """
    zero = f.point(np.zeros(f.shape))
    g = f.minorant(zero).gradient
    if not g.any():
        return 1.0
    segment = f.hull((zero, f.point(g)))
    # A loss without a largest curvature: that at zero.
    finite = math.isfinite(f.loss.smoothness)
    bend = segment.curvature if finite else float(segment.at(np.zeros(1)).hessian[0, 0])
    return _usable(own_norm(ball, g * (float(np.vdot(g, g)) / bend if bend > 0 else 1.0)))


def radius_grid(f: Objective, ball: ConstraintSet, count: int) -> Array:
    """``count`` radii in geometric progression, from `auto_radius` / 30 to 30 times it."""
    middle = auto_radius(f, ball)
    return np.geomspace(middle / BELOW, middle * ABOVE, count) if count > 1 else np.array([middle])


def _usable(radius: float) -> float:
    return radius if 0.0 < radius < np.inf else 1.0
