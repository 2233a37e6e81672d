"""Newton's method over a ball for parameters too many to form a Hessian: products with it are enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, inner
from projfree.checks import Array
from projfree.numerics.truncated_newton import inner_step, sphere_step
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.hessian import Hessian
from projfree.sets import LpBall
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Known, Solver, State
from projfree.solvers.model_step import NOTHING, falls_enough

#: A point whose norm is at least this part of the radius lies on the sphere,
ON_SPHERE = 1.0 - 1e-9
#: and solves the problem of its own radius if its Frank-Wolfe gap there is at most this part of the largest gap.
SOLVED = 1e-2
#: A step that brings less than this part of the gap is compared with one towards the vertex: where the curvature jumps,
#: as that of Huber's loss does, Newton's steps may fail for ever.
POOR = 1e-3


@dataclass(frozen=True, kw_only=True)
class HessianFreeState(State):
    """A state with the tangent ``m`` at the iterate, None where it must be taken, and the scale of the Hessian."""

    m: Minorant | None = None
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

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> HessianFreeState:
        assert isinstance(state, HessianFreeState)
        x, m, lp = state.x, state.m, _smooth_ball(ball, f.shape)
        norm = lp.norm(x.w)
        if m is not None and norm > 0.0:
            own = lp.resized(norm)
            if own.gap(m.gradient, x.w) <= SOLVED * own.support(-m.gradient):
                # The solution of a smaller ball: that of a larger one lies further out in about the same direction.
                x, m = f.point(x.w * (lp.radius / norm), x.intercept), None
        return HessianFreeState(t=0, x=x, seed=state.seed, m=m, diagonal=state.diagonal)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, HessianFreeState)
        x, m = state.x, state.m
        if m is None:
            here = f.evaluate(x, keep=True)
            x, m = here.point, here.slope
        lp, H, diagonal = _smooth_ball(ball, f.shape), f.hessian(x), state.diagonal
        assert H is not None
        if diagonal is None and lp.p != 2.0:
            diagonal = H.diagonal()
        value, gap = f.value(x), ball.gap(m.gradient, x.w)
        new, gamma = _moved(f, lp, x, m, f.point(_candidate(H, m.gradient, x.w, lp, diagonal), x.intercept))
        known, stuck = Known.of(ball, new), False
        if value - new.value < POOR * gap and not known.gap < (1.0 - POOR) * gap:
            other, way = _moved(f, lp, x, m, f.point(ball.lmo(m.gradient), x.intercept))
            useless = not (new.value < value or known.gap < gap)
            if other.value < (value if useless else min(value, new.value) - NOTHING * UNIT * abs(value)):
                new, gamma, known = other, way, Known.of(ball, other)
            elif useless:
                new, stuck = f.evaluate(x, keep=True), True
                known = Known.of(ball, new)
        return state.moved(
            t=state.t + 1,
            x=new.point,
            m=new.slope,
            diagonal=diagonal,
            gamma=gamma,
            evaluation=new,
            found=((state.t + 1, new),),
            bound=known.bound if f.convex else -math.inf,
            # Averages of tangents, which are as long as the parameter, prove less than the last one.
            allowance=known.allowance if new.rest is None else 0.0,
            gap=known.gap,
            done=stuck or gap <= NOTHING * UNIT * abs(value),
        )


def _candidate(H: Hessian, g: Array, w: Array, lp: LpBall, diagonal: Array | None) -> Array:
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


def _moved(f: SmoothFunction, lp: LpBall, x: Point, m: Minorant, v: Point) -> tuple[Evaluation, float]:
    """The next iterate and the step: v where f falls enough, else the minimiser on the way there."""
    expected = max(0.0, inner(m.gradient, x.w - v.w))
    there, value = f.evaluate(v, keep=True), f.value(x)
    if falls_enough(there.value, value, expected):
        return there, 1.0
    hull = f.hull((x, v), m.gradient)
    place = hull.minimise(np.zeros(1))
    best = hull.mix(place)
    norm = lp.norm(best.w)
    if min(lp.norm(x.w), lp.norm(v.w)) >= ON_SPHERE * lp.radius and norm > 0.0:
        # A chord cuts the ball short: its image, and so the value on the sphere beyond it, is known.
        beyond = (lp.radius / norm) * best
        best = beyond if f.value(beyond) < f.value(best) else best
    return f.evaluate(best, keep=True), float(place[0])


def _smooth_ball(ball: ConstraintSet, shape: tuple[int, ...]) -> LpBall:
    """The ball as one of a norm that is smooth and strictly convex, or a sentence."""
    lp = ball.structure(shape).plain_lp
    if lp is None or not 1.0 < lp.p < math.inf:
        raise ValueError(
            f"HessianFreeNewton needs an l_p ball with 1 < p < inf, got {ball!r}; use AcceleratedProjectedGradient "
            "or CorrectivePrimalAveraging."
        )
    return lp
