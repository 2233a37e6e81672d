"""`Perturbed`: the function h = f + theta <xi, w> of the paper; runs report the value of f."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from projfree.algebra import Minorant, Point, inner
from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, at_least, positive, real_array
from projfree.objectives.base import Evaluation, FunctionStructure, SmoothFunction
from projfree.objectives.hessian import Hessian
from projfree.objectives.hull import Hull
from projfree.sets.base import ConstraintSet


class Perturbed(SmoothFunction):
    r"""The function :math:`h(w) = f(w) + \theta\langle\xi, w\rangle`.

    A run on h reports the value of f and a lower bound for f, because each evaluation of h includes that of f.

    Parameters
    ----------
    f, theta, xi : SmoothFunction, float, array
        The function, and the size and the direction of the perturbation.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Perturbed, QuadraticForm
    >>> h = Perturbed(QuadraticForm(np.eye(2), np.zeros(2)), theta=0.5, xi=np.array([0.0, 1.0]))
    >>> h(h.point([0.0, 2.0])), h.reported(h.point([0.0, 2.0]))
    (3.0, 2.0)
    """

    def __init__(self, f: SmoothFunction, theta: float, xi: Array) -> None:
        self.f, self.theta = f, at_least("theta", theta, 0.0)
        self.xi = all_finite("xi", real_array("xi", xi)).astype(np.float64)
        if self.xi.shape != f.shape:
            raise ValueError(f"`xi` must have the shape {f.shape} of the parameter, got {self.xi.shape}.")
        self.shape, self.convex = f.shape, f.convex

    @property  # a property, because evaluations of f may show that it is not convex
    def structure(self) -> FunctionStructure:  # type: ignore[override]
        own = self.f.structure
        name = f"Perturbed {own.name}"
        return replace(own, name=name, quadratic=False, loss=None, least=-math.inf, rounding=None)

    @property
    def passes(self) -> float:
        return self.f.passes

    @property
    def reported(self) -> SmoothFunction:
        return self.f.reported

    def smoothness(self) -> float:
        return self.f.smoothness()

    def hessian(self, x: Point, features: Array | None = None) -> Hessian | None:
        return self.f.hessian(x, features)

    def open(self) -> Self:
        h = copy(self)
        h.f = self.f.open()
        return h

    def evaluate(self, x: Point, also: tuple[Point, ...] = (), **how: bool) -> Evaluation:
        return self._tilted(self.f.evaluate(x, also, **how))

    def _tilted(self, found: Evaluation) -> Evaluation:
        value = found.value + self.theta * inner(self.xi, found.point.w)
        tangent = None if found.tangent is None else found.tangent.shifted(self.xi, self.theta)
        return Evaluation(found.point, value, tangent, tuple(map(self._tilted, found.also)), found.reported)

    def estimate(self, x: Point, m: int, rng: np.random.Generator) -> Minorant:
        return self.f.estimate(x, m, rng).shifted(self.xi, self.theta)

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None) -> Hull:
        hull = self.f.hull(points, gradient)
        hull.tilt = hull.tilt + self.theta * np.array([inner(self.xi, p.w - points[0].w) for p in points[1:]])
        return hull

    def fingerprint(self) -> str:
        return f"perturbed {self.theta!r} {short_hash('', self.xi)} {self.f.fingerprint()}"


def perturb(f: SmoothFunction, ball: ConstraintSet, epsilon: float, rng: np.random.Generator) -> Perturbed:
    r"""Return h(w) = f(w) + theta <xi, w> with :math:`\xi` uniform on the unit sphere, as in the paper.

    The size is :math:`\theta = \epsilon / (4 D)`, where D is the diameter of the ball. The minimiser of h is then
    within :math:`\epsilon / 4` of the minimum of f, because :math:`\theta\langle\xi, w^* - w\rangle \le \theta D`;
    ``epsilon`` is in the units of f.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, QuadraticForm, perturb
    >>> f, ball = QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(2, radius=1.0)
    >>> perturb(f, ball, epsilon=0.1, rng=np.random.default_rng(0)).theta  # the diameter is 2
    0.0125
    """
    xi, diameter = rng.standard_normal(f.shape), ball.diameter(f.shape)
    if not diameter > 0.0:
        raise ValueError(f"`ball` must hold more than one point, got {ball!r}; minimise f itself there.")
    return Perturbed(f, positive("epsilon", epsilon) / (4.0 * diameter), xi / np.linalg.norm(xi))
