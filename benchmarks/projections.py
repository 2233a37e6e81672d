"""What the geometry of l_p balls costs: projections, oracles and dual norms over a plain read of the vector.

    python benchmarks/projections.py [--repeat 15] [--share 0.1] [--commit]

The vector is Gaussian, and the radius a share of its norm. Everything is interleaved and measured in processor time; a
figure is the median of a thing over the median of one sum of the vector, which is the read. Small vectors are repeated
within one measurement; there the figures are those of Python's calls.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from common import console
from record import destinations, keep, machine
from rich.table import Table
from threadpoolctl import threadpool_limits

from projfree import LpBall, SchattenBall
from projfree.numerics.projections import project_rows

SIZES = (10, 1_000, 36_000, 1_000_000)
#: Matrices whose spectrum is decomposed.
SHAPES = ((50, 4), (600, 4), (2_000, 20), (300, 300))
EXPONENTS = (1.0, 1.1, 1.5, 2.0, math.inf)


def tasks(d: int, share: float) -> dict:
    w = np.random.default_rng(0).standard_normal(d)
    found = {"read": lambda: np.add.reduce(w)}
    for p in EXPONENTS:
        ball = LpBall(p, share * LpBall(p, 1.0).norm(w))
        found[f"project, p = {p:g}"] = lambda ball=ball: ball.project(w)
        found[f"lmo, p = {p:g}"] = lambda ball=ball: ball.lmo(w)
        found[f"dual norm, p = {p:g}"] = lambda ball=ball: ball.dual_norm(w)
    return found


def many_rows() -> dict:
    w = np.random.default_rng(0).standard_normal((10_000, 5))
    found = {"read": lambda: np.add.reduce(w, axis=None)}
    return found | {f"project, p = {p:g}": lambda p=p: project_rows(w, p, 0.5) for p in EXPONENTS}


def spectra() -> dict:
    """Decompositions of matrices, whose figures over their shorter sides are `SPECTRUM` of the plan."""
    found = {}
    for shape in SHAPES:
        W = np.random.default_rng(0).standard_normal(shape)
        ball = SchattenBall(1, 0.1 * SchattenBall(1, 1.0).norm(W))
        name = f"{shape[0]:,} x {shape[1]}"
        found[f"read {name}"] = lambda W=W: np.add.reduce(W, axis=None)
        found[f"project {name}"] = lambda W=W, ball=ball: ball.project(W)
    return found


def measure(found: dict, repeat: int, loops: int) -> dict[str, float]:
    """Median seconds of processor time of each task; the first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(repeat + 1):
        for name, task in found.items():
            begun = time.process_time()
            for _ in range(loops):
                task()
            if turn:
                times[name].append((time.process_time() - begun) / loops)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeat", type=int, default=15)
    options.add_argument("--share", type=float, default=0.1)
    destinations(options)
    chosen, info = options.parse_args(), machine()
    # As in every program that has loaded data: memory of this size, once freed, is kept for the next arrays.
    np.ones(4_000_000)
    with threadpool_limits(1):
        columns = {f"{d:,}": measure(tasks(d, chosen.share), chosen.repeat, max(1, 1_000 // d)) for d in SIZES}
        columns["10,000 rows of 5"] = measure(many_rows(), chosen.repeat, 1)
        matrices = measure(spectra(), chosen.repeat, 1)
    table = Table(title=f"microseconds, and in brackets times a read; radius {chosen.share:g} of the norm")
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    for name in columns["10"]:
        cells = [(seconds.get(name), seconds["read"]) for seconds in columns.values()]
        table.add_row(name, *("" if s is None else f"{s * 1e6:,.1f} ({s / read:,.0f})" for s, read in cells))
    console().print(table)
    for rows, outputs in SHAPES:
        name = f"{rows:,} x {outputs}"
        times = matrices[f"project {name}"] / matrices[f"read {name}"]
        print(f"Schatten-1, {name}: {times:,.0f} times a read, {times / min(rows, outputs):,.1f} a singular value")
    reads = [
        {"": name} | {size: None if name not in at else at[name] / at["read"] for size, at in columns.items()}
        for name in columns["10"]
    ]
    payload = {"machine": info, "share": chosen.share, "reads": reads, "seconds": columns, "matrices": matrices}
    keep("projections", payload, chosen)


if __name__ == "__main__":
    main()
