"""Measurement of runs: the convergence criterion of the paper, slopes, curves, and times of calls."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from projfree import iterate
from reproduction.base import Array, Row

#: The tolerance of the paper, relative to the previous loss and to the minimum.
TWO_PERCENT = 0.02


def window_name(low: float, high: float) -> str:
    """Format a window of iterations."""
    return f"[{low:g}, {high:g}]"


def slope(t: Array, error: Array, low: float, high: float, floor: float = 0.0) -> float:
    """Return the least-squares slope of log error against log t on ``[low, high]``.

    Iterations are thinned to equal weight for equal ratios of t. The slope is NaN if there are fewer than five, if the
    run ends before ``high``, or if the error falls to ``floor``, the error of the minimum itself.
    """
    inside = (t >= low) & (t <= high)
    if inside.sum() < 5 or t[-1] < high or not np.all(error[inside] > floor):
        return math.nan
    x, e = t[inside].astype(float), error[inside]
    places = np.unique(np.searchsorted(x, np.geomspace(x[0], x[-1], 200)).clip(max=len(x) - 1))
    return float(np.polyfit(np.log(x[places]), np.log(e[places]), 1)[0])


def slope_rows(
    t: Array, error: Array, windows: Iterable[tuple[float, float]], floor: float = 0.0, **place: Any
) -> Iterator[Row]:
    """Yield a row with the slope for each window, NaN if it is undefined."""
    for low, high in windows:
        value = slope(t, error, low, high, floor)
        yield {**place, "measure": "slope", "window": window_name(low, high), "value": value}


def curve_rows(measure: str, t: Array, values: Array, **place: Any) -> Iterator[Row]:
    """Yield the rows of a curve: each t up to 30, then t in steps of three per cent."""
    last = 0.0
    for k, (at, value) in enumerate(zip(t, values, strict=True)):
        if at <= 30 or at >= 1.03 * last or k == len(t) - 1:
            last = float(at)
            yield {**place, "measure": measure, "t": int(at), "value": float(value)}


class Curve(NamedTuple):
    """Values at iterations t, and the last state of the run."""

    t: Array
    value: Array
    state: Any


def trace_run(
    f: Any,
    ball: Any,
    solver: Any,
    most: int,
    measure: Callable[[Any], float],
    start: Array | None = None,
    growth: float = 1.05,
) -> Curve:
    """Run a solver for ``most`` iterations, and measure its state each time t has grown by the factor ``growth``."""
    t, values, next_t, state = list[int](), list[float](), 1, None
    for k, state in enumerate(islice(iterate(f, ball, solver, start=start), most), start=1):
        if k >= next_t or k == most:
            t.append(k)
            values.append(measure(state))
            next_t = max(k + 1, int(k * growth))
    return Curve(np.array(t), np.array(values), state)


class Count(NamedTuple):
    """Losses of a run until convergence, or all of them; ``at`` is the iteration of convergence or None."""

    values: Array
    at: int | None

    @property
    def t(self) -> Array:
        """The iterations of the values."""
        return np.arange(1, len(self.values) + 1)

    def row(self, **place: Any) -> Row:
        """Return the number of iterations as a row, or the length of the run as a lower bound."""
        name = "iterations" if self.at else "iterations at least"
        return {**place, "measure": name, "value": float(self.at or len(self.values))}


def count(values: Iterable[float], minimum: float, start: float, most: int, scale: float | None = None) -> Count:
    """Apply the criterion of the paper: the first loss within 2 % of the previous one and within 2 % of the minimum.

    ``scale`` replaces both references if the minimum is zero.
    """
    losses, previous = list[float](), start
    tolerance = TWO_PERCENT * (abs(minimum) if scale is None else scale)
    for t, value in enumerate(islice(values, most), start=1):
        losses.append(value)
        change_tolerance = TWO_PERCENT * (abs(previous) if scale is None else scale)
        if abs(value - previous) <= change_tolerance and value - minimum <= tolerance:
            return Count(np.array(losses), t)
        previous = value
    return Count(np.array(losses), None)


def timings(actions: Mapping[str, Callable[[], Any]], calls: Mapping[str, int] | int, times: int) -> dict[str, Array]:
    """Measure the processor time per call of each action, in rounds in which the actions alternate.

    Each action is called once before. The time of a round is the mean of ``calls`` calls.
    """
    out: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()
    for _ in range(times):
        for name, action in actions.items():
            repeats = calls if isinstance(calls, int) else calls[name]
            start = time.process_time()
            for _ in range(repeats):
                action()
            out[name].append((time.process_time() - start) / repeats)
    return {name: np.array(each) for name, each in out.items()}
