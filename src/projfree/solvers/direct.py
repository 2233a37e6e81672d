"""Minimisation of quadratic models over the set: `Direct` for quadratics, `ConstrainedNewton` for other functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import Point, inner
from projfree.checks import Array
from projfree.deadline import Expired, expired
from projfree.objectives.base import SmoothFunction
from projfree.objectives.rounding import is_rounding
from projfree.sets.base import ConstraintSet
from projfree.sets.constrained import Constrained
from projfree.sets.quadratic import minimise_model
from projfree.solvers.base import ARMIJO, GapBound, Solver, State, evaluation_at_iterate, newton_step
from projfree.solvers.choose import memory_limit

#: The Hessian is reused while each step reduces the Frank-Wolfe gap at least by this factor. For non-convex f, whose
#: model is not of second order, the factor is one half.
REUSE = 0.01


@dataclass(frozen=True, repr=False)
class Direct(Solver):
    r"""Minimise a quadratic over the set exactly, in one step.

    .. math:: x_1 = \arg\min_{w \in C} \tfrac12\langle w, H w\rangle - \langle b, w\rangle

    For the squared loss, H and b are computed in one pass. The gradient on the data then measures the remaining
    rounding error, and one more solve with :math:`b = H x - \nabla f(x)` in place of b, at one more read, removes it;
    further steps repeat this refinement. The solve is exact over l_p balls (see `projfree.numerics.lp_quadratic`), and
    over simplices and balls of the group lasso (see `projfree.numerics.group_l1_qp`); other sets need a fast
    projection.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Direct, LpBall, Objective, Squared, as_data, minimize
    >>> f = Objective(Squared(), as_data(np.diag([1.0, 2.0, 3.0]), [1.0, 1.0, 1.0]))
    >>> result = minimize(f, LpBall(1.5, radius=0.5), Direct(), tol=1e-12)
    >>> result.w.round(4), result.n_iter
    (array([0.2073, 0.2727, 0.2388]), 1)
    """

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not f.structure.quadratic_form:
            raise TypeError(
                "Direct needs a quadratic of features, a QuadraticForm or Squared() on a table, got "
                f"{f.structure.name} of a parameter of shape {f.shape}; use ConstrainedNewton or "
                "CorrectivePrimalAveraging."
            )
        if not f.convex:
            raise TypeError("Direct needs a convex objective; use FrankWolfe(ExactLineSearch()).")
        d, limit = f.shape[0], memory_limit()
        if 8 * d * d > limit:
            raise ValueError(
                f"Direct forms a matrix of {d:,} x {d:,} numbers, more than half of the memory ({limit:,} bytes; see "
                "PROJFREE_MEMORY); use HessianFreeNewton or CorrectivePrimalAveraging."
            )
        check_model(ball, f.shape)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        form, x, also = f.quadratic_form(), state.x, tuple[Point, ...]()
        assert form is not None
        if state.t == 0:
            x, also = f.point(minimise_model(form.H, form.b, ball, x.w), x.intercept), (x,)
        here = f.evaluate(x, also)
        bound = GapBound.of(ball, here)
        done = bound.within_rounding
        if not done:  # iterative refinement: solve again with b from the gradient on the data
            w, b = here.point.w, form.H @ here.point.w - here.slope.gradient
            new = f.evaluate(f.point(minimise_model(form.H, b, ball, w), here.point.intercept))
            there = GapBound.of(ball, new)
            # Stop unless (gap, value) decreases lexicographically; values alone could alternate between two points.
            done = not (there.gap, new.value) < (bound.gap, here.value)
            here, bound = (here, bound) if done else (new, there)
        return replace(state, t=state.t + 1, x=here.point, evaluation=here, bound=bound, gamma=1.0, done=done)


@dataclass(frozen=True, kw_only=True)
class NewtonState(State):
    """State with the Hessian for the next step, None if it must be computed.

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
    r"""Newton's method: each step minimises the quadratic model of f over the set exactly.

    .. math:: v_t = \arg\min_{v \in C} \langle\nabla f(x), v - x\rangle + \tfrac12 \langle v - x, H (v - x)\rangle,
              \qquad x_t = x + \gamma_t (v_t - x)

    with :math:`\gamma_t = 1` if f decreases enough, else by exact line search. An iteration costs one read for the
    tangent and, unless the last Hessian is reused, one with O(n D^2) operations for the Hessian. For non-convex losses
    the model uses the absolute value of the curvature; the values still decrease.

    References
    ----------
    Levitin, Polyak (1966); Bertsekas (1982), Projected Newton methods for optimization with simple constraints;
    Shamanskii (1967) for the reuse of the Hessian.

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
        if not isinstance(ball, Constrained) or ball.structure(f.shape).polytope:
            check_model(ball, f.shape)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> NewtonState:
        return NewtonState(t=0, x=start, seed=seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        return replace(state, t=0, bound=None, done=False)  # the tangent and the Hessian do not depend on the set

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, NewtonState)
        here = evaluation_at_iterate(f, state)
        y = np.zeros(ball.n_rows) if isinstance(ball, Constrained) else None
        before = GapBound.of(ball, here, f.convex, y) if state.bound is None else state.bound
        if before.within_rounding:  # the gradient is of rounding size
            return replace(state, t=state.t + 1, x=here.point, gamma=0.0, evaluation=here, bound=before, done=True)
        H, response, inverse = state.H, state.response, state.inverse
        if H is None:
            hessian = f.hessian(here.point)
            assert hessian is not None
            H, (response, inverse) = hessian.matrix, hessian.intercept_response or (None, None)
        if expired():  # the factorization of a large Hessian cannot be interrupted
            raise Expired
        x, g, rest = here.point, here.slope.gradient, np.zeros(0) if here.rest is None else here.rest
        slope = g.ravel() if response is None or not rest.size else g.ravel() - response @ rest
        side, y = (H @ x.w.ravel() - slope).reshape(f.shape), before.multipliers
        if isinstance(ball, Constrained):
            w, y = ball.minimise(H, side, x.w, y)
        else:
            w = minimise_model(H, side, ball, x.w)
        found: dict[str, Any] | None = None
        if response is not None and inverse is not None and x.intercept is not None:
            # The intercept is a coordinate of the model; it is optimised exactly only if f does not decrease enough.
            shift = -(w - x.w).ravel() @ response - (inverse @ rest if rest.size else 0.0)
            near = f.point(w, x.intercept + shift.reshape(x.intercept.shape))
            new, expected = f.evaluate(near, keep=True, near=True), inner(g, x.w - w) - float(shift[: rest.size] @ rest)
            if is_rounding(new.value - here.value + ARMIJO * expected, here.value):
                after, done = GapBound.of(ball, new, f.convex, y, before.multipliers), is_rounding(expected, here.value)
                found = {"x": new.point, "gamma": 1.0, "evaluation": new, "bound": after, "done": done}
        if found is None:
            found = newton_step(f, ball, here, f.point(w, x.intercept), before.gap, y, before.multipliers)
        if found["bound"].gap > (REUSE if f.convex else 0.5) * before.gap:
            H = response = inverse = None
        # If a step with a reused Hessian fails, try a new Hessian before stopping.
        found["done"] &= state.H is None
        return replace(state, t=state.t + 1, H=H, response=response, inverse=inverse, **found)


def check_model(ball: ConstraintSet, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the set has a fast projection, which the minimisation of quadratic models needs."""
    if ball.structure(shape).projection != "fast":
        raise ValueError(
            f"a quadratic model over {ball!r} needs a quick projection, and it has none; use CorrectivePrimalAveraging."
        )
