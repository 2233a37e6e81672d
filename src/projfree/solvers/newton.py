"""Newton's method over a ball: a handful of passes where there are many more rows than features."""

from __future__ import annotations

from dataclasses import dataclass, replace

from projfree.algebra import Point, inner
from projfree.checks import Array
from projfree.deadline import raise_if_expired
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import GapBound, Solver, State, evaluation_at_iterate, falls_enough, step_towards
from projfree.solvers.direct import check_model, minimise_model
from projfree.steps import is_rounding

#: A Hessian is used again while the Frank-Wolfe gap falls by this factor in a step, as it does with a new one; where f
#: is not convex the model is not of second order, and a gap that is halved is enough.
REUSE = 0.01


@dataclass(frozen=True, kw_only=True)
class NewtonState(State):
    """A state with the Hessian of the next step, None where it must be formed.

    Attributes
    ----------
    H, response, inverse : ndarray or None
        See `Hessian.matrix` and `Hessian.intercept_response`.
    """

    H: Array | None = None
    response: Array | None = None
    inverse: Array | None = None


@dataclass(frozen=True, repr=False)
class ConstrainedNewton(Solver):
    r"""Minimise the quadratic model of f at the iterate over the set, exactly, and go there.

    .. math:: v_t = \arg\min_{v \in C} \langle\nabla f(x), v - x\rangle + \tfrac12 \langle v - x, H (v - x)\rangle,
              \qquad x_t = x + \gamma_t (v_t - x)

    with :math:`\gamma_t = 1` where f falls enough and else the minimiser on the segment. An iteration costs one read
    for the tangent and, unless the last Hessian serves again, one with O(n D^2) work for the Hessian. For losses that
    are not convex the model takes the size of the curvature instead; values decrease all the same.

    References
    ----------
    Levitin, Polyak (1966); Bertsekas (1982), Projected Newton methods for optimization with simple constraints;
    Shamanskii (1967) for using a Hessian several times.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import ConstrainedNewton, Logistic, LpBall, Objective, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    >>> result = minimize(Objective(Logistic(), as_data(X, y)), LpBall(1.5, radius=1.0), ConstrainedNewton())
    >>> result.w.round(4), result.n_iter
    (array([ 0.8936, -0.2889]), 2)
    """

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not f.structure.hessian:
            raise TypeError(
                f"ConstrainedNewton needs the Hessian of a function of features, which {type(f).__name__} has not; "
                "use CorrectivePrimalAveraging or FrankWolfe."
            )
        check_model(ball, f.shape)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> NewtonState:
        return NewtonState(t=0, x=start, seed=seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        return replace(state, t=0, bound=None, done=False)  # tangent and Hessian do not depend on the set

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, NewtonState)
        here = evaluation_at_iterate(f, state)
        before = GapBound.of(ball, here, f.convex) if state.bound is None else state.bound
        if before.within_rounding:  # the gradient is rounding, and so would be the direction of a step
            return replace(state, t=state.t + 1, x=here.point, gamma=0.0, evaluation=here, bound=before, done=True)
        H, response, inverse = state.H, state.response, state.inverse
        if H is None:
            hessian = f.hessian(here.point)
            assert hessian is not None
            H, (response, inverse) = hessian.matrix, hessian.intercept_response or (None, None)
        new, gamma, expected = _newton_step(f, ball, here, H, response, inverse)
        after = GapBound.of(ball, new, f.convex)
        kept = after.gap <= (REUSE if f.convex else 0.5) * before.gap
        still = is_rounding(expected, here.value) or (gamma == 0.0 and not new.value < here.value)
        return replace(
            state,
            t=state.t + 1,
            x=new.point,
            H=H if kept else None,
            response=response if kept else None,
            inverse=inverse if kept else None,
            gamma=gamma,
            evaluation=new,
            bound=after,
            # A step of no length with a new matrix would be repeated for ever: rounding hides the descent.
            done=state.H is None and still,
        )


def _newton_step(
    f: SmoothFunction, ball: ConstraintSet, here: Evaluation, H: Array, response: Array | None, inverse: Array | None
) -> tuple[Evaluation, float, float]:
    """The evaluation of the next iterate, the step size, and the decrease that the gradient predicts.

    The intercept is one more coordinate of the model. It is minimised over only where f does not fall enough with the
    intercept of the model.
    """
    raise_if_expired()  # the factorization of a large Hessian cannot be interrupted
    x, g, b = here.point, here.slope.gradient, here.point.intercept
    slope = g.ravel() if here.rest is None or response is None else g.ravel() - response @ here.rest
    w = minimise_model(H, (H @ x.w.ravel() - slope).reshape(f.shape), ball, x.w)
    expected = inner(g, x.w - w)
    if response is not None and inverse is not None and b is not None:
        shift = -(w - x.w).ravel() @ response
        if here.rest is not None:
            shift = shift - inverse @ here.rest
            expected -= float(shift @ here.rest)
        near = f.evaluate(f.point(w, b + shift.reshape(b.shape)), keep=True, near=True)
        if falls_enough(near.value, here.value, expected):
            return near, 1.0, expected
    return *step_towards(f, here, f.point(w, b), expected), expected
