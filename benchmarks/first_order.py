"""Iterations, passes and time of every solver to a certified 2 %, 1e-4 and 1e-6, on real data.

    python benchmarks/first_order.py             # everything, less than a quarter of an hour
    python benchmarks/first_order.py --quick     # a few solvers on the small data set, less than a minute
    python benchmarks/first_order.py --data adult --solvers "PA,FISTA" --p 2 --rho 0.9

A level counts as reached at the first iteration whose best point and best bound are that close, so no solver is
credited with an accuracy that it could not prove; "true" is the iteration at which the error against a reference
optimum was in fact below the level (for solvers that sample rows, as far as values are known). A dash means that the
run ended at its cap. Passes are rows read / n. Time is that of the solver alone.

rho is the radius in units of R_p, the norm of the unconstrained minimiser or, for Adult, which has none, the smallest
radius whose optimum is within 1e-3 of the infimum.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
from common import NAMES, console, reached
from problems import Problem, Target, load
from record import destinations, keep, machine
from rich.markup import escape
from solvers import QUICK, SOLVERS
from tables import by_problem, by_solver

from projfree import LpBall, minimize

#: Passes and seconds that one run may take, by data set: on a quiet machine the passes end it.
CAPS = {"year": (3000.0, 3.0), "adult": (400.0, 4.0)}
#: No run may take more than this many fair shares of the time left, so that the end comes whatever the machine.
SHARES = 1.25


def run(problem: Problem, target: Target, name: str, passes: float, seconds: float) -> dict[str, Any]:
    """One solver on one problem, up to its caps."""
    result = minimize(
        problem.objective(),
        target.ball,
        SOLVERS[name],
        tol=1e-6,
        max_iter=10**9,
        time_limit=seconds,
        callbacks=[lambda state: state.passes >= passes],
    )
    known = target.optimum.gap <= 1e-7 * target.optimum.value
    return {
        "solver": name,
        "levels": reached(result, target.optimum.value if known else None),
        "relative_gap": result.relative_gap,
        "iterations": result.n_iter,
        "passes": result.n_passes,
        "seconds": result.seconds,
        "caps": [passes, seconds],
        "status": result.status.name,
    }


def summary(runs: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """For each solver the problems certified at each level, and the median passes if at least half of them were."""
    rows = []
    for name in names:
        own = [row["levels"] for row in runs if row["solver"] == name]
        row: dict[str, Any] = {"solver": name, "problems": len(own)}
        for level in NAMES.values():
            passes = [(levels[level]["certified"] or {}).get("passes", math.inf) for levels in own]
            middle = float(np.median(passes))
            row[level] = sum(map(math.isfinite, passes))
            row[f"passes to {level}"] = middle if math.isfinite(middle) else "not reached"
        rows.append(row)
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="seven solvers, the small data set, p = 2 and 1.1")
    parser.add_argument("--data", default="year,adult", help="data sets, of year and adult")
    parser.add_argument("--solvers", default="", help="parts of the names of the solvers to run, e.g. 'PA,FISTA'")
    parser.add_argument("--p", default="2,1.5,1.1")
    parser.add_argument("--rho", default="0.5,0.9,1,2")
    parser.add_argument("--passes", type=float, help="cap of one run; by default 3000 (year) and 400 (adult)")
    parser.add_argument("--seconds", type=float, help="cap of one run; by default 3 (year) and 4 (adult)")
    parser.add_argument("--budget", type=float, default=13.0, help="minutes for all runs together")
    destinations(parser)
    args = parser.parse_args()
    if args.quick:
        args.data, args.p, args.rho, args.seconds = "year", "2,1.1", "0.5,0.9,1", args.seconds or 1.0
    parts = [part.strip().lower() for part in args.solvers.split(",") if part.strip()]
    names = QUICK if args.quick and not parts else SOLVERS
    args.names = [name for name in names if not parts or any(part in name.lower() for part in parts)]
    if not args.names:
        parser.error(f"--solvers {args.solvers!r} names none of: {', '.join(SOLVERS)}")
    if unknown := set(args.data.split(",")) - set(CAPS):
        parser.error(f"--data must name year or adult, got {', '.join(sorted(unknown))}")
    return args


def main() -> None:
    args, out, begun = arguments(), console(), time.monotonic()
    info = machine()
    for name, text in info.items():
        out.print(f"[dim]{name:>10}[/]  {escape(text)}", highlight=False)
    ps, rhos = ([float(x) for x in text.split(",")] for text in (args.p, args.rho))
    keys = args.data.split(",")
    left, records = len(keys) * len(ps) * len(rhos) * len(args.names), []
    for key in keys:
        problem = load(key)
        out.print(f"\n[bold]{problem.title}[/], intercept minimised out", highlight=False)
        minimize(problem.objective(), LpBall(2, 1.0), max_iter=2)  # compiles what it needs
        rows = []
        for target in problem.targets(ps, rhos):
            measured = []
            for name in args.names:
                fair = SHARES * max(1.0, 60.0 * args.budget - (time.monotonic() - begun)) / left
                passes, seconds = CAPS[key]
                caps = args.passes or passes, min(args.seconds or seconds, fair)
                measured.append(run(problem, target, name, *caps))
                left -= 1
            place = {"data": key, "p": target.p, "rho": target.rho, "R": target.unit, "radius": target.ball.radius}
            rows += [{**place, "best": target.optimum.value, "best_gap": target.optimum.gap, **row} for row in measured]
            out.print(by_problem(target, measured))
        for table in by_solver(rows, args.names):
            out.print(table)
        records += rows
    payload = {"machine": info, "summary": summary(records, args.names), "runs": records}
    path = keep("first_order", payload, args)
    out.print(f"\n{len(records)} runs in {time.monotonic() - begun:.0f} s; written to {path}", highlight=False)


if __name__ == "__main__":
    main()
