"""A solver of your own: Frank-Wolfe with an average of all gradients, also called heavy-ball."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from projfree import Logistic, LpBall, Objective, OpenLoop, as_data, minimize
from projfree.algebra import Minorant, mix
from projfree.solvers.base import Solver, State, at_iterate, bound_of, next_answer


@dataclass(frozen=True)
class HeavyBallState(State):
    """What a solver remembers, frozen: the run keeps it, saves it and shows it to callbacks."""

    m: Minorant = field(default=None, repr=False)


@dataclass(frozen=True, repr=False)
class HeavyBall(Solver):
    """Average the tangents at the iterates, and move towards the vertex of the average."""

    schedule: OpenLoop = field(default_factory=OpenLoop)

    def init(self, f, ball, start, seed):
        return HeavyBallState(t=0, x=start, seed=seed, m=Minorant(-math.inf, np.zeros(f.shape)))

    def step(self, f, ball, state):
        t = state.t + 1
        gamma = self.schedule.weight(t)
        here = f.evaluate(state.x)  # value, intercept and tangent from one read of the data
        # Averages of tangents lie below f as tangents do.
        m = (1.0 - gamma) * state.m + gamma * here.slope
        # The vertex, and the support if it comes with it.
        answer = next_answer(ball, m.gradient, state)
        return replace(
            state,
            t=t,
            x=mix((1.0 - gamma, here.point), (gamma, f.point(answer.vertex))),
            m=m,
            gamma=gamma,
            evaluation=here,  # the run averages these for bounds of its own
            found=at_iterate(state.t, here),  # the value at the last iterate, for the trace
            answer=answer,
            bound=bound_of(m, ball, answer.support) if f.convex else -math.inf,
        )


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
