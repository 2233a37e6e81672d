"""A step rule of your own: halve the step until the value falls enough."""

from dataclasses import dataclass

import numpy as np

from projfree import FrankWolfe, Logistic, LpBall, Objective, as_data, minimize
from projfree.steps import StepRule


@dataclass(frozen=True)
class Halving(StepRule):
    """The first of the steps s, s/2, s/4, ... that brings a part of what the tangent promises.

    ``memory`` is the one number that a rule may carry from one iteration to the next. Here it is
    the last step, and the search begins at twice that.
    """

    part: float = 0.5

    def __call__(self, t, hull, memory):
        gap = hull.gap  # what the tangent promises for a full step
        if gap <= 0.0:
            return 0.0, memory
        # `hull` is f on the segment from the iterate to the vertex.
        value = hull.value(np.zeros(1))
        step = min(1.0, 2.0 * memory) if memory > 0.0 else 1.0
        while step > 1e-12 and hull.value(np.array([step])) > value - self.part * step * gap:
            step /= 2.0
        return step, step


def main():
    """Run Frank-Wolfe with it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(300))
    f = Objective(Logistic(), as_data(X, y))
    result = minimize(f, LpBall(2, radius=1.0), FrankWolfe(Halving()), tol=1e-6)
    assert result.status.converged
    return result


if __name__ == "__main__":
    print(main())
