"""Accelerated projected gradients over a weighted Schatten ball, for matrices whose whole spectrum is cheap."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from projfree.algebra import UNIT, LowRank, Point
from projfree.deadline import Expired, expired
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.sets.base import ConstraintSet
from projfree.sets.weighted import WeightedSchattenBall
from projfree.solvers.base import GapBound, Solver, State
from projfree.solvers.projected_gradient import MomentumState

#: Factors by which the curvature is raised within an iteration, and lowered between two; and how often it is raised.
RAISE, RELAX, TRIALS = 2.0, 0.9, 60
#: Bounds, each of which takes another spectrum, are asked for at counts of iterations that grow like this.
GROWTH = 1.3


@dataclass(frozen=True, kw_only=True)
class WeightedState(MomentumState):
    """A state with the number of the iteration that takes the next bound."""

    due: int = 1


@dataclass(frozen=True, repr=False)
class WeightedProjectedGradient(Solver):
    r"""FISTA in the coordinates :math:`Y = D_r X D_c`, in which the ball is a plain one that has a projection.

    .. math:: Y_t = P\bigl(Z_{t-1} - \tfrac1M D_r^{-1} \nabla f(D_r^{-1} Z_{t-1} D_c^{-1})\, D_c^{-1}\bigr), \qquad
              Z_t = Y_t + \frac{\theta_{t-1} - 1}{\theta_t}(Y_t - Y_{t-1})

    M is raised until f lies below its quadratic model, and the momentum is dropped when it points uphill. An iteration
    takes one whole singular value decomposition, or more where M is raised: it is meant for matrices with a small side.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Entries, Squared, as_data, minimize
    >>> from projfree.completion.offsets import OffsetObjective
    >>> from projfree.sets import WeightedSchattenBall
    >>> from projfree.completion.weighted_gradient import WeightedProjectedGradient
    >>> data = as_data(Entries([0, 0, 1, 1], [0, 1, 0, 1], (2, 2), factored=True), [5.0, 3.0, 4.0, 1.0])
    >>> f, ball = OffsetObjective(Squared(), data, base=3.25), WeightedSchattenBall(1.0, 0.5, np.ones(2), np.ones(2))
    >>> minimize(f, ball, WeightedProjectedGradient(), tol=1e-6).status.converged
    True
    """

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not isinstance(ball, WeightedSchattenBall):
            raise TypeError(
                f"WeightedProjectedGradient needs a WeightedSchattenBall, got {ball!r}; use "
                "AcceleratedProjectedGradient."
            )

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> WeightedState:
        return WeightedState(t=0, x=start, seed=seed, y=start, theta=1.0)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> WeightedState:
        assert isinstance(state, WeightedState)
        assert isinstance(ball, WeightedSchattenBall)
        t, looked = state.t + 1, f.evaluate(state.y)
        _go_on()
        known = looked.slope.minimum(ball) if t >= state.due else (-math.inf, 0.0)
        _go_on()
        there = _raised(ball, looked.point.w)
        new, M = _descended(f, ball, looked, there, state.memory)
        y, theta = _ahead(ball, state, there, new.point)
        due = max(t + 1, math.ceil(GROWTH * t)) if t >= state.due else state.due
        moved: dict[str, Any] = {"t": t, "x": new.point, "y": y, "theta": theta, "gamma": 1.0 / M, "memory": M}
        learnt: dict[str, Any] = {"evaluation": looked, "bound": GapBound(math.nan, *known)}
        return replace(state, **moved, **learnt, due=due)


def _go_on() -> None:
    """Drop the step where the deadline has passed: what is left of it takes whole spectra."""
    if expired():
        raise Expired


def _descended(
    f: SmoothFunction, ball: WeightedSchattenBall, at: Evaluation, w: Any, M: float
) -> tuple[Evaluation, float]:
    """The value after a step from an evaluated point, and the curvature with which f lies below its model there."""
    g = _lowered(ball, at.slope.gradient)
    M = M * RELAX if M > 0.0 else f.smoothness()
    for _ in range(TRIALS):
        z = ball.ball.project(w - g / M)
        new, move = f.evaluate(f.point(_lowered(ball, z), at.intercept), tangent=False), _folded(z - w)
        model = at.value + g.inner(move) + 0.5 * M * move.inner(move)
        if new.value <= model + 4.0 * UNIT * abs(at.value) or expired():
            break
        M *= RAISE
    return new, M


def _ahead(ball: WeightedSchattenBall, state: WeightedState, there: Any, new: Point) -> tuple[Point, float]:
    """The next extrapolated point and its momentum, none where that points uphill."""
    theta = (1.0 + math.sqrt(1.0 + 4.0 * state.theta**2)) / 2.0
    momentum = (state.theta - 1.0) / theta
    if momentum == 0.0:
        return new, theta
    last, here = _raised(ball, state.x.w), _raised(ball, new.w)
    if _folded(there - here).inner(_folded(here - last)) > 0.0:
        return new, 1.0
    return (1.0 + momentum) * new + (-momentum) * state.x, theta


def _raised(ball: WeightedSchattenBall, w: Any) -> Any:
    return _folded(w.scaled(ball.rows, ball.cols))


def _folded(w: Any) -> Any:
    """The matrix with few columns where it is in factors: sums of three with a whole spectrum would be compressed."""
    return w.folded() if isinstance(w, LowRank) else w


def _lowered(ball: WeightedSchattenBall, w: Any) -> Any:
    return w.scaled(1.0 / ball.rows, 1.0 / ball.cols)
