"""What benchmarks share: when a run reached a level, and how numbers are shown."""

from __future__ import annotations

import os
import sys

import numpy as np
from rich.console import Console

from projfree import Result

#: Relative gaps and errors that count, in the order in which they are shown.
LEVELS = (2e-2, 1e-4, 1e-6)
NAMES = {2e-2: "2 %", 1e-4: "1e-4", 1e-6: "1e-6"}


def console() -> Console:
    """A console that is 120 columns wide also where the output is a file."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=120)


def reached(result: Result, best: float | None) -> dict[str, dict[str, float] | None]:
    """For each level the first row of the trace that reached it: by certificate, and by the true error.

    The point of a row is the best met so far, its bound the best proved so far. A level that only the recomputation
    at exit certifies counts with the totals of the run.
    """
    trace = result.trace
    value = np.fmin.accumulate(trace["value"]) if len(trace) else np.zeros(0)
    relative = (value - trace["bound"]) / np.abs(value)
    error = np.full(len(value), np.nan) if best is None else (value - best) / abs(best)
    out = {}
    for level in LEVELS:
        row = _first(relative <= level)
        certified = (
            None if row is None else {name: float(trace[name][row]) for name in ("iteration", "passes", "seconds")}
        )
        if row is None and result.relative_gap <= level:
            certified = {"iteration": result.n_iter, "passes": result.n_passes, "seconds": result.seconds}
        true = _first(error <= level)
        out[NAMES[level]] = {"certified": certified, "true": None if true is None else int(trace["iteration"][true])}
    return out


def _first(holds: np.ndarray) -> int | None:
    places = np.flatnonzero(holds)
    return int(places[0]) if len(places) else None


def shown_seconds(seconds: float | None) -> str:
    """Milliseconds up to a minute, in five characters at most."""
    if seconds is None:
        return "-"
    return f"{seconds:.3f}" if seconds < 9.9995 else f"{seconds:.1f}"


def shown_count(count: float | None) -> str:
    """A whole number; a fraction of a pass keeps one digit."""
    if count is None:
        return "-"
    return f"{count:.1f}" if count < 10 and count != round(count) else f"{count:,.0f}"


def with_one_thread() -> None:
    """Start the process again with one thread for every library, which read their variables when they are loaded."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    if any(os.environ.get(name) != "1" for name in names):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | dict.fromkeys(names, "1"))
