"""Newton's method over a ball for parameters too many to form a Hessian: products with it are enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import Point, inner
from projfree.checks import Array
from projfree.numerics.truncated_newton import inner_step, sphere_step
from projfree.objectives.base import SmoothFunction
from projfree.objectives.hessian import Hessian
from projfree.sets import LpBall
from projfree.sets.base import ConstraintSet, frank_wolfe_gap
from projfree.solvers.base import GapBound, Solver, State, evaluation_at_iterate, step_towards
from projfree.steps import is_rounding

#: A point whose norm is at least this part of the radius lies on the sphere: half of the digits.
ON_SPHERE = 1.0 - 1e-8
#: A step that brings less than this part of the gap is compared with one towards the vertex: where the curvature jumps,
#: as that of Huber's loss does, Newton's steps may fail for ever.
POOR = 1e-3


@dataclass(frozen=True, kw_only=True)
class HessianFreeState(State):
    """A state with the scale of the Hessian, an estimate of its diagonal."""

    diagonal: Array | None = None


@dataclass(frozen=True, repr=False)
class HessianFreeNewton(Solver):
    r"""Truncated Newton steps on the sphere of an l_p ball, or inside it, from products with the Hessian.

    .. math:: (H + \lambda E^{-1})\, dx = -(g + \lambda s), \qquad \langle s, dx\rangle = 0, \qquad
              s = \operatorname{sgn}(x) |x|^{p-1},

    for :math:`\|x\|_p = 1` and the multiplier :math:`\lambda = -\langle g, x\rangle`, by conjugate gradients until
    the residual has fallen tenfold; the step ends on the sphere. Inside the ball, and where :math:`\lambda \le 0`,
    conjugate gradients on H alone go on until they leave the ball. Where f does not fall enough, it is minimised on
    the segment, and where that hardly helps either, on the segment to the vertex of Frank and Wolfe.

    An iteration costs one read for the tangent and one for each product, of which three to six are usual; parameters
    take some twenty vectors of memory. For losses that are not convex the model is a convex one that touches f. Where
    p is close to one or large, `AcceleratedProjectedGradient` needs fewer reads.

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

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> HessianFreeState:
        return HessianFreeState(t=0, x=start, seed=seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, HessianFreeState)
        x, lp, here = state.x, _smooth_ball(ball, f.shape), evaluation_at_iterate(f, state)
        g, norm = here.slope.gradient, lp.norm(x.w)
        if norm > 0.0 and -inner(g, x.w) >= 0.5 * lp.resized(norm).support(-g):
            # About the solution of a smaller ball: that of a larger one lies further out in about the same direction.
            x = f.point(x.w * (lp.radius / norm), x.intercept)
        return replace(state, t=0, x=x, bound=None, done=False)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, HessianFreeState)
        here = evaluation_at_iterate(f, state)
        x, g = here.point, here.slope.gradient
        lp, H, diagonal = _smooth_ball(ball, f.shape), f.hessian(x), state.diagonal
        assert H is not None
        if diagonal is None and lp.p != 2.0:
            diagonal = H.diagonal()
        gap = frank_wolfe_gap(ball, g, x.w)
        v = f.point(_newton_point(H, g, x.w, lp, diagonal), x.intercept)
        new, gamma = step_towards(f, here, v, max(0.0, inner(g, x.w - v.w)))
        bound = GapBound.of(ball, new)
        if here.value - new.value < POOR * gap and not bound.gap < (1.0 - POOR) * gap:
            other, share = step_towards(f, here, f.point(ball.lmo(g), x.intercept), gap)
            if other.value < min(here.value, new.value):
                new, gamma, bound = other, share, GapBound.of(ball, other)
            elif not (new.value < here.value or bound.gap < gap):
                new, bound = here, GapBound.of(ball, here)
        return replace(
            state,
            t=state.t + 1,
            x=new.point,
            diagonal=diagonal,
            gamma=gamma,
            evaluation=new,
            bound=bound,
            done=new is here or is_rounding(gap, here.value),
        )


def _newton_point(H: Hessian, g: Array, w: Array, lp: LpBall, diagonal: Array | None) -> Array:
    """Where a truncated Newton step leads, found on the unit ball and with a gradient of about unit size."""
    r, size = lp.radius, float(np.abs(g).max(initial=0.0))
    if not size > 0.0:
        return w
    unit, slope = w.ravel() / r, g.ravel() / size

    def product(v: Array) -> Array:
        # The radius twice and one by one, so that no intermediate result leaves the range of numbers.
        return H.times((r * v).reshape(w.shape)).ravel() / size

    if lp.norm(w) >= ON_SPHERE * r and float(slope @ unit) < 0.0:
        scale = 0.0 if diagonal is None else diagonal.ravel() * (r / size)
        return (r * sphere_step(product, slope, unit, lp.p, scale)).reshape(w.shape)
    return (r * inner_step(product, slope, unit, lp.p)).reshape(w.shape)


def _smooth_ball(ball: ConstraintSet, shape: tuple[int, ...]) -> LpBall:
    """The ball as one of a norm that is smooth and strictly convex, or a sentence."""
    lp = ball.structure(shape).plain_lp
    if lp is None or not 1.0 < lp.p < math.inf:
        raise ValueError(
            f"HessianFreeNewton needs an l_p ball with 1 < p < inf, got {ball!r}; use AcceleratedProjectedGradient "
            "or CorrectivePrimalAveraging."
        )
    return lp
