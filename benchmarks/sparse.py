"""Sparse and wide problems: our time to a certified gap over that of the best peer to the same true suboptimality.

    python benchmarks/sparse.py [--only TEXT] [--quick] [--repeat 3] [--scale 1] [--solver NAME] [--commit]

Ours start from ready `Data`, made anew for every run and not timed. They stop when their certificate says so. Peers
have no such certificate: each is tried at a series of its own tolerances and then timed at the loosest whose answer is
good enough by `Problem.error`, which takes the measure that favours the peer. They get the penalty that belongs to the
radius for free, arrays in the layout they like, and a first run that is not timed. Liblinear is timed at its tolerances
1e-3 and 1e-6 too, whatever gap its answers have there; that gap is in brackets. All runs of a problem are interleaved,
with one thread each; figures are medians. A ratio is judged by the CPU time, which other processes disturb least, and
both times are written down. Constants of our solvers may be tuned on the problems marked by a star; the others judge
them. The last table has seconds of the clock, which must stay below a limit.

Needs `pip install projfree[peers]`; where a peer asks for NumPy 1, an environment of its own. Reference optima are
found once and kept in `benchmarks/scratch/references`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import console, with_one_thread
from record import commit, destinations, machine, save, versions
from sparse_cases import LIBLINEAR, TARGETS, Case, Problem, cases
from sparse_measure import LEVELS, Limits, compare, ours
from sparse_problems import table
from tables import empty

import projfree

PACKAGES = ("scikit-learn", "celer", "skglm", "adelie")
Row = dict[str, Any]


def judged(row: Row) -> Row:
    """The row with its ratios, and whether each meets its target."""
    target = TARGETS[row["family"]]
    for kind, peer, goals in (("", "best", target), ("liblinear ", "liblinear", LIBLINEAR)):
        ratios, good = {}, {}
        for level, goal in zip(map(str, LEVELS), goals, strict=True):
            mine, best = row["ours"][level], row[peer].get(level)
            ratios[level] = mine["cpu"] / best["cpu"] if mine["certified"] and best else None
            good[level] = None if not best else ratios[level] is not None and ratios[level] <= goal
        row |= {f"{kind}ratio": ratios, f"{kind}good": good}
    row["target"] = target
    return row


def show(rows: list[Row]) -> None:
    """Print one line a problem."""
    grid = empty("\nCPU seconds to a certified gap (ours) and to the same true suboptimality (best peer)")
    grid.add_column("\nproblem")
    for level, tol in zip(LEVELS, ("1e-3", "1e-6"), strict=True):
        for name in (f"{level:g}\nours", "\npeer", "\nratio", "\ntarget", "\nbest peer", f"over liblinear\nat {tol}"):
            grid.add_column(name, justify="right", no_wrap="ratio" in name)
    for row in rows:
        grid.add_row(*line(row))
    console().print(grid)


def line(row: Row) -> list[str]:
    """The cells of a problem."""
    cells = [row["problem"] + " *" * row["chosen"]]
    for level, name in enumerate(map(str, LEVELS)):
        mine, best, fixed = row["ours"][name], row["best"][name], row["liblinear"].get(name)
        cells += [
            f"{mine['cpu']:.3f}" if mine["certified"] else f"[red]{mine['gap']:.0e}[/]",
            "-" if best is None else f"{best['cpu']:.3f}",
            coloured(row["ratio"][name], row["good"][name]),
            f"{row['target'][level]:g}",
            "" if best is None else best["name"],
            ""
            if fixed is None
            else coloured(row["liblinear ratio"][name], row["liblinear good"][name]) + f" ({fixed['gap']:.0e})",
        ]
    return cells


def coloured(ratio: float | None, good: bool | None) -> str:
    colour = "dim" if good is None else "green" if good else "red"
    return f"[{colour}]{'-' if ratio is None else format(ratio, '.2f')}[/]"


def solver_of(text: str) -> Any:
    """A solver of ours by its name, with or without settings in brackets."""
    if text == "auto":
        return text
    from projfree import solvers, steps

    known = vars(steps) | vars(solvers) | {name: getattr(projfree, name) for name in projfree.__all__}
    return eval(text if "(" in text else f"{text}()", known)


def measured(case: Case, limits: Limits, scale: float, solver: Any, references: Path) -> Row:
    """All figures of a problem."""
    problem = Problem(case, scale, references)
    return {"problem": case.name, "family": case.family, "chosen": case.chosen} | compare(problem, limits, solver)


def limited(scale: float, solver: Any, references: Path) -> list[Row]:
    """Seconds of the clock of single runs, beside their limits."""
    text, near, rows = table("text B", scale), table("neighbours", scale), slice(0, round(5_000 * scale))
    X, sign = text.X[rows], text.sign[rows]
    model = projfree.ConstrainedClassifier(p=1, radius=100.0)
    many = Problem(Case("lasso", "text A", "squared", "l_1", 5_000), scale, references)
    lasso = projfree.Objective(projfree.Squared(), projfree.as_data(near.X, near.real))
    ball = projfree.LpBall(1, 1e3)
    runs: list[tuple[str, float, Callable[[], Any]]] = [
        (
            "lasso, f* = 0, neighbours",
            5.0,
            lambda: projfree.minimize(lasso, ball, tol=1e-4).status.name,
        ),
        ("lasso, text A, 5,000 nonzeros", np.inf, lambda: ours(many, LEVELS[-1], solver, 60.0)[1]["certified"]),
        (
            "ConstrainedClassifier(p=1, radius=100)",
            1.0,
            lambda: model.fit(X, sign).result_.status.name,
        ),
    ]
    found = []
    for name, limit, run in runs:
        run()  # compiles
        begun = time.perf_counter()
        end = run()
        seconds = time.perf_counter() - begun
        found.append({"problem": name, "seconds": seconds, "limit": limit, "end": end, "good": seconds <= limit})
        console().print(f"{name}: {seconds:.2f} s, limit {limit:g} s, {end}")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="problems whose name contains this; several are separated by |")
    options.add_argument("--quick", action="store_true", help="one repeat, less patience")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--patience", type=float, help="seconds of the clock for ours; more on a busy machine")
    options.add_argument("--scale", type=float, default=1.0, help="of rows and columns of the tables")
    options.add_argument("--solver", default="auto", help="one of ours, such as 'PrimalAveraging()'")
    destinations(options)
    chosen = options.parse_args()
    with_one_thread()
    patience = chosen.patience or (8.0 if chosen.quick else 20.0)
    limits = Limits(1 if chosen.quick else chosen.repeat, patience)
    rows: list[Row] = []
    settings = {"scale": chosen.scale, "repeat": limits.repeat, "quick": chosen.quick, "solver": chosen.solver}
    settings["patience"] = patience
    payload = {"machine": machine(), "versions": versions(*PACKAGES), "settings": settings, "problems": rows}
    asked = [case for case in cases() if any(part in case.name for part in chosen.only.split("|"))]
    try:
        for case in asked:
            row = measured(case, limits, chosen.scale, solver_of(chosen.solver), chosen.out / "references")
            rows.append(judged(row))
            console().print("  ".join(line(row)))
        if not chosen.only:
            payload["limits"] = limited(chosen.scale, solver_of(chosen.solver), chosen.out / "references")
    finally:  # what was measured before an interrupt or a wrong bound is kept
        save(chosen.out, "sparse", payload)
    show(rows)
    kinds = ("good", "liblinear good")
    good = [good for row in rows for kind in kinds for good in row[kind].values() if good is not None]
    console().print(f"{sum(good)} of {len(good)} targets met")
    if chosen.commit:
        commit("sparse", payload)


if __name__ == "__main__":
    main()
