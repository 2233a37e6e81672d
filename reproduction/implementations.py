"""The paper's implementation, as far as it tells: products with the whole table, projections by a general solver."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from projfree.sets.lp import LpBall
from reproduction.counting import FWLS, FWPLR, OPTION_B, PA, rescale
from reproduction.problems import Completion, LeastSquares

PAPERS, OURS = "the paper's implementation", "ours"
GD = "GD"


class Dense:
    """Least squares as one writes it in Matlab; ``reads`` counts products with the table."""

    def __init__(self, problem: LeastSquares) -> None:
        X, y = problem.table.X, problem.table.y
        self.X, self.y, self.reads = X - X.mean(axis=0), y - y.mean(), 0
        self.L = len(y) * float(problem.spectrum[0][-1])
        self.start = np.zeros(X.shape[1])

    def value(self, w: Array) -> float:
        """The sum of squares; one product."""
        self.reads += 1
        return float(np.sum((self.X @ w - self.y) ** 2))

    def gradient(self, w: Array) -> Array:
        """Its gradient; two products."""
        self.reads += 2
        return np.asarray(2.0 * (self.X.T @ (self.X @ w - self.y)))


class DenseCompletion:
    """The observed quadratic loss on whole matrices."""

    def __init__(self, problem: Completion) -> None:
        self.M, self.reads, self.L = problem.observed, 0, 2.0
        self.mask = np.zeros(self.M.shape)
        self.mask[problem.at.rows, problem.at.cols] = 1.0
        self.start = np.zeros(self.M.shape)

    def value(self, W: Array) -> float:
        """The sum of squares over the observed entries."""
        self.reads += 1
        return float(np.sum((self.mask * W - self.M) ** 2))

    def gradient(self, W: Array) -> Array:
        """Its gradient."""
        self.reads += 2
        return np.asarray(2.0 * (self.mask * W - self.M))


def frobenius_oracle(radius: float) -> paper.Map:
    """The oracle of the Schatten-2 ball, without a decomposition."""
    return lambda C: C * (-radius / float(np.linalg.norm(C)))


def paper_steps(f: Dense | DenseCompletion, radius: float) -> dict[str, Iterator[Array]]:
    """The compared methods as `projfree.paper` has them; the search of FWLS computes the loss anew at each trial."""
    oracle = frobenius_oracle(radius)
    methods = {
        PA: paper.primal_averaging(f.gradient, oracle, f.start, paper.Averaged()),
        FWPLR: paper.frank_wolfe(f.gradient, oracle, f.start, paper.option_a),
        FWLS: paper.frank_wolfe(f.gradient, oracle, f.start, paper.line_search(f.value)),
        OPTION_B: paper.frank_wolfe(f.gradient, oracle, f.start, paper.option_b(f.L)),
    }
    if isinstance(f, Dense):
        methods[GD] = paper.gradient_descent(f.gradient, rescale(radius), f.start, 1.0 / f.L)
    return methods


def advance(iterates: Iterator[Any], steps: int) -> None:
    """Take some steps."""
    next(islice(iterates, steps - 1, None))


class GeneralProjection:
    """The projection onto an l_p ball by a general-purpose convex solver, posed once and solved for each point."""

    def __init__(self, ball: LpBall, d: int) -> None:
        import importlib

        cp: Any = importlib.import_module("cvxpy")

        self.ball = ball
        self._w, self._target = cp.Variable(d), cp.Parameter(d)
        self._problem = cp.Problem(
            cp.Minimize(cp.sum_squares(self._w - self._target)), [cp.pnorm(self._w, ball.p) <= ball.radius]
        )

    def __call__(self, w: Array) -> Array:
        self._target.value = w
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a solution that may be inaccurate: it is rescaled below
            self._problem.solve(solver="CLARABEL")
        found = np.asarray(self._w.value)
        return found * min(1.0, self.ball.radius / self.ball.norm(found))


def general_available() -> bool:
    """Whether the general-purpose solver is installed."""
    from importlib.util import find_spec

    return find_spec("cvxpy") is not None


def threshold(w: Array, radius: float) -> Array:
    """The projection onto the l_1 ball by sorting, written out."""
    a = np.abs(w)
    if a.sum() <= radius:
        return w
    u = np.sort(a)[::-1]
    sums = np.cumsum(u) - radius
    k = np.flatnonzero(u * np.arange(1, len(u) + 1) > sums)[-1]
    return np.asarray(np.sign(w) * np.maximum(a - sums[k] / (k + 1), 0.0))


def loop_clip(w: Array, radius: float) -> Array:
    """The projection onto an l_inf ball one entry after the other, as the paper says it must be done."""
    out = np.empty_like(w)
    for i, entry in enumerate(w.tolist()):
        out[i] = radius if entry > radius else -radius if entry < -radius else entry
    return out


def by_singular_values(W: Array, p: float, radius: float) -> Array:
    """The projection onto a Schatten ball through a full decomposition, whatever p is."""
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return np.asarray((U * LpBall(p, radius).project(s)) @ Vt)
