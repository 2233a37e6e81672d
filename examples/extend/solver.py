"""A solver of your own: Frank-Wolfe with an average of all gradients, also called heavy-ball."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from projfree import Logistic, LpBall, Objective, OpenLoop, as_data, minimize
from projfree.algebra import Minorant, mix
from projfree.solvers.base import Solver, State, call_oracle


@dataclass(frozen=True, repr=False)
class HeavyBall(Solver):
    """Average the tangents at the iterates, and move towards the vertex of the average."""

    schedule: OpenLoop = field(default_factory=OpenLoop)

    def init(self, f, ball, start, seed):
        return State(t=0, x=start, seed=seed, m=Minorant(-math.inf, np.zeros(f.shape)))

    def step(self, f, ball, state):
        t = state.t + 1
        gamma = self.schedule.weight(t)
        here = f.evaluate(state.x)  # value, intercept and tangent from one read of the data
        # Averages of tangents lie below f as tangents do.
        m = (1.0 - gamma) * state.m + gamma * here.slope
        # The vertex, and the support if it comes with it.
        result = call_oracle(ball, m.gradient, state.oracle_result)
        x = mix((1.0 - gamma, here.point), (gamma, f.point(result.vertex)))
        # The run averages tangents for bounds of its own, and knows what the oracle says about m.
        return replace(state, t=t, x=x, m=m, gamma=gamma, evaluation=here, oracle_result=result)


def problem():
    """Logistic regression over an l_1.5 ball."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(300))
    return Objective(Logistic(), as_data(X, y)), LpBall(1.5, radius=1.0)


def main():
    """No loop is needed: stopping, clock, trace, callbacks and checkpoints are the run's."""
    result = minimize(*problem(), HeavyBall(), tol=1e-4)
    assert result.status.converged
    return result


if __name__ == "__main__":
    print(main())
