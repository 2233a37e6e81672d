"""Implementations as the paper must have had them: a line search that recomputes the loss, general projections."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import Point, inner
from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet
from projfree.sets.lp import LpBall
from projfree.solvers.base import Solver, State

#: The tolerance of Matlab's bounded scalar search.
STEP_TOLERANCE = 1e-4
#: A run may call the general-purpose projection so often, and no total is extrapolated from it.
MOST_CALLS = 500


@dataclass(frozen=True, repr=False)
class RecomputedLineSearch(Solver):
    """Frank-Wolfe whose line search computes the loss from the data at every trial step, by a bounded scalar search."""

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> State:
        return State(t=0, x=start, seed=seed)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        from scipy.optimize import minimize_scalar

        x = f.point(state.x.w)  # nothing is kept from one iteration to the next
        m = f.minorant(x)
        v, support, *_ = ball.oracle(m.gradient)

        def loss(gamma: float) -> float:
            return f.value(f.point((1.0 - gamma) * x.w + gamma * v))

        gamma = float(minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": STEP_TOLERANCE}).x)
        new = f.point((1.0 - gamma) * x.w + gamma * v)
        return replace(state, t=state.t + 1, x=new, gamma=gamma, gap=inner(m.gradient, x.w) + support)


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


@dataclass(frozen=True, eq=False)
class Descended:
    """Where projected gradient descent stands, and what its two parts have cost so far."""

    t: int
    w: Array
    gradient_seconds: float
    projection_seconds: float

    @property
    def share(self) -> float:
        """The part of the time that went into projections."""
        return self.projection_seconds / (self.projection_seconds + self.gradient_seconds)


def descend(
    f: SmoothFunction, project: Callable[[Array], Array], eta: Callable[[int], float], batch: int | None, seed: int = 0
) -> Iterator[Descended]:
    """Projected gradient descent written out, without end; with ``batch`` rows drawn for each gradient it is SGD."""
    rng, w, gradient, projection = np.random.default_rng(seed), np.zeros(f.shape), 0.0, 0.0
    t = 0
    while True:
        t += 1
        begun = time.perf_counter()
        x = f.point(w)
        g = f.minorant(x).gradient if batch is None else f.estimate(x, batch, rng).gradient
        moved = w - eta(t) * g
        middle = time.perf_counter()
        w = np.asarray(project(moved))
        end = time.perf_counter()
        gradient, projection = gradient + middle - begun, projection + end - middle
        yield Descended(t, w, gradient, projection)


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
