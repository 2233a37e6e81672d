"""The mean loss over an l_p ball, judged at the nearest multiple of a point that lies in the ball."""

import numpy as np
from benchopt import BaseObjective

from projfree import Logistic, LpBall, Squared, as_data, minimize
from projfree import Objective as MeanLoss

LOSSES = {"squared": Squared, "logistic": Logistic}


class Objective(BaseObjective):
    """One loss, one norm, one radius."""

    name = "Mean loss over an l_p ball"
    min_benchopt_version = "1.6"
    requirements = ["pip::projfree"]
    parameters = {"loss": ["squared", "logistic"], "p": [1, 1.5, 2], "fraction": [0.3]}

    def set_data(self, X, y):
        """Fix the radius, and find a lower bound on the minimum to compare with."""
        self.X, self.y = X, np.sign(y) if self.loss == "logistic" else y
        self.f = MeanLoss(LOSSES[self.loss](), as_data(self.X, self.y))
        far = minimize(self.f, LpBall(2, radius=100.0), tol=1e-4)
        self.ball = LpBall(self.p, radius=self.fraction * LpBall(self.p, radius=1.0).norm(far.w))
        self.best = minimize(self.f, self.ball, tol=1e-12)

    def evaluate_result(self, w):
        """The value above the bound, relative to it."""
        inside = w * min(1.0, self.ball.radius / max(self.ball.norm(w), 1e-300))
        value = self.f(self.f.point(inside))
        return {"value": (value - self.best.bound) / abs(self.best.value), "norm": self.ball.norm(w)}

    def get_one_result(self):
        """A feasible point, for benchopt's own checks."""
        return {"w": np.zeros(self.X.shape[1])}

    def get_objective(self):
        """What a solver is given; the penalty on the norm amounts to the radius."""
        problem = {"X": self.X, "y": self.y, "loss": self.loss, "p": self.p}
        return {**problem, "radius": self.ball.radius, "penalty": self.best.multiplier}
