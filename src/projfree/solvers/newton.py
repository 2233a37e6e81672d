"""Newton's method over a ball: a handful of passes where there are many more rows than features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, inner
from projfree.checks import Array
from projfree.deadline import stopper
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.hessian import Hessian
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Known, Solver, State
from projfree.solvers.direct import check_model, minimise_model
from projfree.solvers.model_step import NOTHING, falls_enough, step_towards

#: A Hessian of this many parameters costs as much as a step without one: four reads of the data.
CHEAP = 26
#: A Hessian is used again while the Frank-Wolfe gap falls by this factor a step, or by more where a new one, with which
#: it falls by about the second, costs little.
REUSE, QUADRATIC = 0.25, 1e-3
#: The first Hessian, far from the solution, is that of one row in eight, but of at least 64 for each parameter, with
#: which its relative error is about an eighth.
ONE_IN, FOR_EACH = 8, 64
#: The curvature of a feature is lost in rounding where it lets expect a decrease of the value over this.
UNSEEN = 1e-12


class Bend(NamedTuple):
    """The curvature to go by: see `Hessian.matrix` and `Hessian.intercept_response`."""

    H: Array
    follow: Array | None
    inverse: Array | None

    @classmethod
    def of(cls, hessian: Hessian | None) -> Bend:
        """What a step keeps of a Hessian."""
        assert hessian is not None
        return cls(hessian.matrix, *(hessian.intercept_response or (None, None)))


@dataclass(frozen=True, kw_only=True)
class NewtonState(State):
    """A state with what is known of the function at the iterate; None and NaN where it must be found.

    Attributes
    ----------
    m, value, rest : Minorant, float, ndarray
        The tangent, the value, and the derivative in the intercept where that is not zero.
    H, follow, inverse : ndarray
        The curvature, see `Bend`.
    """

    m: Minorant | None = None
    value: float = math.nan
    rest: Array | None = None
    H: Array | None = None
    follow: Array | None = None
    inverse: Array | None = None


@dataclass(frozen=True, repr=False)
class ConstrainedNewton(Solver):
    r"""Minimise the quadratic model of f at the iterate over the set, exactly, and go there.

    .. math:: v_t = \arg\min_{v \in C} \langle\nabla f(x), v - x\rangle + \tfrac12 \langle v - x, H (v - x)\rangle,
              \qquad x_t = x + \gamma_t (v_t - x)

    with :math:`\gamma_t = 1` where f falls enough and else the minimiser on the segment. An iteration costs one read
    for the tangent and, until the gap falls quickly without, one with O(n D^2) work for the Hessian; the first one is
    that of some of the rows where there are many. For losses that are not convex the model is a convex one that touches
    f (`Loss.majorant`); values decrease all the same.

    References
    ----------
    Levitin, Polyak (1966); Bertsekas (1982), Projected Newton methods for optimization with simple constraints;
    Shamanskii (1967) for using a Hessian several times; Byrd, Chin, Neveitt, Nocedal (2011), On the use of stochastic
    Hessian information in optimization methods for machine learning.

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

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> NewtonState:
        assert isinstance(state, NewtonState)
        known = {name: getattr(state, name) for name in ("m", "value", "rest", "H", "follow", "inverse")}
        return NewtonState(t=0, x=state.x, seed=state.seed, **known)  # none of it knows the set

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, NewtonState)
        found: tuple[tuple[int, Evaluation], ...] = ()
        here = Evaluation(state.x, state.value, state.m, rest=state.rest)
        if state.m is None:
            here = f.evaluate(state.x, keep=True)
            found = ((state.t, replace(here.reported, tangent=None)),)
        bend, rough = self._bend(f, state, here)
        new, gamma, expected = self._move(f, ball, here, bend)
        # The gap of the last step, but where nobody has kept it.
        before = ball.gap(here.slope.gradient, here.point.w) if math.isnan(state.gap) else state.gap
        after = Known.of(ball, new)
        still = expected <= NOTHING * UNIT * abs(here.value) or stays(gamma, here, new)
        serves = after.gap <= reuse_ratio(f) * before
        return state.moved(
            t=state.t + 1,
            x=new.point,
            m=new.slope,
            value=new.value,
            rest=new.rest,
            H=bend.H if serves else None,
            follow=bend.follow if serves else None,
            inverse=bend.inverse if serves else None,
            gamma=gamma,
            evaluation=new,
            found=(*found, (state.t + 1, new)),
            bound=after.bound if f.convex else -math.inf,
            # What the derivative in the intercept may cost is in the allowance, and no rounding.
            allowance=after.allowance if new.rest is None else 0.0,
            gap=after.gap,
            # A step of no length with a new matrix would be repeated for ever: rounding hides the descent.
            done=state.H is None and not rough and still,
        )

    def _bend(self, f: SmoothFunction, state: NewtonState, here: Evaluation) -> tuple[Bend, bool]:
        """The curvature to go by, and whether it is that of some of the rows."""
        if state.H is not None:
            return Bend(state.H, state.follow, state.inverse), False
        m = subsample_size(f) if state.m is None else None
        if m is None:
            return Bend.of(f.hessian(here.point)), False
        bend = Bend.of(f.hessian(here.point, rows=m, seed=state.seed))
        if _misses_features(bend.H, here):
            return Bend.of(f.hessian(here.point)), False
        return bend, True

    def _move(
        self, f: SmoothFunction, ball: ConstraintSet, here: Evaluation, bend: Bend
    ) -> tuple[Evaluation, float, float]:
        """The next iterate, the step, and the decrease that the gradient lets expect.

        The intercept is one more coordinate of the model. It is searched for only where the value there falls short.
        """
        stopper()()  # a decomposition of a large Hessian has no places to stop at
        x, g, b = here.point, here.slope.gradient, here.point.intercept
        slope = g.ravel() if here.rest is None or bend.follow is None else g.ravel() - bend.follow @ here.rest
        w = minimise_model(bend.H, (bend.H @ x.w.ravel() - slope).reshape(f.shape), ball, x.w)
        expected = inner(g, x.w - w)
        if bend.follow is not None and bend.inverse is not None and b is not None:
            shift = -(w - x.w).ravel() @ bend.follow
            if here.rest is not None:
                shift = shift - bend.inverse @ here.rest
                expected -= float(shift @ here.rest)
            near = f.evaluate(f.point(w, b + shift.reshape(b.shape)), keep=True, near=True)
            if falls_enough(near.value, here.value, expected):
                return near, 1.0, expected
        return *step_towards(f, x, here.value, here.slope, f.point(w, b), expected), expected


def stays(gamma: float, here: Evaluation, new: Evaluation) -> bool:
    """Whether a step has led nowhere, and no better intercept has been found on it."""
    return gamma == 0.0 and not new.value < here.value


def subsample_size(f: SmoothFunction) -> int | None:
    """The number of rows of the first Hessian; None for all of them."""
    rows, parameters = f.n or 0, math.prod(f.shape)
    m = max(rows // ONE_IN, FOR_EACH * parameters)
    return m if f.convex and not f.structure.quadratic and parameters >= CHEAP and 4 * m <= rows else None


def reuse_ratio(f: SmoothFunction) -> float:
    """The factor by which the gap must fall in a step for its Hessian to be used again.

    The time of a step with a new Hessian is that of 1 + D / CHEAP steps without one. Where f is not convex, the model
    is not of second order, and a new one brings no more.
    """
    return min(REUSE, QUADRATIC ** (1.0 / (1.0 + math.prod(f.shape) / CHEAP))) if f.convex else REUSE


def _misses_features(H: Array, here: Evaluation) -> bool:
    """Whether features with a slope are in none of the rows of H: the model would go on along them without end."""
    g = here.slope.gradient.ravel()
    return bool(np.any((g != 0.0) & (np.diag(H) * abs(here.value) <= UNSEEN * g**2)))
