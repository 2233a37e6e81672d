"""The two stages of a completion fit: alternating sweeps to a good point, and the convex problem that judges it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import LowRank
from projfree.checks import Array
from projfree.data import Entries
from projfree.data.factored_entries import FactoredEntriesData
from projfree.estimators.alternating import Alternating, Factors
from projfree.losses.base import Loss
from projfree.objectives.offsets import OffsetObjective
from projfree.runtime import single_blas
from projfree.sets import SchattenBall, WeightedSchattenBall

#: How strongly the strength of the penalty follows the norm that is wanted, and the most it changes in a sweep.
FOLLOW, MOST = 0.7, 2.0


@dataclass(frozen=True)
class Sweep:
    """What a callback sees after a sweep; `ProgressBar` takes it too."""

    iteration: int
    max_iter: int
    seconds: float
    norm: float
    score: float
    solver: Any
    tol: float = 0.0
    relative_gap: float = float("inf")

    @property
    def passes(self) -> float:
        """Reads of the ratings: one for each side."""
        return 2.0 * self.iteration


def frequency_weights(counts: Array, power: float) -> Array:
    """Smoothed relative frequencies to a power: nine tenths of one's own, a tenth of the mean."""
    mean = max(float(counts.mean()), 1e-300)
    weights: Array = ((0.9 * counts + 0.1 * mean) / mean) ** power
    return weights


def make_sweeps(
    rows: Array,
    cols: Array,
    values: Array,
    weight: Array | None,
    shape: tuple[int, int],
    *,
    loss: Loss,
    p: float,
    power: float,
    ridge: float,
    kinds: tuple[bool, bool, bool],
    base: float,
) -> tuple[Alternating, FactoredEntriesData]:
    """The alternating problem and the data of the convex one, which share pattern and targets."""
    data = FactoredEntriesData(Entries(rows, cols, shape, factored=True), loss.targets(values), weight)
    at = data.pattern
    by_row = np.diff(at.indptr).astype(np.float64)
    by_col = np.bincount(at.indices, minlength=shape[1]).astype(np.float64)
    problem = Alternating(
        pattern=at,
        y=loss.targets(data.y),
        weight=np.zeros(0) if data.weight is None else data.weight * data.n,
        loss=loss,
        p=p,
        row_weights=frequency_weights(by_row, power),
        col_weights=frequency_weights(by_col, power),
        ridge=ridge,
        kinds=kinds,
        base=base,
    )
    return problem, data


class SweepsInterrupted(KeyboardInterrupt):
    """Ctrl-C after at least one sweep, with what the last one has left."""

    def __init__(self, state: Factors, strength: float, iteration: int) -> None:
        super().__init__(state, strength, iteration)
        self.state, self.strength, self.iteration = state, strength, iteration

    def __str__(self) -> str:
        return f"interrupted after {self.iteration} sweeps"


def sweeps(
    problem: Alternating,
    state: Factors,
    strength: float,
    *,
    count: int,
    radius: float | None = None,
    score: Callable[[Factors], float] | None = None,
    patience: int = 0,
    callbacks: Sequence[Callable[[Any], bool | None]] = (),
    time_limit: float = np.inf,
    each: Callable[[Factors, float, int], None] | None = None,
    done: int = 0,
    solver: Any = None,
) -> tuple[Factors, float, int]:
    """Sweep until a limit or a callback; with a radius the strength follows the norm. Returns the strength as well."""
    begun, best, best_at, kept = time.monotonic(), -np.inf, 0, state
    iteration = done
    try:
        with single_blas():
            while iteration < count and time.monotonic() - begun < time_limit:
                state = problem.sweep(state, strength)
                iteration += 1
                norm = state.norm(problem.p)
                if radius is not None:
                    strength *= float(np.clip((norm / radius) ** FOLLOW, 1.0 / MOST, MOST))
                now = float("nan") if score is None else score(state)
                if score is not None and now > best:
                    best, best_at, kept = now, iteration, state
                if each is not None:
                    each(state, strength, iteration)
                seen = Sweep(iteration, count, time.monotonic() - begun, norm, now, solver)
                if any([callback(seen) for callback in callbacks]):
                    break
                if score is not None and patience and iteration - best_at >= patience:
                    state = kept
                    break
    except KeyboardInterrupt as stop:
        if iteration == done:
            raise
        raise SweepsInterrupted(state, strength, iteration) from stop
    return state, strength, iteration


def fitted_into(state: Factors, p: float, radius: float) -> Factors:
    """The state with its matrix scaled into the ball, where it lies outside."""
    norm = state.norm(p)
    shrink = radius / norm if norm > radius else 1.0
    return replace(state, left=state.left * shrink, sigma=state.sigma * shrink)


def ball_of(problem: Alternating, radius: float) -> SchattenBall | WeightedSchattenBall:
    """The ball of the problem's weighted norm."""
    rows, cols = problem.row_weights, problem.col_weights
    if np.all(rows == 1.0) and np.all(cols == 1.0):
        return SchattenBall(problem.p, radius)
    return WeightedSchattenBall(problem.p, radius, rows, cols)


def objective_of(problem: Alternating, data: FactoredEntriesData) -> OffsetObjective:
    """The convex objective that the sweeps descend on."""
    return OffsetObjective(problem.loss, data, problem.ridge, problem.kinds, problem.base)


def relative(f: OffsetObjective, value: float, bound: float) -> float:
    """The gap over the value, or over a millionth of the value without a matrix, as in every run."""
    floor = 1e-6 * abs(float(f.value(f.point(LowRank(f.shape, ())))))
    return (value - bound) / max(abs(value), floor, 1e-300)


def from_result(problem: Alternating, w: Any, offsets: Array) -> Factors:
    """The factors of a convex answer."""
    low = w.low if w.low is not None else LowRank(w.shape, ())
    left, sigma, right = low.scaled(problem.row_weights, problem.col_weights).compressed(1e-9).decomposed()
    root, (m, _) = np.sqrt(sigma), problem.pattern.shape
    return Factors(
        left * root / problem.row_weights[:, None],
        right * root / problem.col_weights[:, None],
        offsets[1 : 1 + m],
        offsets[1 + m :],
        float(offsets[0]),
        problem.base,
        sigma,
    )
