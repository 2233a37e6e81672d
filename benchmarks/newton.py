"""Second-order and exact solvers against their targets, as ratios in one run.

    python benchmarks/newton.py [--quick] [--repeat 3] [--commit]

Adult (48,842 x 108, one-hot, with intercept) for logistic regression, the full-size stand-in of the year data for least
squares. rho is the radius over R_p, the smallest radius whose minimum is within 1e-3 of the infimum; R_p is printed.
`peers.py` compares with other packages.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from common import console
from record import destinations, keep, machine
from rich.table import Table

from projfree import ConstrainedNewton, Logistic, LpBall, Objective, Squared, as_data, datasets, minimize, path

RHOS = (0.3, 0.5, 0.9, 1.0, 1.5)


def timed(call, repeat):
    times, out = [], None
    for _ in range(repeat):
        begun = time.perf_counter()
        out = call()
        times.append(time.perf_counter() - begun)
    return float(np.median(times)), out


def reference_radius(f, p, infimum):
    low, high = 0.1, 1_000.0
    for _ in range(14):
        middle = math.sqrt(low * high)
        good = minimize(f, LpBall(p, middle), tol=1e-5).value <= 1.001 * infimum
        low, high = (low, middle) if good else (middle, high)
    return high


def logistic(quick, repeat):
    adult = datasets.load_adult()
    X, y = adult.X, adult.y
    data = as_data(X, y)
    plain = Objective(Logistic(), data, fit_intercept=True)
    infimum = minimize(plain, LpBall(2, 1_000.0), tol=1e-6, max_iter=100).value
    rows = []
    for p in (2.0, 1.5, 1.1):
        R = reference_radius(plain, p, infimum)
        for rho in RHOS:
            f, ball = Objective(Logistic(), data, fit_intercept=True), LpBall(p, rho * R)
            spent, result = timed(lambda: minimize(f, ball, ConstrainedNewton(), tol=1e-8), repeat)
            row = {
                "p": p,
                "rho": rho,
                "R_p": R,
                "seconds": spent,
                "gap": result.relative_gap,
                "status": result.status.name,
                "passes": result.n_passes,
            }
            rows.append(row)
    return rows


def squares(quick, repeat):
    year = datasets.year_stand_in(100_000 if quick else 515_345)
    data = as_data(year.X, year.y, centre=True, scale=True)
    rows = []
    for p in (1.05, 1.1, 1.5, 2.0):
        f = Objective(Squared(), data, fit_intercept=True)
        wide = minimize(f, LpBall(2, 1e6), tol=1e-9)
        ball = LpBall(p, 0.5 * LpBall(p, 1.0).norm(wide.w))
        f = Objective(Squared(), data, fit_intercept=True)
        spent, result = timed(lambda f=f, ball=ball: minimize(f, ball, tol=1e-12), 1)
        rows.append(
            {
                "p": p,
                "seconds": spent,
                "passes": result.n_passes,
                "gap": result.relative_gap,
                "status": result.status.name,
            }
        )
    return rows


def paths(quick, repeat):
    adult, rows = datasets.load_adult(), []
    year = datasets.load_year_sample()
    year = year if quick else datasets.year_stand_in(515_345)
    cases = {"squared": (Squared(), year.X, year.y), "logistic": (Logistic(), adult.X, adult.y)}
    for name, (loss, X, y) in cases.items():
        data = as_data(X, y, centre=True, scale=True)
        for p in (2.0, 1.5):
            radii = np.geomspace(0.05, 20.0, 50) * (1.0 if name == "logistic" else np.std(y))
            whole, found = timed(
                lambda: path(Objective(loss, data, fit_intercept=True), LpBall(p, 1.0), radii, tol=1e-6), repeat
            )
            cold = max(
                timed(lambda r=r: minimize(Objective(loss, data, fit_intercept=True), LpBall(p, r), tol=1e-6), repeat)[
                    0
                ]
                for r in radii[::7]
            )
            good = all(result.status.converged for result in found.results)
            rows.append(
                {"loss": name, "p": p, "ratio": whole / cold, "path": whole, "hardest": cold, "certified": good}
            )
    return rows


def show(title, rows):
    table = Table(title=title)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(f"{row[n]:.4g}" if isinstance(row.get(n), float) else str(row.get(n, "")) for n in names))
    console().print(table)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--repeat", type=int, default=3)
    destinations(options)
    chosen = options.parse_args()
    info, found = machine(), {}
    for title, run in (
        ("logistic on Adult to a certified 1e-8", logistic),
        (
            "least squares, stand-in for the year data, to 1e-12 (passes: Gram and exit check included)",
            squares,
        ),
        ("50 radii, certified 1e-6 each, over the hardest cold solution", paths),
    ):
        found[run.__name__] = run(chosen.quick, chosen.repeat)
        show(title, found[run.__name__])
    keep("newton", {"machine": info, **found}, chosen)


if __name__ == "__main__":
    main()
