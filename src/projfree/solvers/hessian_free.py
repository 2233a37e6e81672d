r"""Truncated Newton method over an l_p ball, by products with the Hessian, for many parameters.

On the sphere of the ball the minimiser of f satisfies, with :math:`s = \operatorname{sgn}(x) |x|^{p-1}`,

.. math:: g(x) + \lambda s = 0, \qquad \|x\|_p = 1, \qquad \lambda > 0.

With the curvature of the constraint, the matrix of the Newton step is :math:`H + \lambda E^{-1}` on the tangent space
:math:`\langle s, dx\rangle = 0`, with :math:`E = dx/ds`. For p = 2 this is a ridge term. Entries with small E are
updated by :math:`s = -(g + H\,dx)/\lambda`, which is Newton's method in the mirror coordinate s; the others by x + dx.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array
from projfree.numerics.linear_systems import Product, conjugate_gradients
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.root_finding import find_root
from projfree.objectives.base import SmoothFunction
from projfree.objectives.hessian import Hessian
from projfree.sets import LpBall
from projfree.sets.base import ConstraintSet, frank_wolfe_gap
from projfree.solvers.base import Solver, State, evaluation_at_iterate, newton_step

#: A point whose norm is at least this fraction of the radius counts as a boundary point: half of the digits.
ON_SPHERE = 1.0 - math.sqrt(UNIT)
#: Relative residual at which conjugate gradients stop; the Frank-Wolfe gap decreases by its square.
TOLERANCE = 0.1
#: Maximum number of Hessian products per step.
MOST_PRODUCTS = 200


@dataclass(frozen=True, repr=False)
class HessianFreeNewton(Solver):
    r"""Truncated Newton method on the boundary or in the interior of an l_p ball, by products with the Hessian.

    .. math:: (H + \lambda E^{-1})\, dx = -(g + \lambda s), \qquad \langle s, dx\rangle = 0, \qquad
              s = \operatorname{sgn}(x) |x|^{p-1},

    for :math:`\|x\|_p = 1` and the multiplier :math:`\lambda = -\langle g, x\rangle`, is solved by conjugate gradients
    to a relative residual of 0.1, and the step is normalised to the sphere. In the interior, and for
    :math:`\lambda \le 0`, conjugate gradients are applied to H until they leave the ball. If f does not decrease
    enough, a line search follows; if the decrease is still small, a Frank-Wolfe step is tried.

    An iteration costs one read for the tangent and one per product, usually three to six. The memory is about twenty
    vectors of the size of the parameter. For non-convex losses the model is convex and tangent to f. For p close to one
    or large, `AcceleratedProjectedGradient` needs fewer reads.

    References
    ----------
    Dembo, Steihaug (1983), Truncated-Newton algorithms for large-scale unconstrained optimization; Absil, Mahony,
    Sepulchre (2008), Optimization algorithms on matrix manifolds.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import HessianFreeNewton, Logistic, LpBall, Objective, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    >>> f, ball = Objective(Logistic(), as_data(X, y)), LpBall(1.5, radius=1.0)
    >>> minimize(f, ball, HessianFreeNewton(), tol=1e-10).w.round(4)
    array([ 0.8937, -0.2887])
    """

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not f.structure.hessian:
            raise TypeError(
                f"HessianFreeNewton needs products with a Hessian, which {type(f).__name__} does not have here; "
                "use CorrectivePrimalAveraging or FrankWolfe."
            )
        _smooth_ball(ball, f.shape)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        return replace(state, t=0, bound=None, done=False)  # the tangent does not depend on the set

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        here = evaluation_at_iterate(f, state)
        x, g = here.point, here.slope.gradient
        lp, H = _smooth_ball(ball, f.shape), f.hessian(x)
        assert H is not None
        diagonal = H.diagonal() if lp.p != 2.0 else None
        gap = frank_wolfe_gap(ball, g, x.w)
        v = f.point(_newton_point(H, g, x.w, lp, diagonal), x.intercept)
        return replace(state, t=state.t + 1, **newton_step(f, ball, here, v, gap))


def _newton_point(H: Hessian, g: Array, w: Array, lp: LpBall, diagonal: Array | None) -> Array:
    """Return the end point of a truncated Newton step, computed for the unit ball and a normalised gradient."""
    r, size = lp.radius, float(np.abs(g).max(initial=0.0))
    if not size > 0.0:
        return w
    unit, slope = w.ravel() / r, g.ravel() / size

    def product(v: Array) -> Array:
        # Scale before and after the product, so that intermediate results do not overflow.
        return H.times((r * v).reshape(w.shape)).ravel() / size

    if lp.norm(w) >= ON_SPHERE * r and float(slope @ unit) < 0.0:
        scale = 0.0 if diagonal is None else diagonal.ravel() * (r / size)
        return (r * sphere_step(product, slope, unit, lp.p, scale)).reshape(w.shape)
    return (r * inner_step(product, slope, unit, lp.p)).reshape(w.shape)


def _smooth_ball(ball: ConstraintSet, shape: tuple[int, ...]) -> LpBall:
    """Return the set as an l_p ball with 1 < p < inf; raise ValueError if it is not one."""
    lp = ball.structure(shape).plain_lp
    if lp is None or not 1.0 < lp.p < math.inf:
        raise ValueError(
            f"HessianFreeNewton needs an l_p ball with 1 < p < inf, got {ball!r}; use AcceleratedProjectedGradient "
            "or CorrectivePrimalAveraging."
        )
    return lp


def sphere_step(product: Product, g: Array, x: Array, p: float, diagonal: Array | float = 0.0) -> Array:
    r"""Return the truncated Newton step on the unit sphere from a point ``x`` with :math:`\langle g, x\rangle < 0`.

    Parameters
    ----------
    product : callable
        Function that returns the product of the Hessian with a vector.
    g, x : array
        The gradient and the point, as 1-d arrays.
    p : float
        The exponent of the norm.
    diagonal : array or float
        Approximate diagonal of the Hessian, for the preconditioner and the choice of coordinates.
    """
    penalty = -float(g @ x)
    s = np.copysign(np.abs(x) ** (p - 1.0), x)
    with np.errstate(divide="ignore", over="ignore"):
        curvature = penalty * (p - 1.0) * np.abs(x) ** (p - 2.0)  # lambda / E
        inverse = 1.0 / (curvature + diagonal)
    still = ~np.isfinite(curvature) | ~np.isfinite(inverse)
    curvature, inverse = np.where(still, 0.0, curvature), np.where(still, 0.0, inverse)
    weighted = inverse * s
    length = float(s @ weighted)

    def tangent(v: Array) -> Array:
        z = inverse * v
        if length > 0.0:  # otherwise z is already tangential
            z -= (float(s @ z) / length) * weighted
        return z

    found = conjugate_gradients(
        lambda v: product(v) + curvature * v, -(g + penalty * s), tangent, tol=TOLERANCE, max_iter=MOST_PRODUCTS
    )
    if p == 2.0:
        return _normalized(x + found.x, p)
    mirrored = -(g + (found.image - curvature * found.x)) / penalty
    mirrored = np.copysign(np.abs(mirrored) ** (1.0 / (p - 1.0)), mirrored)
    return _normalized(np.where((curvature < diagonal) & ~still, x + found.x, mirrored), p)


def inner_step(product: Product, g: Array, x: Array, p: float) -> Array:
    """Return the truncated Newton step from ``x`` in the interior of the unit ball, shortened to stay in the ball."""
    found = conjugate_gradients(
        product, -g, tol=TOLERANCE, max_iter=MOST_PRODUCTS, until=lambda move: not lp_norm(x + move, p) < 1.0
    )
    move = found.x
    if found.flat is not None:  # a direction without curvature: move along it until outside the ball
        move = move + ((2.0 + lp_norm(move, p)) / lp_norm(found.flat, p)) * found.flat
    if lp_norm(x + move, p) < 1.0:
        return x + move

    def look(part: float) -> tuple[float, float, float]:
        y = x + part * move
        norm = lp_norm(y, p)
        unit = y / norm if norm > 0.0 else y
        return norm - 1.0, float(np.copysign(np.abs(unit) ** (p - 1.0), unit) @ move), 0.0

    return _normalized(x + find_root(look, 1.0, 0.0, 1.0) * move, p)


def _normalized(v: Array, p: float) -> Array:
    norm = lp_norm(v, p)
    return v / norm if norm > 0.0 else v
