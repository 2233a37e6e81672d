"""Measuring runs: the paper's rule of convergence, slopes on stated windows, curves, seconds of calls."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from projfree import iterate
from reproduction.base import Array, Row

#: The paper's 2 %: of the previous loss, and of the minimum.
TWO_PERCENT = 0.02


def window_name(low: float, high: float) -> str:
    """A window as it is written in tables."""
    return f"[{low:g}, {high:g}]"


def slope(t: Array, error: Array, low: float, high: float, floor: float = 0.0) -> float:
    """The least-squares slope of log error against log t on ``[low, high]``.

    Places are thinned to equal weight for equal ratios of t. NaN where there are fewer than five, where the run ends
    before ``high``, or where the error falls to ``floor``: below it the error is that of the minimum.
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
    """The slope on each window; a value of NaN says that there is none."""
    for low, high in windows:
        value = slope(t, error, low, high, floor)
        yield {**place, "measure": "slope", "window": window_name(low, high), "value": value}


def curve_rows(measure: str, t: Array, values: Array, **place: Any) -> Iterator[Row]:
    """A curve at thinned places: every t up to 30, then three per cent apart."""
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
    """Run a solver for ``most`` iterations and measure the states when t has grown by a factor."""
    t, values, next_t, state = list[int](), list[float](), 1, None
    for k, state in enumerate(islice(iterate(f, ball, solver, start=start), most), start=1):
        if k >= next_t or k == most:
            t.append(k)
            values.append(measure(state))
            next_t = max(k + 1, int(k * growth))
    return Curve(np.array(t), np.array(values), state)


class Count(NamedTuple):
    """The values of a run until it converged, or all of them; ``at`` is the iteration of convergence."""

    values: Array
    at: int | None

    @property
    def t(self) -> Array:
        """The iterations of the values."""
        return np.arange(1, len(self.values) + 1)

    def row(self, **place: Any) -> Row:
        """The count; "iterations at least" the length of the run where it did not converge."""
        name = "iterations" if self.at else "iterations at least"
        return {**place, "measure": name, "value": float(self.at or len(self.values))}


def count(values: Iterable[float], minimum: float, start: float, most: int, scale: float | None = None) -> Count:
    """The paper's rule: the first loss within 2 % of the previous one and within 2 % of the minimum.

    ``scale`` replaces both bases where the minimum is zero.
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
    """Processor seconds of one call of each action, in rounds in which the actions take turns.

    Each action is called once before; a round is the mean of ``calls`` calls.
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
