"""Discover the experiments, run their tasks in one process, and store the rows of each task when it ends."""

from __future__ import annotations

import importlib
import json
import math
import os
import pkgutil
import platform
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import projfree
from reproduction import experiments
from reproduction.base import Experiment, Mode, Row, Task
from reproduction.problems import clear_data

#: The folder of the measurements within that of the report.
STORE = "measurements"
#: Required fields of a stored task.
ENTRY = {"experiment", "task", "mode", "timed", "seconds", "load", "rows", "constant", "columns"}
#: All columns of rows; a row has those that apply to it.
COLUMNS = (
    *("experiment", "task", "measure", "value", "data", "stand_in", "n", "problem", "set", "p", "radius", "rho", "d"),
    *("method", "encoding", "features", "intercept", "constant", "start", "round", "t", "window", "part", "epsilon"),
    *("unit", "size", "bound", "of", "x", "reading", "norm", "run"),
)


def discover() -> dict[str, Experiment]:
    """Return the experiments of the modules in `reproduction.experiments`, by name."""
    by_name = {}
    for module in pkgutil.iter_modules(experiments.__path__):
        experiment = getattr(importlib.import_module(f"{experiments.__name__}.{module.name}"), "EXPERIMENT", None)
        if experiment is not None:
            by_name[experiment.name] = experiment
    return by_name


class FolderError(ValueError):
    """The folder of a report cannot be used; the message says why."""


class Store:
    """Folder with one JSON file per task: date, machine and duration of the measurement, and the rows by column."""

    def __init__(self, folder: Path, mode: Mode) -> None:
        self.folder, self.mode = folder / STORE, mode

    def path(self, experiment: str, task: Task) -> Path:
        """Return the path of the file of a task."""
        plain = unicodedata.normalize("NFKC", task.name).replace("∞", "inf")
        name = re.sub(r"[^\w.=-]+", "-", plain, flags=re.ASCII)
        return self.folder / f"{experiment}--{name}.json"

    def entries(self) -> list[dict[str, Any]]:
        """Return all stored tasks."""
        return [self._read(path) for path in sorted(self.folder.glob("*.json"))]

    def _read(self, path: Path) -> dict[str, Any]:
        """Read a stored task."""
        try:
            entry = json.loads(path.read_text("utf-8"))
        except ValueError:
            entry = None
        if not isinstance(entry, dict) or not entry.keys() >= ENTRY:
            raise FolderError(f"measurements must be files that this command wrote, and {path} is damaged; remove it.")
        return entry

    def save(self, experiment: str, task: Task, rows: Sequence[Row], about: dict[str, Any]) -> None:
        """Write the rows of a task atomically."""
        self.folder.mkdir(parents=True, exist_ok=True)
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [_short(row.get(name)) for row in rows] for name in names}
        constant = {name: each[0] for name, each in columns.items() if len(set(map(repr, each))) == 1}
        varying = {name: each for name, each in columns.items() if name not in constant}
        head = {"experiment": experiment, "task": task.name, "mode": self.mode, "timed": task.timed, **about}
        entry = {**head, "rows": len(rows), "constant": constant, "columns": varying}
        path = self.path(experiment, task)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
        part.replace(path)

    def table(self) -> Any:
        """Return all rows as one data frame, with missing values for columns that a row does not have."""
        import pandas as pd

        frames = []
        for entry in self.entries():
            frame = pd.DataFrame(entry["columns"], index=range(entry["rows"]))
            frames.append(frame.assign(experiment=entry["experiment"], task=entry["task"], **entry["constant"]))
        table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
        if unknown := set(table.columns) - set(COLUMNS):
            raise ValueError(f"rows must have the columns of `COLUMNS`, got {', '.join(sorted(unknown))} too.")
        return table.reindex(columns=list(COLUMNS)).assign(value=lambda t: t["value"].astype(float))


def _short(value: Any) -> Any:
    """Convert a value for JSON: floats with six digits, and NaN and infinities as strings that `float` reads."""
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            return str(float(value))
        return float(f"{float(value):.6g}")
    return value.item() if isinstance(value, np.generic) else value


def describe_environment() -> dict[str, Any]:
    """Return the date, the versions and the machine."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": f"projfree {projfree.__version__}, NumPy {np.__version__}, Python {platform.python_version()}",
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
    }


def measure_tasks(
    chosen: Sequence[Experiment], store: Store, which: Callable[[Task], bool], say: Callable[[str], None] = print
) -> list[str]:
    """Run the tasks that are not stored yet, timed ones last, and return the names of those that failed."""
    pending = [(experiment, task) for experiment in chosen for task in experiment.tasks(store.mode) if which(task)]
    pending.sort(key=lambda pair: pair[1].timed)
    failed, before = [], ""
    for k, (experiment, task) in enumerate(pending, start=1):
        if store.path(experiment.name, task).exists():
            continue
        if experiment.name != before:
            clear_data()
            before = experiment.name
        start = time.perf_counter()
        try:
            rows = list(task.run())
        except Exception as error:
            failed.append(f"{experiment.name}, {task.name}: {type(error).__name__}: {error}")
            say(f"FAILED {failed[-1]}")
            continue
        seconds = time.perf_counter() - start
        load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
        store.save(experiment.name, task, rows, {"seconds": round(seconds, 1), "load": load, **describe_environment()})
        say(f"{k} of {len(pending)}: {experiment.name}, {task.name}: {seconds:.1f} s")
    return failed
