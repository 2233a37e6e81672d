"""The problems of the paper: data, balls, certified minima, and errors computed without cancellation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse

from projfree import AcceleratedProjectedGradient, LpBall, Objective, QuadraticForm, as_data, minimize, paper
from projfree.datasets import (
    Ratings,
    load_adult,
    load_movielens,
    load_year,
    load_year_sample,
    movielens_stand_in,
    year_stand_in,
)
from reproduction.base import Array, Mode, Row

#: Rows of Adult in quick runs, equal to those of the packaged sample of YearPredictionMSD, and of the full data.
QUICK_ROWS, YEAR_ROWS = 7_000, 515_345
PA, FWPLR, OPTION_B = "PA", "FWPLR", "FWLS, option B as printed"
EXACT, SEARCHED = "FWLS, exact search", "FWLS, search on values"
ONE_HOT, DROPPED, SCALED = "one-hot", "one level of each column dropped", "numbers scaled to [0, 1]"


@dataclass(frozen=True, eq=False)
class Table:
    """Features and targets, with the name for the report."""

    X: Any
    y: Array
    name: str
    stand_in: bool = False

    @property
    def place(self) -> Row:
        """The columns of a row that identify the data."""
        return {"data": self.name, "stand_in": self.stand_in, "n": len(self.y)}


@cache
def adult(mode: Mode, encoding: str = ONE_HOT) -> Table:
    """Load Adult as a sparse table; its first 7,000 rows in quick runs."""
    data = load_adult()
    X, names = data.X, list(data.feature_names)
    if encoding == DROPPED:
        prefixes = [name.split("=")[0] for name in names]
        kept = [j for j, p in enumerate(prefixes) if "=" not in names[j] or prefixes[j - 1] == p]
        X = X[:, kept]
    if encoding == SCALED:
        X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-300)
    rows = slice(QUICK_ROWS) if mode == "quick" else slice(None)
    y = data.y[rows]
    return Table(scipy.sparse.csr_matrix(X[rows]), y, f"Adult, {len(y):,} × {X.shape[1]}")


@cache
def year(mode: Mode, standardize: bool = True) -> Table:
    """Load the packaged sample of YearPredictionMSD (quick), or all rows, original or stand-in (full)."""
    if mode == "quick":
        sample = load_year_sample(standardize=standardize)
        return Table(sample.X, sample.y, "YearPredictionMSD, 7,000 rows")
    try:
        data = load_year(standardize=standardize, download=False)
        return Table(data.X, data.y, "YearPredictionMSD, 515,345 rows")
    except FileNotFoundError:
        data = year_stand_in(YEAR_ROWS, standardize=standardize)
        return Table(data.X, data.y, "generated like YearPredictionMSD, 515,345 rows", stand_in=True)


@cache
def ratings(size: Literal["100k", "1m"]) -> tuple[Ratings, Row]:
    """Load MovieLens if it is available, else generated ratings of the same shape; also return their row columns."""
    name = {"100k": "MovieLens 100K", "1m": "MovieLens 1M"}[size]
    try:
        return load_movielens(size, download=False), {"data": name, "stand_in": False}
    except FileNotFoundError:
        return movielens_stand_in(size), {"data": f"generated like {name}", "stand_in": True}


def rating_matrix(rated: Ratings) -> Array:
    """Return the dense matrix of ratings, with zeros for missing ones."""
    M = np.zeros(rated.shape)
    M[rated.rows, rated.cols] = rated.values
    return M


def clear_data() -> None:
    """Clear the cached data, to free memory between experiments."""
    for loader in (adult, year, ratings, least_squares):
        loader.cache_clear()


def random_point(ball: Any, shape: tuple[int, ...], seed: int, share: float | None = None) -> Array:
    """Return a point in a random direction; its norm is a random or the given share of the radius."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(shape)
    return np.asarray(w * (ball.radius * (rng.uniform() if share is None else share) / ball.norm(w)))


@dataclass(frozen=True, eq=False)
class Minimum:
    """A minimiser over a ball; the minimum lies between ``value - gap`` and ``value``."""

    w: Array
    value: float
    gap: float


def certified_minimum(f: Any, ball: Any, tol: float = 1e-12, most: int = 20_000) -> Minimum:
    """Minimise a convex function with a certificate, by the automatic solver and then by projected gradients."""
    best: Minimum | None = None
    for solver in ("auto", AcceleratedProjectedGradient()):
        start = None if best is None else best.w
        result = minimize(f, ball, solver, tol=tol, max_iter=most, record=0, start=start)
        if best is None or result.gap < best.gap:
            best = Minimum(result.w, result.value, result.gap)
        if result.relative_gap <= tol:
            break
    assert best is not None
    return best


class Fit:
    """A loss on a table, with or without an intercept."""

    def __init__(self, loss: Any, table: Table, intercept: bool = True) -> None:
        self.table, self.place = table, table.place
        self._parts, self._intercept = (loss, as_data(table.X, table.y)), intercept
        self.reference = self.objective()

    def objective(self) -> Any:
        """Return a new objective, without cached predictions of other runs."""
        return Objective(*self._parts, fit_intercept=self._intercept)

    def value(self, w: Array) -> float:
        """Return the value of the objective."""
        return float(self.reference(self.reference.point(w)))


class LeastSquares:
    """The mean squared error on centred columns, through the Gram matrix."""

    def __init__(self, table: Table) -> None:
        self.table, self.place = table, table.place
        X, y = table.X - table.X.mean(axis=0), table.y - table.y.mean()
        n = len(y)
        self.H, self.b, self.start = 2.0 * (X.T @ X) / n, 2.0 * (X.T @ y) / n, float(y @ y) / n
        self.values, self.vectors = np.linalg.eigh(self.H)
        self.L, self.zero = float(self.values[-1]), np.zeros(len(self.b))

    @cached_property
    def unconstrained(self) -> Array:
        """The unconstrained minimiser of smallest norm."""
        kept = self.values > 1e-14 * self.values[-1]
        return np.asarray(self.vectors[:, kept] @ ((self.vectors.T @ self.b)[kept] / self.values[kept]))

    def ball(self, p: float, rho: float) -> LpBall:
        """Return the ball of radius ``rho`` times the norm of the unconstrained minimiser."""
        return LpBall(p, rho * LpBall(p, 1.0).norm(self.unconstrained))

    def gradient(self, w: Array) -> Array:
        """Return the gradient."""
        return np.asarray(self.H @ w - self.b)

    def value(self, w: Array) -> float:
        """The mean of squares."""
        return float(0.5 * w @ (self.H @ w) - self.b @ w + self.start)

    def error(self, w: Array, best: Minimum) -> float:
        """Return f(w) - f* as e'He/2 + <g*, e>, without cancellation."""
        e = w - best.w
        return float(0.5 * e @ (self.H @ e) + e @ self.gradient(best.w))

    def minimum(self, ball: LpBall) -> Minimum:
        """Minimise over a ball: without constraint if possible, by the secular equation for l_2, else by a solver."""
        if ball.norm(self.unconstrained) <= ball.radius * (1.0 + 1e-12):
            return Minimum(self.unconstrained, self.value(self.unconstrained), 0.0)
        if ball.p != 2.0:
            return certified_minimum(QuadraticForm(self.H, self.b, self.start), ball, 1e-13)
        b, lam = self.vectors.T @ self.b, 0.0
        for _ in range(100):  # Newton's method on 1/norm, which is nearly linear in the multiplier
            w = b / (self.values + lam)
            norm = float(np.linalg.norm(w))
            change = (norm / ball.radius - 1.0) * norm**2 / float(np.sum(w**2 / (self.values + lam)))
            lam = max(0.0, lam + change)
            if abs(change) <= 1e-15 * lam:
                break
        w = self.vectors @ (w * (ball.radius / norm))
        g = self.gradient(w)
        return Minimum(w, self.value(w), max(0.0, float(g @ w) + ball.support(-g)))

    def methods(self, ball: LpBall, start: Array | None = None) -> dict[str, Iterator[Array]]:
        """Return PA and the Frank-Wolfe methods of `projfree.paper` on an l_2 ball."""
        return methods(self, ball.radius, self.zero if start is None else start)

    def curvature(self, d: Array) -> float:
        """The second derivative along d."""
        return float(d @ (self.H @ d))


@cache
def least_squares(mode: Mode, standardize: bool = True) -> LeastSquares:
    """Return least squares on YearPredictionMSD or its stand-in."""
    return LeastSquares(year(mode, standardize))


def l2_oracle(radius: float) -> paper.Map:
    """Return the linear minimisation oracle of the l_2 and the Frobenius ball."""
    return lambda c: c * (-radius / float(np.linalg.norm(c)))


def l2_projection(radius: float) -> paper.Map:
    """Return the projection onto the l_2 ball."""

    def project(w: Array) -> Array:
        norm = float(np.linalg.norm(w))
        return w if norm <= radius else w * (radius / norm)

    return project


def methods(f: Any, radius: float, w: Array) -> dict[str, Any]:
    """Return PA, and Frank-Wolfe with each step rule, for a quadratic on an l_2 or Frobenius ball, from ``w``."""
    oracle = l2_oracle(radius)
    steps = {
        FWPLR: paper.option_a,
        EXACT: exact_line_search(f.curvature),
        SEARCHED: brent_line_search(f.value),
        OPTION_B: paper.option_b(f.L),
    }
    runs: dict[str, Any] = {PA: paper.primal_averaging(f.gradient, oracle, w, paper.Averaged())}
    return runs | {name: paper.frank_wolfe(f.gradient, oracle, w, step) for name, step in steps.items()}


def exact_line_search(curvature: Any) -> paper.Step:
    """Return the exact line search on a quadratic, in closed form."""

    def step(t: int, w: Array, v: Array, g: Array) -> float:
        d = v - w
        decrease, second = -float(np.sum(g * d)), curvature(d)
        return min(1.0, decrease / second) if decrease > 0 and second > 0 else 0.0

    return step


def brent_line_search(f: Any, tolerance: float = 1e-4) -> paper.Step:
    """Return the line search of Section 2 on values of f, by Brent's method with a tolerance relative to the step.

    The bounded search of Matlab has an absolute tolerance of 1e-4 on [0, 1], which loses smaller steps.
    """
    from scipy.optimize import minimize_scalar

    def step(t: int, w: Array, v: Array, g: Array) -> float:
        d = v - w
        result = minimize_scalar(lambda gamma: f(w + gamma * d), bracket=(0.0, 1.0), method="brent", tol=tolerance)
        return min(1.0, max(0.0, float(result.x)))

    return step


class Completion:
    """The mean squared error of observed entries on a Schatten-2 ball, from a random start, without the full matrix.

    The ball is the Frobenius ball, and the gradient is zero at unobserved entries, so these remain a multiple of those
    of the start: a vector of the observed entries and one number for the others, over an l_2 ball, has equal iterates.
    """

    def __init__(self, rated: Ratings, radius: float, seed: int, share: float = 0.5) -> None:
        self.y, self.radius, n = rated.values, radius, len(rated.values)
        rng, others = np.random.default_rng(seed), math.prod(rated.shape) - n
        entries = rng.standard_normal(n)
        rest = float(np.sqrt(rng.chisquare(others)))  # the norm of the Gaussian entries that are not observed
        scale = share * radius / math.hypot(float(np.linalg.norm(entries)), rest)
        self.w0, self.L = scale * np.append(entries, rest), 2.0 / n
        self.minimum = max(0.0, float(np.linalg.norm(self.y)) - radius) ** 2 / n

    def gradient(self, w: Array) -> Array:
        """Return the gradient, zero for the number that stands for the unobserved entries."""
        return np.append((2.0 / len(self.y)) * (w[:-1] - self.y), 0.0)

    def value(self, w: Array) -> float:
        """The mean of squares."""
        return float(np.mean((w[:-1] - self.y) ** 2))

    def curvature(self, d: Array) -> float:
        """The second derivative along d."""
        return 2.0 / len(self.y) * float(d[:-1] @ d[:-1])

    def methods(self) -> dict[str, Any]:
        """Return PA and the Frank-Wolfe methods."""
        return methods(self, self.radius, self.w0)
