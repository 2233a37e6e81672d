"""Two solvers in turn: a cheap one for problems that turn out easy, a thorough one for the rest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from projfree.algebra import Point
from projfree.checks import count, instance
from projfree.deadline import expired
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet, NormBall
from projfree.solvers.base import Solver, State
from projfree.solvers.newton import ConstrainedNewton
from projfree.solvers.primal_averaging import CorrectivePrimalAveraging

#: An iterate whose norm is less than this part of the radius lies well inside.
INSIDE = 0.9


@dataclass(frozen=True, repr=False)
class Relay(Solver):
    """Run one solver for some iterations; where that was not enough, another one goes on from its iterate.

    A first-order method may be done before a single Hessian is formed; if not, the start that it leaves saves some.
    Averages of vertices are fast while the minimum lies on the boundary: an iterate well inside tells that it does not.

    Parameters
    ----------
    first, then : Solver
        The two.
    after : int
        Iterations of the first.
    look : int, optional
        Iterations after which the first ends early if its iterate lies well inside the ball; never by default.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Logistic, LpBall, Objective, Relay, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    >>> minimize(Objective(Logistic(), as_data(X, y)), LpBall(1.5, radius=1.0), Relay(after=5), tol=1e-12).n_iter
    6
    """

    first: Solver = field(default_factory=CorrectivePrimalAveraging)
    then: Solver = field(default_factory=ConstrainedNewton)
    after: int = 30
    look: int | None = None

    def __post_init__(self) -> None:
        instance("Relay(first=...)", self.first, Solver, "CorrectivePrimalAveraging()")
        instance("Relay(then=...)", self.then, Solver, "ConstrainedNewton()")
        if isinstance(self.first, Relay) or isinstance(self.then, Relay):
            raise TypeError("Relay takes two plain solvers, got a Relay among them; put the cheapest two in one.")
        count("Relay(after=...)", self.after)
        if self.look is not None:
            count("Relay(look=...)", self.look)

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        self.first.check(f, ball)
        self.then.check(f, ball)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> State:
        return self.first.init(f, ball, start, seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        return replace(self._at_work(state.leg).carry(f, ball, state), leg=state.leg)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        if state.leg == 0 and state.t < self.after and not (state.t == self.look and _well_inside(ball, state)):
            new = self.first.step(f, ball, state)
            if not (new.done or new.too_large) or expired():
                return new
            state = replace(new, t=state.t)  # it can do no more: the other one has the rest of this turn
        if state.leg == 0:
            begun = self.then.init(f, ball, state.x, state.seed)
            state = replace(begun, t=state.t, problem=state.problem, solver=state.solver, leg=1)
        return self.then.step(f, ball, state)

    def _at_work(self, leg: int) -> Solver:
        return self.then if leg else self.first


def _well_inside(ball: ConstraintSet, state: State) -> bool:
    return isinstance(ball, NormBall) and ball.norm(state.x.w) < INSIDE * ball.radius
