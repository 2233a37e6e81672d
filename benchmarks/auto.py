"""Is the plan the right one? Every problem of a fixed grid, by every solver, to a certified relative gap.

    python benchmarks/auto.py [--tol 1e-4] [--only TEXT] [--every 1] [--limit 10] [--repeat 2] [--large] [--commit]

For each problem the seconds of the plan's solver over those of the best one; problems that the best one does in under
50 ms are shown but not judged. Solvers are interleaved; the figure is the smallest of the repeats.
"""

from __future__ import annotations

import argparse
import math
import time

from common import console
from grid import cases, large
from record import destinations, keep, machine
from rich.table import Table

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    ConstrainedNewton,
    CorrectivePrimalAveraging,
    Direct,
    FrankWolfe,
    HessianFreeNewton,
    PairwiseFrankWolfe,
    WorkingSet,
    minimize,
    plan,
)
from projfree.solvers.choose import MOST_PARAMETERS

CANDIDATES = (
    Direct(),
    ConstrainedNewton(),
    HessianFreeNewton(),
    WorkingSet(),
    PairwiseFrankWolfe(),
    AcceleratedProjectedGradient(BacktrackingGradient()),
    CorrectivePrimalAveraging(),
    FrankWolfe(),
)

JUDGED, MOST = 0.05, 1.5


def seconds(build, solver, tol, limit):
    """Seconds until the gap is certified, infinite where it is not within the limit; data are read anew."""
    f, ball = build()
    begun = time.perf_counter()
    result = minimize(f, ball, solver, tol=tol, max_iter=10**6, time_limit=limit, record=0)
    spent = time.perf_counter() - begun
    return spent if result.status.converged else math.inf


def applies(solver, f, ball):
    """Whether a solver takes the problem, and forms no matrix that nobody would wait for."""
    try:
        solver.check(f, ball)
    except (TypeError, ValueError):
        return False
    side = {Direct: f.shape[0], ConstrainedNewton: math.prod(f.shape)}.get(type(solver), 0)
    return side <= MOST_PARAMETERS


def judge(case, tol, limit, repeat):
    f, ball = case.build()
    made = plan(f, ball)
    solvers = {repr(solver): solver for solver in (made.solver, *CANDIDATES) if applies(solver, f, ball)}
    times = dict.fromkeys(solvers, math.inf)
    seconds(case.build, made.solver, 0.1, limit)  # loads what the first run of a process has to load
    for _ in range(repeat):
        for name, solver in solvers.items():
            best = min(times.values())
            # Nobody waits for a solver that has already taken ten times as long as another.
            times[name] = min(times[name], seconds(case.build, solver, tol, min(limit, 10 * best + 0.5)))
    return repr(made.solver), times


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tol", type=float, default=1e-4)
    options.add_argument("--only", default="")
    options.add_argument("--every", type=int, default=1, help="one of so many problems; all of them take an hour")
    options.add_argument("--limit", type=float, default=10.0)
    options.add_argument("--repeat", type=int, default=2)
    destinations(options)
    options.add_argument("--large", action="store_true", help="sparse logistic regression up to 500,000 x 20,000")
    chosen, info = options.parse_args(), machine()
    table = Table(title=f"the plan against the best solver, certified {chosen.tol:g}")
    for name in ("problem", "planned", "s", "best", "s", "ratio"):
        table.add_column(name, justify="right" if name in ("s", "ratio") else "left")
    rows = []
    asked = [case for case in (large() if chosen.large else cases()) if chosen.only in case.name]
    for case in asked[:: chosen.every]:
        planned, times = judge(case, chosen.tol, chosen.limit, chosen.repeat)
        best = min(times, key=times.get)
        ratio = times[planned] / times[best] if math.isfinite(times[best]) else math.nan
        counts = times[best] >= JUDGED
        rows.append(
            {
                "problem": case.name,
                "planned": planned,
                "best": best,
                "ratio": ratio,
                "judged": counts,
                "seconds": times,
            }
        )
        colour = "dim" if not counts else "green" if ratio <= MOST else "red"
        table.add_row(
            case.name,
            planned.split("(")[0],
            f"{times[planned]:.3f}",
            best.split("(")[0],
            f"{times[best]:.3f}",
            f"[{colour}]{ratio:.2f}[/]",
        )
        print(
            case.name,
            planned.split("(")[0],
            f"{ratio:.2f}",
            {k.split("(")[0]: round(v, 3) for k, v in times.items()},
            flush=True,
        )
    console().print(table)
    judged = [row for row in rows if row["judged"]]
    good = sum(row["ratio"] <= MOST for row in judged)
    console().print(f"{good} of {len(judged)} judged problems within {MOST} of the best solver")
    keep("auto", {"machine": info, "tol": chosen.tol, "problems": rows}, chosen)


if __name__ == "__main__":
    main()
