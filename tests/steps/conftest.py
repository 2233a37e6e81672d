"""Segments to choose a step on: from a point of the set towards the vertex that its gradient asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from projfree import BiWeight, BlackBox, Huber, Logistic, LpBall, Objective, QuadraticForm, Squared, as_data
from projfree.algebra import Minorant, Point
from projfree.objectives import Hull, SmoothFunction
from projfree.sets import random_point

RNG = np.random.default_rng(5)
X = RNG.standard_normal((40, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + RNG.standard_normal(40)
FUNCTIONS: dict[str, Callable[[], SmoothFunction]] = {
    "squares": lambda: Objective(Squared(), as_data(X, Y)),
    "squares, intercept": lambda: Objective(Squared(), as_data(X, Y), fit_intercept=True),
    "logistic": lambda: Objective(Logistic(), as_data(X, np.sign(Y))),
    "logistic, intercept": lambda: Objective(Logistic(), as_data(X, np.sign(Y)), fit_intercept=True),
    "huber": lambda: Objective(Huber(0.5), as_data(X, Y)),
    "form": lambda: QuadraticForm(X.T @ X, X.T @ Y),
    "calls": lambda: BlackBox(lambda w: (np.sum(r := np.sqrt(1 + w * w)), w / r), 3, smoothness=1.0, convex=True),
    "biweight": lambda: Objective(BiWeight(1.0), as_data(X, Y)),
    "saddle": lambda: QuadraticForm(np.diag([1.0, -1.0, 2.0]), np.array([1.0, 0.5, 0.0])),
}
CONVEX = [name for name in FUNCTIONS if name not in ("biweight", "saddle")]


@dataclass
class Segment:
    """A function, two points, the tangent at the first, and the function on the segment between them."""

    f: SmoothFunction
    x: Point
    v: Point
    m: Minorant
    hull: Hull

    def value(self, s: float) -> float:
        return self.f(self.f.point((1 - s) * self.x.w + s * self.v.w, self.x.intercept))


@pytest.fixture(scope="session")
def segment():
    """``segment(name, seed, radius)``: one step of Frank-Wolfe from a random point of a ball."""

    def make(name: str, seed: int = 0, radius: float = 1.0) -> Segment:
        f, ball = FUNCTIONS[name](), LpBall(1.5, radius)
        found = f.evaluate(f.point(random_point(ball, (3,), np.random.default_rng(seed))))
        x, m = found.point, found.slope
        v = f.point(ball.lmo(m.gradient))
        return Segment(f, x, v, m, f.hull((x, v), m.gradient))

    return make


def pytest_generate_tests(metafunc):
    """Tests with an argument ``name`` run over every function, those with ``convex_name`` over the convex ones."""
    for argument, names in (("name", FUNCTIONS), ("convex_name", CONVEX)):
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, list(names))
