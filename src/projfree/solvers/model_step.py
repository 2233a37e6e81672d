"""The step to the minimiser of a model: all the way where the function falls enough, else to the minimum on the way."""

from __future__ import annotations

import numpy as np

from projfree.algebra import UNIT, Minorant, Point
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation

#: A step counts as good if it brings this part of the decrease that the gradient lets expect.
ARMIJO = 0.1
#: An expected decrease of this many roundings of the value is none.
NOTHING = 16.0


def falls_enough(there: float, value: float, expected: float) -> bool:
    """Whether the value ``there`` is as far below ``value`` as the expected decrease asks for, up to rounding."""
    return there <= value - ARMIJO * expected + 4.0 * UNIT * abs(value)


def step_towards(
    f: SmoothFunction, x: Point, value: float, m: Minorant, v: Point, expected: float
) -> tuple[Evaluation, float]:
    """The next iterate and the step from ``x``, where the tangent is ``m``, towards ``v``."""
    there = f.evaluate(v, keep=True)
    if falls_enough(there.value, value, expected):
        return there, 1.0
    hull = f.hull((x, v), m.gradient)
    place = hull.minimise(np.zeros(1))
    return f.evaluate(hull.mix(place), keep=True), float(place[0])
