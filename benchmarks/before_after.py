"""Compare two versions of the package: each benchmark runs alternately in this folder and in another worktree.

    git worktree add ../before REVISION
    python benchmarks/before_after.py ../before [--only passes small newton] [--rounds 3] [--commit]

Every version runs its own scripts. A figure is the median over the rounds; what is compared is the figure after over
the figure before, so that below one is faster. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from record import destinations, keep, machine

HERE = Path(__file__).parent
#: The options of each benchmark.
OPTIONS = {
    "passes": ["--repeat", "5"],
    "small": ["--quick"],
    "newton": ["--quick"],
    "sparse": ["--quick"],
}


def figures(name: str, tree: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The figures of a benchmark that are times, or ratios of times, by a name that both versions have."""
    if name == "passes":
        yield from ((row["pass"], row["ratio"]) for row in tree["ratios"])
    elif name == "small":
        yield from ((line, row["figure"]) for line, row in tree["figures"].items() if not line.startswith("a fit of"))
    elif name == "newton":
        yield from ((f"logistic, p = {row['p']:g}, rho = {row['rho']:g}", row["seconds"]) for row in tree["logistic"])
        yield from ((f"squares, p = {row['p']:g}", row["seconds"]) for row in tree["squares"])
        yield from ((f"path, {row['loss']}, p = {row['p']:g}", row["path"]) for row in tree["paths"])
    else:
        for row in tree["problems"]:
            for level, ours in row["ours"].items():
                if ours["certified"]:
                    yield f"{row['problem']}, to {level}", ours["cpu"]


def run(top: Path, name: str) -> dict[str, float]:
    """The figures of one run of a benchmark in a worktree."""
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, str(top / "benchmarks" / f"{name}.py"), *OPTIONS[name], "--out", folder]
        subprocess.run(script, env={**os.environ, "PYTHONPATH": str(top / "src")}, check=True, capture_output=True)
        (path,) = Path(folder).glob("*.json")
        return dict(figures(name, json.loads(path.read_text(encoding="utf-8"))))


def compare(name: str, before: Path, rounds: int) -> list[dict[str, Any]]:
    """Medians of both versions and their ratio, for the figures that both have and that are positive."""
    runs: dict[Path, list[dict[str, float]]] = {before: [], HERE.parent: []}
    for top in list(runs) * rounds:
        runs[top].append(run(top, name))
    old, new = ({line: float(np.median([one[line] for one in done])) for line in done[0]} for done in runs.values())
    lines = [line for line in old if line in new and old[line] > 0.0 and new[line] > 0.0]
    return [
        {"benchmark": name, "line": line, "before": old[line], "after": new[line], "ratio": new[line] / old[line]}
        for line in lines
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before", type=Path, help="the worktree of the other version")
    options.add_argument("--only", nargs="*", default=list(OPTIONS), choices=OPTIONS)
    options.add_argument("--rounds", type=int, default=3)
    destinations(options)
    chosen, rows, means = options.parse_args(), [], {}
    for name in chosen.only:
        found = compare(name, chosen.before.resolve(), chosen.rounds)
        means[name] = float(np.exp(np.mean(np.log([row["ratio"] for row in found]))))
        rows += found
        for row in found:
            print(f"{name:8} {row['before']:10.4g} {row['after']:10.4g} {row['ratio']:6.2f}  {row['line']}")
        print(f"{name}: geometric mean {means[name]:.3f}", flush=True)
    keep("before_after", {"machine": machine(), "means": means, "lines": rows}, chosen)


if __name__ == "__main__":
    main()
