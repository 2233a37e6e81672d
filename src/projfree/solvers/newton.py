"""Newton's method over a ball: a handful of passes where there are many more rows than features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from projfree.algebra import UNIT, Minorant, Point, inner
from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Known, Solver, State
from projfree.solvers.costs import HESSIAN
from projfree.solvers.model import check_model, minimise_model
from projfree.solvers.model_step import NOTHING, step_towards

#: The last Hessian serves again while the Frank-Wolfe gap falls by this factor a step, or by more where a new one,
#: with which it falls by the second, costs little: the reads that a step takes the time of without one are the third.
FAITHFUL, QUADRATIC, STEP = 0.25, 1e-3, 4.0


@dataclass(frozen=True, kw_only=True)
class NewtonState(State):
    """A state with the tangent ``m`` at the iterate and the Hessian ``H``; None where they must be formed."""

    m: Minorant | None = None
    H: Array | None = None


@dataclass(frozen=True, repr=False)
class ConstrainedNewton(Solver):
    r"""Minimise the quadratic model of f at the iterate over the set, exactly, and go there.

    .. math:: v_t = \arg\min_{v \in C} \langle\nabla f(x), v - x\rangle + \tfrac12 \langle v - x, H (v - x)\rangle,
              \qquad x_t = x + \gamma_t (v_t - x)

    with :math:`\gamma_t = 1` where f falls enough and else the minimiser on the segment. An iteration costs one read
    for the tangent and, until the gap falls quickly without, one with O(n D^2) work for the Hessian. For losses that
    are not convex the model is a convex one that touches f (`Loss.majorant`); values decrease all the same.

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
        if not f.has_hessian:
            raise TypeError(
                f"ConstrainedNewton needs the Hessian of a function of features, which {type(f).__name__} has not; "
                "use CorrectivePrimalAveraging or FrankWolfe."
            )
        check_model(ball)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> NewtonState:
        return NewtonState(t=0, x=start, seed=seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> NewtonState:
        assert isinstance(state, NewtonState)
        return NewtonState(t=0, x=state.x, seed=state.seed, m=state.m, H=state.H)  # neither knows the set

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, NewtonState)
        x, m = state.x, state.m
        found: tuple[tuple[int, Evaluation], ...] = ()
        if m is None:
            looked = f.evaluate(x, keep=True)
            x, m, found = looked.point, looked.slope, ((state.t, Evaluation(looked.point, looked.value)),)
        H = f.hessian(x) if state.H is None else state.H
        new, gamma, expected = self._move(f, ball, x, m, H)
        # The gap of the last step, but where nobody has kept it.
        before = ball.gap(m.gradient, x.w) if math.isnan(state.gap) else state.gap
        after = Known.of(ball, new)
        return replace(
            state,
            t=state.t + 1,
            x=new.point,
            m=new.slope,
            H=H if after.gap <= faithful(f, len(H)) * before else None,
            gamma=gamma,
            evaluation=new,
            found=(*found, (state.t + 1, new)),
            bound=after.bound if f.convex else -math.inf,
            allowance=after.allowance,
            gap=after.gap,
            done=state.H is None and expected <= NOTHING * UNIT * abs(f.value(x)),
        )

    def _move(
        self, f: SmoothFunction, ball: ConstraintSet, x: Point, m: Minorant, H: Array
    ) -> tuple[Evaluation, float, float]:
        """The next iterate, the step, and the decrease that the gradient lets expect."""
        b = H @ x.w.ravel() - m.gradient.ravel()
        v = f.point(minimise_model(H, b.reshape(f.shape), ball, x.w), x.intercept)
        expected = inner(m.gradient, x.w - v.w)
        return *step_towards(f, x, f.value(x), m, v, expected), expected


def faithful(f: SmoothFunction, parameters: int) -> float:
    """The factor by which the gap must fall a step for a Hessian to serve again.

    A step with a new one takes the time of several without, in which the gap falls by a power of that factor. Where f
    is not convex the model is none of second order, and a new one brings no more.
    """
    return min(FAITHFUL, math.pow(QUADRATIC, STEP / (STEP + HESSIAN * parameters))) if f.convex else FAITHFUL
