"""Two solvers in turn: a cheap one for problems that turn out easy, a thorough one for the rest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from projfree.algebra import Point
from projfree.checks import count, instance
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State
from projfree.solvers.newton import ConstrainedNewton
from projfree.solvers.primal_averaging import CorrectivePrimalAveraging


@dataclass(frozen=True, repr=False)
class Relay(Solver):
    """Run one solver for some iterations; where that was not enough, another one goes on from its iterate.

    A first-order method may be done before a single Hessian is formed; if not, the start that it leaves saves some.

    Parameters
    ----------
    first, then : Solver
        The two.
    after : int
        Iterations of the first.

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

    def __post_init__(self) -> None:
        instance("Relay(first=...)", self.first, Solver, "CorrectivePrimalAveraging()")
        instance("Relay(then=...)", self.then, Solver, "ConstrainedNewton()")
        count("Relay(after=...)", self.after)

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        self.first.check(f, ball)
        self.then.check(f, ball)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> State:
        return self.first.init(f, ball, start, seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        if state.t <= self.after:
            return self.first.carry(f, ball, state)
        return replace(self.then.carry(f, ball, state), t=state.t)

    def restored(self, f: SmoothFunction, ball: ConstraintSet, first: State, kept: dict[str, Any]) -> State:
        if kept["t"] <= self.after:
            return self.first.restored(f, ball, first, kept)
        return self.then.restored(f, ball, self.then.init(f, ball, first.x, first.seed), kept)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        if state.t < self.after:
            return self.first.step(f, ball, state)
        if state.t == self.after:
            state = replace(self.then.init(f, ball, state.x, state.seed), t=state.t, problem=state.problem)
        return self.then.step(f, ball, state)
