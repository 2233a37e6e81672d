"""Iterations to converge, counted on the Gram matrix with the algorithms of `projfree.paper`: the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from projfree.sets import LpBall
from reproduction.base import Row
from reproduction.measure import TWO_PERCENT, Curve
from reproduction.problems import LeastSquares, Minimum

PA, FWPLR, FWLS, OPTION_B = "PA", "FWPLR", "FWLS", "FWLS, option B as printed"


def rescale(radius: float) -> paper.Map:
    """The projection onto the l_2 ball, written out."""

    def project(w: Array) -> Array:
        square = float(w @ w)
        return w if square <= radius**2 else w * (radius / square**0.5)

    return project


@dataclass(frozen=True, eq=False)
class CountedRun:
    """The values of a run until it converged, or all of them; ``at`` is the iteration of convergence."""

    values: Array
    at: int | None

    def row(self, **place: Any) -> Row:
        """The count, "at least" the length of the run where it did not converge."""
        if self.at is None:
            return {**place, "measure": "iterations at least", "value": float(len(self.values))}
        return {**place, "measure": "iterations", "value": float(self.at)}

    def curve(self) -> Curve:
        """The values as a curve; seconds are put in where they are known."""
        t = np.arange(1, len(self.values) + 1)
        return Curve(t, np.zeros(len(t)), t.astype(float), self.values)


def count(values: Iterable[float], minimum: float, start: float, most: int, scale: float | None = None) -> CountedRun:
    """The paper's rule of convergence on a sequence of values; ``scale`` replaces both bases where the minimum is 0."""
    kept, before = list[float](), start
    near = TWO_PERCENT * (abs(minimum) if scale is None else scale)
    for t, value in enumerate(islice(values, most), start=1):
        kept.append(value)
        still = TWO_PERCENT * (abs(before) if scale is None else scale)
        if abs(value - before) <= still and value - minimum <= near:
            return CountedRun(np.array(kept), t)
        before = value
    return CountedRun(np.array(kept), None)


class OnGram:
    """Least squares over an l_2 ball through its Gram matrix, with the paper's algorithms from the centre."""

    def __init__(self, problem: LeastSquares, rho: float) -> None:
        self.problem, self.ball = problem, problem.ball(2, rho)
        self.best = problem.minimum(self.ball)
        self.oracle = paper.lp_oracle(2, self.ball.radius)
        self.project = rescale(self.ball.radius)
        self.L = float(problem.spectrum[0][-1])
        self.zero = np.zeros(problem.form.shape)

    def gradient(self, w: Array) -> Array:
        """The gradient of the mean."""
        return np.asarray(self.problem.form.H @ w - self.problem.form.b)

    def exact(self, t: int, w: Array, v: Array, g: Array) -> float:
        """The exact line search on a quadratic, in closed form."""
        d = v - w
        fall, bend = -float(g @ d), float(d @ (self.problem.form.H @ d))
        return min(1.0, fall / bend) if fall > 0 else 0.0

    def variants(self) -> dict[str, Iterator[Array]]:
        """PA and the Frank-Wolfe methods."""
        return {
            PA: paper.primal_averaging(self.gradient, self.oracle, self.zero, paper.Averaged()),
            FWPLR: paper.frank_wolfe(self.gradient, self.oracle, self.zero, paper.option_a),
            FWLS: paper.frank_wolfe(self.gradient, self.oracle, self.zero, self.exact),
            OPTION_B: paper.frank_wolfe(self.gradient, self.oracle, self.zero, paper.option_b(self.L)),
        }

    def descent(self, steps: float) -> Iterator[Array]:
        """Projected gradient descent with the step ``steps`` / L."""
        return paper.gradient_descent(self.gradient, self.project, self.zero, steps / self.L)

    def accelerated(self) -> Iterator[Array]:
        """FISTA with the step 1/L, without restarts."""
        w, y, theta = self.zero, self.zero, 1.0
        while True:
            new = self.project(y - self.gradient(y) / self.L)
            after = 0.5 * (1 + (1 + 4 * theta**2) ** 0.5)
            w, y, theta = new, new + (theta - 1) / after * (new - w), after
            yield w

    def counted(self, iterates: Iterator[Array], most: int) -> CountedRun:
        """Count the iterations until convergence."""
        values = (self.best.value + self.problem.error(w, self.best) for w in iterates)
        return count(values, self.best.value, self.problem.start, most)


class OnEntries:
    """Completion over a Schatten-2 ball from a random start, without the matrix.

    The ball is the Frobenius ball and the gradient vanishes on unobserved entries, so these stay a multiple of those of
    the start: a vector of the observed entries and one number for the others, over an l_2 ball, has the same iterates.
    """

    def __init__(self, y: Array, radius: float, observed: Array, others: float) -> None:
        self.y, self.ball = y, LpBall(2, radius)
        self.oracle, self.start = paper.lp_oracle(2, radius), np.append(observed, others)
        self.minimum = max(0.0, float(np.linalg.norm(y)) - radius) ** 2 / len(y)

    def gradient(self, w: Array) -> Array:
        """The gradient of the mean; zero for the entry that stands for the unobserved ones."""
        g = np.zeros_like(w)
        g[:-1] = (2.0 / len(self.y)) * (w[:-1] - self.y)
        return g

    def value(self, w: Array) -> float:
        """The mean of squares."""
        return float(np.mean((w[:-1] - self.y) ** 2))

    def exact(self, t: int, w: Array, v: Array, g: Array) -> float:
        """The exact line search, in closed form."""
        d = v - w
        fall, bend = -float(g @ d), 2.0 / len(self.y) * float(d[:-1] @ d[:-1])
        return min(1.0, fall / bend) if fall > 0 and bend > 0 else 0.0

    def variants(self) -> dict[str, Iterator[Array]]:
        """PA and the Frank-Wolfe methods."""
        return {
            PA: paper.primal_averaging(self.gradient, self.oracle, self.start, paper.Averaged()),
            FWPLR: paper.frank_wolfe(self.gradient, self.oracle, self.start, paper.option_a),
            FWLS: paper.frank_wolfe(self.gradient, self.oracle, self.start, self.exact),
            OPTION_B: paper.frank_wolfe(self.gradient, self.oracle, self.start, paper.option_b(2.0 / len(self.y))),
        }


def random_entries(y: Array, shape: tuple[int, int], radius: float, seed: int, share: float = 0.5) -> OnEntries:
    """A Gaussian matrix with ``share`` of the radius as its norm, as observed entries and the norm of the others."""
    rng, others = np.random.default_rng(seed), shape[0] * shape[1] - len(y)
    observed = rng.standard_normal(len(y))
    rest = float(np.sqrt(rng.chisquare(others)))  # the norm of the Gaussian entries that are not observed
    scale = share * radius / float(np.hypot(np.linalg.norm(observed), rest))
    return OnEntries(y, radius, scale * observed, scale * rest)


def minimum_row(best: Minimum, **place: Any) -> Row:
    """The minimum, with its uncertainty."""
    return {**place, "measure": "minimum", "value": best.value, "note": f"known to {best.gap:.1g}"}
