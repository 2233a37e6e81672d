"""Least squares of the size of a real data set, the exact optimum over each ball, and curves of the true error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice

import numpy as np
import pytest

from projfree import AcceleratedProjectedGradient, LpBall, Objective, QuadraticForm, Squared, as_data, iterate


@dataclass(frozen=True, eq=False)
class Curve:
    """The relative errors (f(w_t) - f*) / f* of t = 1, 2, ..."""

    errors: np.ndarray

    def slope(self, low: float, high: float) -> float:
        """The least-squares slope of log error against log t at up to 1,000 log-spaced t in ``[low, high]``."""
        t = np.unique(np.geomspace(low, high, 1000).round().astype(int))
        return float(np.polyfit(np.log(t), np.log(self.errors[t - 1]), 1)[0])

    def first(self, level: float) -> float:
        """The first t whose error is at most ``level``, infinite where there is none."""
        reached = np.flatnonzero(self.errors <= level)
        return int(reached[0]) + 1 if len(reached) else np.inf

    def mean(self, *others: Curve) -> Curve:
        return Curve(np.mean([self.errors, *(c.errors for c in others)], axis=0))


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Centred least squares; rho is the radius in units of the norm of the unconstrained solution."""

    X: np.ndarray
    y: np.ndarray

    @classmethod
    def draw(cls, n: int, d: int, cond: float, explained: float, seed: int = 0) -> LeastSquares:
        """Standardised Gaussian features with a geometric spectrum; ``explained`` is the share of the variance."""
        rng = np.random.default_rng(seed)
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        X = rng.standard_normal((n, d)) @ (Q * np.sqrt(np.geomspace(1, 1 / cond, d))) @ Q.T
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        signal = X @ rng.standard_normal(d)
        y = signal + rng.standard_normal(n) * signal.std() * np.sqrt(1 / explained - 1)
        return cls(X, y - y.mean())

    @cached_property
    def form(self) -> QuadraticForm:
        """The objective through its Gram matrix: an iteration costs d^2, not n d."""
        n = len(self.y)
        return QuadraticForm(2 * self.X.T @ self.X / n, 2 * self.X.T @ self.y / n, self.y @ self.y / n)

    @cached_property
    def objective(self) -> Objective:
        """The same objective through its rows."""
        return Objective(Squared(), as_data(self.X, self.y))

    @cached_property
    def unconstrained(self) -> np.ndarray:
        return np.linalg.solve(self.form.H, self.form.b)

    def ball(self, p: float, rho: float) -> LpBall:
        return LpBall(p, rho * np.sum(np.abs(self.unconstrained) ** p) ** (1 / p))

    @cache  # noqa: B019 - a problem lives as long as the session
    def optimum(self, p: float, rho: float) -> tuple[np.ndarray, np.ndarray, float]:
        """w*, its gradient and f*: accelerated projected gradient to rounding, checked here in plain NumPy."""
        f, w = self.form, self.unconstrained
        if rho >= 1:
            return w, np.zeros_like(w), float((0.5 * f.H @ w - f.b) @ w + f.c)
        states = iterate(f, self.ball(p, rho), AcceleratedProjectedGradient())
        for state in islice(states, 49, 1_000, 50):
            w = state.x.w
            gradient, value = f.H @ w - f.b, float((0.5 * f.H @ w - f.b) @ w + f.c)
            size = np.abs(gradient).max()
            dual = size * np.sum((np.abs(gradient) / size) ** (p / (p - 1))) ** (1 - 1 / p)
            if gradient @ w + self.ball(p, rho).radius * dual <= 1e-15 * value:  # the Frank-Wolfe gap
                return w, gradient, value
        raise AssertionError(f"the reference optimum of p = {p}, rho = {rho} is not accurate")

    def errors(self, points: np.ndarray, p: float, rho: float) -> np.ndarray:
        """(f(w) - f*) / f* as (e'He/2 + <g*, e>) / f*, which has no cancellation."""
        w, gradient, value = self.optimum(p, rho)
        e = np.asarray(points) - w
        return (0.5 * np.einsum("ij,ij->i", e @ self.form.H, e) + e @ gradient) / value

    def curve(self, solver, p: float, rho: float, steps: int, f=None, seed: int = 0) -> Curve:
        """Run a solver on the Gram matrix, or on ``f``, and measure its iterates."""
        states = iterate(self.form if f is None else f, self.ball(p, rho), solver, seed=seed)
        return Curve(self.errors(np.array([s.x.w for s in islice(states, steps)]), p, rho))


@pytest.fixture(scope="session")
def problem() -> LeastSquares:
    """20,000 x 90, condition number 844 after standardising, a fit that explains 70 % of the variance."""
    return LeastSquares.draw(20_000, 90, cond=900.0, explained=0.7)


@pytest.fixture(scope="session")
def small() -> LeastSquares:
    """1,000 x 20 with condition number 30: the miniature that `make test` can afford."""
    return LeastSquares.draw(1_000, 20, cond=30.0, explained=0.7)
