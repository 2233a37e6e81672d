"""Quadratic models minimised over the set: `Direct` for a quadratic, `ConstrainedNewton` for other functions."""

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

#: A Hessian is used again while the Frank-Wolfe gap falls by this factor in a step, as it does with a new one; where f
#: is not convex the model is not of second order, and a gap that is halved is enough.
REUSE = 0.01


@dataclass(frozen=True, repr=False)
class Direct(Solver):
    r"""Minimise a quadratic over the set exactly; the first step is the last.

    .. math:: x_1 = \arg\min_{w \in C} \tfrac12\langle w, H w\rangle - \langle b, w\rangle

    For the squared loss H and b are sums over rows that one pass forms. The tangent on the rows themselves then shows
    what rounding has left, and one solve with :math:`b = H x - \nabla f(x)` in place of b, at one more read, removes
    it; later steps do the same again. Over l_p balls, and those that coincide with one, the solve is exact (see
    `projfree.numerics.lp_quadratic`), and so it is over simplices and balls of the group lasso (see
    `projfree.numerics.group_l1_qp`); other sets need a quick projection.

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
        if not done:  # solve again, with the gradient of the data itself in place of b
            w, b = here.point.w, form.H @ here.point.w - here.slope.gradient
            new = f.evaluate(f.point(minimise_model(form.H, b, ball, w), here.point.intercept))
            there = GapBound.of(ball, new)
            # Else rounding has won. Gaps come first: were a lower value enough, two points could take turns for ever.
            done = not (there.gap, new.value) < (bound.gap, here.value)
            here, bound = (here, bound) if done else (new, there)
        return replace(state, t=state.t + 1, x=here.point, evaluation=here, bound=bound, gamma=1.0, done=done)


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
        if not isinstance(ball, Constrained) or ball.structure(f.shape).polytope:
            check_model(ball, f.shape)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> NewtonState:
        return NewtonState(t=0, x=start, seed=seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        return replace(state, t=0, bound=None, done=False)  # tangent and Hessian do not depend on the set

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, NewtonState)
        here = evaluation_at_iterate(f, state)
        y = np.zeros(ball.n_rows) if isinstance(ball, Constrained) else None
        before = GapBound.of(ball, here, f.convex, y) if state.bound is None else state.bound
        if before.within_rounding:  # the gradient is rounding, and so would be the direction of a step
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
            # The intercept is one more coordinate of the model, and is searched for only where f does not fall enough.
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
        # A step that fails with an old matrix says nothing of one with a new matrix.
        found["done"] &= state.H is None
        return replace(state, t=state.t + 1, H=H, response=response, inverse=inverse, **found)


def check_model(ball: ConstraintSet, shape: tuple[int, ...]) -> None:
    """Raise ValueError where quadratic models over this set cannot be minimised quickly."""
    if ball.structure(shape).projection != "fast":
        raise ValueError(
            f"a quadratic model over {ball!r} needs a quick projection, and it has none; use CorrectivePrimalAveraging."
        )
