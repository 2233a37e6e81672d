"""The benchmark problems: real data, the radii that rho stands for, and reference optima."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from reference import Optimum, optimum, quadratic_model

from projfree import Logistic, Loss, LpBall, Objective, Squared, as_data
from projfree.datasets import load_adult, load_year_sample
from projfree.losses.squared import is_squared

#: Where the infimum is not attained, R_p is the smallest radius whose optimum is within this of it, relatively.
NEAR = 1e-3


@dataclass(frozen=True, eq=False)
class Target:
    """One ball, with the optimum over it."""

    p: float
    rho: float
    unit: float  # R_p
    ball: LpBall
    optimum: Optimum


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss on data with an intercept; knows how to find its radii and optima."""

    key: str
    title: str
    loss: Loss
    X: np.ndarray
    y: np.ndarray
    #: Points met on the way, by radius: where the next search starts.
    path: dict[tuple[float, float], np.ndarray] = field(default_factory=dict)

    def objective(self) -> Objective:
        """A fresh objective, whose count of passes starts at zero."""
        return Objective(self.loss, as_data(self.X, self.y), fit_intercept=True)

    @cached_property
    def reference(self) -> Objective:
        return self.objective()

    def solve(self, ball: LpBall, tol: float) -> Optimum:
        """The optimum over a ball, from the best point met for the next smaller radius."""
        if is_squared(self.loss) and ball.norm(self.unconstrained) <= ball.radius * (1 + 1e-12):
            return Optimum(self.unconstrained, self.infimum, 0.0)
        before = [r for p, r in self.path if p == ball.p and r <= ball.radius]
        found = optimum(self.reference, ball, self.path[ball.p, max(before)] if before else None, tol)
        self.path[ball.p, ball.radius] = found.w
        return found

    @cached_property
    def unconstrained(self) -> np.ndarray:
        """The unconstrained minimiser by Newton, after rows whose loss can be driven to zero are left out."""
        rows = ~self.separable
        f = Objective(self.loss, as_data(self.X[rows], self.y[rows]), fit_intercept=True)
        w = np.zeros(f.shape)
        for _ in range(50):
            _, g, H = quadratic_model(f, w)
            step = -np.linalg.lstsq(H, g, rcond=1e-11)[0]
            w = w + step
            if -g @ step <= 1e-15:
                break
        return w

    @cached_property
    def separable(self) -> np.ndarray:
        """Rows with a level (a column of zeros and ones) on which all labels agree: its weight can go to infinity."""
        rows = np.zeros(len(self.y), dtype=bool)
        if self.loss.labels:
            for column in self.X.T:
                on = column == 1.0
                if on.any() and not column[~on].any() and len(np.unique(self.y[on])) == 1:
                    rows |= on
        return rows

    @cached_property
    def infimum(self) -> float:
        """inf f over all w; rows left out count with loss zero, so it is a lower bound and approached."""
        rows = ~self.separable
        f = Objective(self.loss, as_data(self.X[rows], self.y[rows]), fit_intercept=True)
        return f(f.point(self.unconstrained)) * float(rows.mean())

    def unit_radius(self, p: float) -> float:
        """R_p: the norm of the minimiser or, where there is none, the smallest radius within `NEAR` of the infimum.

        Newton's method on the optimal value as a function of the radius: convex, decreasing, with minus the multiplier
        (the dual norm of the gradient) as its slope, so that steps from the left never overshoot.
        """
        if not self.separable.any():
            return LpBall(p, 1.0).norm(self.unconstrained)
        goal, radius = (1.0 + NEAR) * self.infimum, 1.0
        for _ in range(30):
            ball = LpBall(p, radius)
            found = self.solve(ball, 1e-8)
            excess = found.value - goal
            if excess <= 1e-6 * NEAR * goal:
                break
            radius += excess / ball.dual_norm(self.reference.evaluate(self.reference.point(found.w)).slope.gradient)
        return radius

    def targets(self, ps: list[float], rhos: list[float]) -> Iterator[Target]:
        """The balls of every p and rho, with their optima."""
        for p in ps:
            unit = self.unit_radius(p)
            for rho in sorted(rhos):
                ball = LpBall(p, rho * unit)
                yield Target(p, rho, unit, ball, self.solve(ball, 1e-10))


def load(key: str) -> Problem:
    """One of the benchmark problems by its name on the command line."""
    if key == "year":
        data = load_year_sample()
        return Problem(key, "YearPredictionMSD, 7,000 rows x 90, squared loss", Squared(), data.X, data.y)
    data = load_adult()
    return Problem(key, "Adult, 48,842 rows x 108, logistic loss", Logistic(), data.X, data.y)
