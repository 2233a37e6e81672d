"""The problems: an objective, balls, certified minima, and errors measured apart from the run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.data import Entries, as_data
from projfree.losses import Squared
from projfree.losses.base import Loss
from projfree.objectives import Objective, QuadraticForm
from projfree.run import minimize
from projfree.run.result import raise_if_interrupted
from projfree.sets import LpBall, SchattenBall
from projfree.sets.base import ConstraintSet, frank_wolfe_gap
from projfree.solvers import AcceleratedProjectedGradient, ConstrainedNewton, CorrectivePrimalAveraging
from reproduction.measure import follow
from reproduction.sources import Sample


@dataclass(frozen=True, eq=False)
class Minimum:
    """The least value over a ball as far as it is known: it lies between ``value - gap`` and ``value``."""

    w: Array
    value: float
    gap: float
    how: str = "certified"


def certified(f: Any, ball: ConstraintSet, tol: float, most: int = 2_000) -> Minimum:
    """The minimum of a convex function with a proof: Newton's method where it applies, then first-order solvers."""
    best: Minimum | None = None
    solvers: list[Any] = [AcceleratedProjectedGradient(), CorrectivePrimalAveraging()]
    if isinstance(f, Objective) and not ball.structure(f.shape).spectral:
        solvers.insert(0, ConstrainedNewton())
    for solver in solvers:
        start = None if best is None else best.w
        found = raise_if_interrupted(minimize(f, ball, solver, tol=tol, max_iter=most, record=0, start=start))
        if best is None or found.gap < best.gap:
            best = Minimum(found.w, found.value, found.gap)
        if found.relative_gap <= tol:
            break
    assert best is not None
    return best


def by_projection(f: Any, ball: ConstraintSet, most: int) -> Minimum:
    """The same for a ball whose oracle is dear: accelerated projected gradient, and one Frank-Wolfe gap at the end."""
    best: list[Any] = [math.inf, None]

    def keep(state: Any) -> float:
        value = f(state.x)
        if value < best[0]:
            best[:] = value, state.x
        return float(value)

    follow(f, ball, AcceleratedProjectedGradient(), keep, most=most)
    m = f.evaluate(best[1]).slope
    return Minimum(best[1].w, best[0], frank_wolfe_gap(ball, m.gradient, best[1].w))


class Fit:
    """A loss on a table with an intercept; values are measured on a second objective."""

    def __init__(self, loss: Loss, table: Sample) -> None:
        self.loss, self.table = loss, table
        self.reference = self.objective()

    def objective(self) -> Objective:
        """A fresh objective, so that no run finds predictions of another."""
        return Objective(self.loss, as_data(self.table.X, self.table.y), fit_intercept=True)

    def value(self, w: Array) -> float:
        """The objective at a parameter."""
        return self.reference(self.reference.point(w))

    @property
    def place(self) -> dict[str, Any]:
        """The columns that say which data a row is about."""
        return {"data": self.table.name, "stand_in": self.table.stand_in, "n": len(self.table.y)}


class LeastSquares(Fit):
    """Squares through the Gram matrix: exact minima, and errors without cancellation."""

    def __init__(self, table: Sample) -> None:
        super().__init__(Squared(), table)
        X, y = table.X - table.X.mean(axis=0), table.y - table.y.mean()
        n = len(y)
        self.form = QuadraticForm(2.0 * (X.T @ X) / n, 2.0 * (X.T @ y) / n, float(y @ y) / n)
        self.start = self.form.c

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the Hessian."""
        values, vectors = np.linalg.eigh(self.form.H)
        return values, vectors

    @cached_property
    def unconstrained(self) -> Array:
        """The minimiser without a constraint; the shortest where there are several."""
        values, vectors = self.spectrum
        kept = values > 1e-14 * values[-1]
        coordinates = vectors.T @ self.form.b
        return np.asarray(vectors[:, kept] @ (coordinates[kept] / values[kept]))

    def ball(self, p: float, rho: float) -> LpBall:
        """The ball whose radius is ``rho`` times the norm of the unconstrained minimiser."""
        return LpBall(p, rho * LpBall(p, 1.0).norm(self.unconstrained))

    def minimum(self, ball: LpBall) -> Minimum:
        """The exact minimum over a ball: unconstrained, by the secular equation (l_2), or certified."""
        if ball.norm(self.unconstrained) <= ball.radius * (1.0 + 1e-12):
            return Minimum(self.unconstrained, self.form(self.form.point(self.unconstrained)), 0.0)
        if ball.p != 2.0:
            return certified(self.form, ball, 1e-13, 20_000)
        w = self._secular(ball.radius)
        gradient = self.form.H @ w - self.form.b
        value = self.form(self.form.point(w))
        return Minimum(w, value, max(0.0, float(gradient @ w) + ball.support(gradient)))

    def _secular(self, radius: float) -> Array:
        """The w of norm ``radius`` with (H + lam) w = b, by Newton's method on 1/norm, nearly linear in lam."""
        values, vectors = self.spectrum
        b, lam = vectors.T @ self.form.b, 0.0
        for _ in range(100):
            w = b / (values + lam)
            norm = float(np.linalg.norm(w))
            change = (norm / radius - 1.0) * norm**2 / float(np.sum(w**2 / (values + lam)))
            lam = max(0.0, lam + change)
            if abs(change) <= 1e-15 * lam:
                break
        return np.asarray(vectors @ (w * (radius / norm)))

    def error(self, w: Array, best: Minimum) -> float:
        """f(w) - f* as e'He/2 + <g*, e>."""
        e = w - best.w
        return float(0.5 * e @ (self.form.H @ e) + e @ (self.form.H @ best.w - self.form.b))


class Completion:
    """The mean squared error on observed entries of a matrix."""

    def __init__(self, ratings: Any, stand_in: bool) -> None:
        self.at, self.y = Entries(ratings.rows, ratings.cols, ratings.shape), ratings.values
        self.place = {"data": ratings.name, "stand_in": stand_in, "n": len(self.y)}
        self.norm = float(np.linalg.norm(self.y))

    def objective(self) -> Objective:
        """A fresh objective."""
        return Objective(Squared(), as_data(self.at, self.y))

    @cached_property
    def observed(self) -> Array:
        """The observed matrix, zero elsewhere."""
        M = np.zeros(self.at.shape)
        M[self.at.rows, self.at.cols] = self.y
        return M

    def value(self, W: Any) -> float:
        """The objective at a matrix."""
        return float(np.mean((entries_of(W, self.at) - self.y) ** 2))

    def random_start(self, ball: SchattenBall, seed: int, share: float = 0.5) -> Array:
        """A Gaussian matrix with ``share`` of the radius as its norm."""
        W = np.random.default_rng(seed).standard_normal(self.at.shape)
        return W * (share * ball.radius / ball.norm(W))


def entries_of(W: Any, at: Entries) -> Array:
    """The entries of a matrix, dense or of any type with its own indexing, at some places."""
    return np.asarray(np.asarray(W)[at.rows, at.cols])
