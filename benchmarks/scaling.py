"""How the time of a certified solution grows with rows, features and the exponent of the norm.

    python benchmarks/scaling.py [--quick] [--repeat 3] [--commit]

Standard normal features, half of the norm of the coefficients behind the targets, certified 1e-6, the planned solver.
The exponent is the slope of log time over log size.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import console
from record import destinations, keep, machine
from rich.table import Table

from projfree import Logistic, LpBall, Objective, Squared, as_data, minimize

ROWS, COLUMNS = (10_000, 30_000, 100_000, 300_000), (25, 50, 100, 200, 400)
NAMES = ("loss", "along", "sizes", "seconds", "exponent", "solver")
EXPONENTS = (1.0, 1.05, 1.1, 1.2, 1.5, 1.8, 2.0)


def seconds(loss, n, d, p, repeat):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d) / np.sqrt(d)
    u = X @ w
    y = u + rng.standard_normal(n) if loss == "squared" else np.where(u + rng.logistic(size=n) > 0, 1.0, -1.0)
    f = Objective(Squared() if loss == "squared" else Logistic(), as_data(X, y))
    ball = LpBall(p, 1.0)
    ball = ball.resized(0.5 * ball.norm(w))
    times = []
    for _ in range(repeat + 1):
        f = Objective(f.loss, f.data)  # forgets its Gram matrix
        begun = time.perf_counter()
        result = minimize(f, ball, tol=1e-6)
        times.append(time.perf_counter() - begun)
        assert result.status.converged
    return float(np.median(times[1:])), type(result.solver).__name__


def series(loss, name, sizes, make, repeat):
    rows = []
    for size in sizes:
        spent, solver = seconds(loss, *make(size), repeat)
        rows.append({"loss": loss, "along": name, "size": size, "seconds": spent, "solver": solver})
    return rows


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--repeat", type=int, default=3)
    destinations(options)
    chosen = options.parse_args()
    rows, columns = (ROWS[:3], COLUMNS[:4]) if chosen.quick else (ROWS, COLUMNS)
    info, found = machine(), []
    for loss in ("squared", "logistic"):
        found += series(loss, "rows", rows, lambda n: (n, 50, 1.5), chosen.repeat)
        found += series(loss, "columns", columns, lambda d: (20_000, d, 1.5), chosen.repeat)
        found += series(loss, "p", EXPONENTS, lambda p: (20_000, 50, p), chosen.repeat)
    table = Table(title="seconds to a certified 1e-6 by the planned solver")
    for name in NAMES:
        table.add_column(name)
    growth = []
    for loss in ("squared", "logistic"):
        for along in ("rows", "columns", "p"):
            part = [row for row in found if row["loss"] == loss and row["along"] == along]
            sizes, times = [row["size"] for row in part], [row["seconds"] for row in part]
            slope = "" if along == "p" else f"{np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}"
            solvers = ", ".join(sorted({row["solver"] for row in part}))
            cells = ", ".join(f"{s:g}" for s in sizes), ", ".join(f"{t:.4f}" for t in times), slope, solvers
            growth.append(dict(zip(NAMES, (loss, along, *cells), strict=True)))
            table.add_row(*growth[-1].values())
    console().print(table)
    keep("scaling", {"machine": info, "series": found, "growth": growth}, chosen)


if __name__ == "__main__":
    main()
