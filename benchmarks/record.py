"""Where results go, and what every result says of its machine; needs NumPy alone, since peers may live elsewhere.

A run writes its JSON file to the scratch folder, which git ignores. With ``--commit`` it also writes JSON and table to
``benchmarks/results``, which the repository holds; ``python benchmarks/record.py`` writes all tables there anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from overview import overview
from report_tables import grid, markdown, together
from reports import REPORTS

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGES = HERE.parent / "docs"
SCRATCH = HERE / "scratch"
#: What stands between these on a page is written by `tabulate`.
BEGIN, END = "<!-- begin results -->", "<!-- end results -->"


def machine() -> dict[str, str]:
    """What the figures depend on."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    threads = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    packages = versions("projfree", "numpy", "scipy", "numba")
    software = ", ".join(f"{name} {found}" for name, found in packages.items())
    return {
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "processor": f"{_processor()}, {os.cpu_count()} cores, {_memory()}, {platform.system()}",
        "software": f"Python {platform.python_version()}, {software}, {blas['name']} {blas['version']}",
        "threads": " ".join(threads) or "not limited",
        "load": f"{os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else "unknown",
        "commit": _commit(),
        "options": _options(sys.argv[1:]),
    }


def versions(*names: str) -> dict[str, str]:
    """The versions of packages, also of those that are not installed, or imported without being so."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = getattr(sys.modules.get(name), "__version__", "not installed")
    return found


def _options(words: list[str]) -> str:
    """What changes the figures: neither where they are written, nor that they are, nor in how many calls."""
    pairs = zip(words, ["", *words], strict=False)
    kept = [word for word, before in pairs if not {word, before} & {"--out", "--pieces", "--most"}]
    return " ".join(word for word in kept if word != "--commit") or "none"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _commit() -> str:
    ask = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def destinations(parser: argparse.ArgumentParser) -> None:
    """The options that every benchmark has."""
    parser.add_argument("--out", type=Path, default=SCRATCH, help="folder for the JSON file of this run")
    parser.add_argument("--commit", action="store_true", help="also write JSON and table into benchmarks/results")


def keep(name: str, payload: dict[str, Any], chosen: argparse.Namespace) -> Path:
    """Write the results where the options say; the file of the repository, if it was asked for, else of this run."""
    path = save(chosen.out, name, payload)
    return commit(name, payload) if chosen.commit else path


def save(folder: Path, name: str, payload: dict[str, Any]) -> Path:
    """Write the results as JSON, named by the time of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    return _write(folder / f"{name}-{datetime.now():%Y%m%d-%H%M%S}.json", payload)


def commit(name: str, payload: dict[str, Any]) -> Path:
    """Write the results that the repository holds: as JSON, and as the table made of it."""
    RESULTS.mkdir(exist_ok=True)
    path = _write(RESULTS / f"{name}.json", payload)
    tabulate()
    return path


def committed(name: str) -> dict[str, Any]:
    """The results that the repository holds; empty where it has none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def tabulate() -> None:
    """Write the tables of all results that the repository holds."""
    trees = {name: tree for name in REPORTS if (tree := committed(name))}
    for name, tree in trees.items():
        (RESULTS / f"{name}.md").write_text(markdown(REPORTS[name], tree), encoding="utf-8")
    embed("performance", grid(*overview(trees)))
    if "cluster" in trees:
        embed("dask", markdown(REPORTS["cluster"], trees["cluster"]))
    (RESULTS / "README.md").write_text(together(REPORTS, trees), encoding="utf-8")


def embed(page: str, tables: str) -> None:
    """Replace what stands between the marks of a page of the documentation, if it is there."""
    path = PAGES / f"{page}.md"
    if path.exists():
        text = path.read_text(encoding="utf-8")
        path.write_text(
            "\n\n".join([text.split(BEGIN)[0] + BEGIN, tables.strip(), END + text.split(END)[1]]), encoding="utf-8"
        )


def _write(path: Path, payload: dict[str, Any]) -> Path:
    path.write_text(json.dumps(payload, indent=1, default=str) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    tabulate()
