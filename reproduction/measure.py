"""Following a solver: solver time without measurement, the paper's rule of convergence, slopes on stated windows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.run import iterate
from projfree.runtime import single_blas
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State
from reproduction.base import Row

#: The paper's 2 %: of the previous loss, and of the minimum.
TWO_PERCENT = 0.02
#: Up to this t every iteration is kept, later ones are thinned out geometrically.
ALL_UP_TO, GROWTH = 100, 1.03


def clock() -> float:
    """Processor seconds of this process, which other programs on the machine do not lengthen.

    Wall time where the system counts processor time too coarsely for a single step.
    """
    fine = time.get_clock_info("process_time").resolution <= 1e-6
    return time.process_time() if fine else time.perf_counter()


@dataclass(frozen=True, eq=False)
class Curve:
    """What was measured along a run: at ``t`` iterations, after ``seconds`` of solver time and ``passes`` reads."""

    t: Array
    seconds: Array
    passes: Array
    value: Array

    def first(self, holds: Array) -> int | None:
        """The place of the first entry for which ``holds``."""
        places = np.flatnonzero(holds)
        return int(places[0]) if len(places) else None

    def converged(self, minimum: float, start: float, scale: float | None = None) -> int | None:
        """The paper's rule: the first place within 2 % of the previous loss and within 2 % of the minimum.

        ``scale`` replaces both bases where the minimum is zero.
        """
        before = np.concatenate([[start], self.value[:-1]])
        base = np.abs(before) if scale is None else scale
        near = self.value - minimum <= TWO_PERCENT * (abs(minimum) if scale is None else scale)
        return self.first((np.abs(self.value - before) <= TWO_PERCENT * base) & near)

    def rows(self, measure: str, minimum: float = 0.0, **place: Any) -> Iterator[Row]:
        """Rows of the table: ``value - minimum`` at thinned places."""
        last = 0
        for k, t in enumerate(self.t):
            if t <= ALL_UP_TO or t >= GROWTH * last or k == len(self.t) - 1:
                last = int(t)
                yield {
                    **place,
                    "measure": measure,
                    "t": int(t),
                    "seconds": float(self.seconds[k]),
                    "passes": float(self.passes[k]),
                    "value": float(self.value[k] - minimum),
                }


def follow(
    f: SmoothFunction,
    ball: ConstraintSet,
    solver: Solver,
    measure: Callable[[State], float],
    *,
    most: int,
    start: Any = None,
    seed: int = 0,
    growth: float = 1.0,
    until: Callable[[float, float], bool] | None = None,
) -> Curve:
    """Run a solver and measure its iterates; the clock and the count of passes stand still while measuring.

    No clock ends a run: the number of iterations is the same on every machine.

    Parameters
    ----------
    measure : callable
        The state in, a number out. It must not touch the images of the run, or later steps would become cheaper.
    most : int
        Iterations after which the run ends.
    growth : float
        Measure at every iteration (1) or only when t has grown by this factor.
    until : callable, optional
        ``until(previous, value)`` ends the run.
    """
    rows, spent, passes, due, previous = list[tuple[float, ...]](), 0.0, 0.0, 1, math.nan
    with single_blas(not ball.structure(f.shape).spectral):
        states = iterate(f, ball, solver, start=start, seed=seed)
        for t in range(1, most + 1):
            before, begun = f.passes, clock()
            state = next(states)
            spent, passes = spent + clock() - begun, passes + f.passes - before
            if t >= due or t == most:
                value, due = measure(state), max(t + 1, int(t * growth))
                rows.append((t, spent, passes, value))
                if until is not None and until(previous, value):
                    break
                previous = value
    columns = np.array(rows).T
    return Curve(columns[0].astype(int), columns[1], columns[2], columns[3])


def slope(t: Array, error: Array, low: float, high: float, floor: float = 0.0) -> float:
    """The least-squares slope of log error against log t on ``[low, high]``.

    Places are thinned to equal weight for equal ratios of t. NaN where there are fewer than five, or where the error
    falls to ``floor``: below it the error is that of the minimum, which bends the curve down, and a fit on what is left
    would not be one on this window.
    """
    inside = (t >= low) & (t <= high)
    t, error = np.asarray(t, dtype=float)[inside], error[inside]
    if len(t) < 5 or not np.all(error > floor):
        return math.nan
    places = np.unique(np.searchsorted(t, np.geomspace(t[0], t[-1], 200)).clip(max=len(t) - 1))
    return float(np.polyfit(np.log(t[places]), np.log(error[places]), 1)[0])


def slope_rows(
    curve: Curve, errors: Array, windows: Sequence[tuple[float, float]], floor: float, **place: Any
) -> Iterator[Row]:
    """The slope on each window; a window that the run does not reach, or that meets the floor, says so as NaN."""
    for low, high in windows:
        reached = curve.t[-1] >= high
        found = slope(curve.t, errors, low, high, floor) if reached else math.nan
        yield {**place, "variant": f"[{low:g}, {high:g}]", "measure": "slope", "value": found}


def timed(action: Callable[[], Any], calls: int, repeats: int) -> list[float]:
    """Seconds of one call: the mean of ``calls`` of them, ``repeats`` times, after one call that is not counted."""
    action()
    out = []
    for _ in range(repeats):
        begun = clock()
        for _ in range(calls):
            action()
        out.append((clock() - begun) / calls)
    return out
