"""The Frank-Wolfe method."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from projfree.checks import instance
from projfree.objectives.base import SmoothFunction
from projfree.sampling import FullBatch, Sampling
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State, call_oracle
from projfree.steps import ExactLineSearch, Schedule, ShortStep, StepRule


@dataclass(frozen=True, repr=False)
class FrankWolfe(Solver):
    r"""The Frank-Wolfe method: each step moves towards the minimiser of the tangent over the set.

    .. math:: v_t = \arg\min_{v \in C}\langle\nabla f(x_{t-1}), v\rangle, \qquad
              x_t = (1 - \gamma_t) x_{t-1} + \gamma_t v_t

    Parameters
    ----------
    step_rule : StepRule
        Rule for :math:`\gamma_t`. Schedules and ``ShortStep(L)`` need one read of the data per iteration, line
        searches two.
    sampling : Sampling
        The rows of each gradient; samples need a step rule that does not evaluate f.

    References
    ----------
    Frank, Wolfe (1956); Jaggi (2013), Revisiting Frank-Wolfe; Garber, Hazan (2015), Faster rates for the
    Frank-Wolfe method over strongly-convex sets.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import FrankWolfe, LpBall, QuadraticForm, minimize
    >>> f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    >>> minimize(f, LpBall(2, radius=1.0), FrankWolfe()).w.round(6)
    array([0.6, 0.8])
    """

    step_rule: StepRule = field(default_factory=ExactLineSearch)
    sampling: Sampling = field(default_factory=FullBatch)

    def __post_init__(self) -> None:
        instance("FrankWolfe(step_rule=...)", self.step_rule, StepRule, "FrankWolfe(ExactLineSearch())")
        instance("FrankWolfe(sampling=...)", self.sampling, Sampling, "Minibatch(32)")

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        blind = isinstance(self.step_rule, Schedule) or (
            isinstance(self.step_rule, ShortStep) and self.step_rule.L is not None
        )
        if not isinstance(self.sampling, FullBatch) and not blind:
            raise ValueError(
                f"FrankWolfe with {self.sampling!r} needs a step that does not look at all rows, "
                f"got {self.step_rule!r}; use `OpenLoop()`."
            )

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        t = state.t + 1
        here = self.sampling.evaluate(f, state.x, t, state.seed)
        m = here.slope
        result = call_oracle(ball, m.gradient, state.oracle_result)
        hull = f.hull((here.point, f.point(result.vertex)), m.gradient)
        gamma, memory = self.step_rule(t, hull, state.memory)
        x = hull.mix(np.array([gamma]))
        return replace(state, t=t, x=x, gamma=gamma, memory=memory, m=m, evaluation=here, oracle_result=result)
