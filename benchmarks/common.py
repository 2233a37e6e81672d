"""What every benchmark shares: the machine, when a run reached a level, how numbers are shown, where results go."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import projfree
from projfree import Result
from projfree.runtime import cores

#: Relative gaps and errors that count, in the order in which they are shown.
LEVELS = (2e-2, 1e-4, 1e-6)
NAMES = {2e-2: "2 %", 1e-4: "1e-4", 1e-6: "1e-6"}


def console() -> Console:
    """A console that is 120 columns wide also where the output is a file."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=120)


def machine() -> dict[str, str]:
    """What the figures depend on."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    threads = [
        f"{name}={os.environ[name]}" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ
    ]
    packages = {"projfree": projfree.__version__} | versions("numpy", "scipy", "numba")
    software = ", ".join(f"{name} {found}" for name, found in packages.items())
    return {
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "processor": f"{_processor()}, {cores()} cores, {_memory()}, {platform.system()}",
        "software": f"Python {platform.python_version()}, {software}, {blas['name']} {blas['version']}",
        "threads": " ".join(threads) or "not limited",
        "commit": _commit(),
    }


def versions(*names: str) -> dict[str, str]:
    """The versions of packages, also of those that are not installed."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _commit() -> str:
    ask = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


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


#: Where results that belong to the repository are written, one file for each benchmark.
COMMITTED = Path(__file__).parent / "committed"


def commit(name: str, payload: dict[str, Any]) -> Path:
    """Write the results as the JSON file that the repository holds."""
    COMMITTED.mkdir(exist_ok=True)
    path = COMMITTED / f"{name}.json"
    path.write_text(json.dumps(payload, indent=1) + "\n", encoding="utf-8")
    return path


def save(folder: Path, name: str, payload: dict[str, Any]) -> Path:
    """Write the results as JSON, named by the time of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{datetime.now():%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(payload, indent=1) + "\n", encoding="utf-8")
    return path
