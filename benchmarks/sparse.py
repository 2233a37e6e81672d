"""Sparse and wide problems: our time to a certified gap over that of the best peer to the same true suboptimality.

    python benchmarks/sparse.py [--only TEXT] [--quick] [--repeat 3] [--scale 1] [--solver NAME] [--commit]

Ours start from ready `Data`, made anew for every run and not timed; its making is a column of its own, beside
scikit-learn's validation of the same table. They stop when their certificate says so. Peers have no such certificate:
each is tried at a series of its own tolerances and then timed at the loosest whose answer is good enough by
`Problem.error`, which takes the measure that favours the peer. They get the penalty that belongs to the radius for
free, arrays in the layout they like, and a first run that is not timed. All runs of a problem are interleaved, with one
thread each; figures are medians. A ratio is judged by the CPU time, which other processes disturb least, and both times
are written down. Where the minimum is zero nothing is judged. Memory is the growth of the resident set while ours runs
at the tightest level (Linux only).

Needs `pip install projfree[peers]`; where a peer asks for NumPy 1, an environment of its own. Reference optima are
found once, which takes minutes for the paths, and kept in `benchmarks/scratch/references`. A quick run leaves out peers
that are seldom the best (`Peer.spare`), so that its ratios can only be lower than those of a run that is judged.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from common import console, with_one_thread
from record import commit, destinations, machine, save, versions
from sparse_cases import TARGETS, Case, Problem, cases
from sparse_measure import LEVELS, Limits, compare
from tables import empty

import projfree

#: Our as_data may take so many times the validation of scikit-learn.
CONVERSION = 2.0
#: A minimum below this share of the value at zero is called zero.
ZERO = 1e-6
PACKAGES = ("scikit-learn", "celer", "skglm", "adelie", "glum")
Row = dict[str, Any]


def judged(row: Row) -> Row:
    """The row with its ratios, and whether each meets its target."""
    target, zero = TARGETS.get(row["family"]), row["optimum"] is not None and row["optimum"] <= ZERO * row["at zero"]
    for level, name in enumerate(map(str, LEVELS)):
        ours, best = row["ours"][name], row["best"][name]
        ratio = ours["cpu"] / best["cpu"] if ours["certified"] and best is not None else None
        judge = target is not None and not zero and best is not None
        good = None if not judge else ratio is not None and ratio <= target[level]
        wall = ours["wall"] / best["wall"] if ratio is not None else None
        row["ratio"] = row.get("ratio", {}) | {name: ratio}
        row["wall ratio"] = row.get("wall ratio", {}) | {name: wall}
        row["good"] = row.get("good", {}) | {name: good}
    row["target"] = target
    return row


def show(rows: list[Row]) -> None:
    """Print one line a problem."""
    table = empty("\nCPU seconds to a certified gap (ours) and to the same true suboptimality (best peer)")
    table.add_column("\nproblem")
    for level in LEVELS:
        table.add_column(f"{level:g}\nours", justify="right")
        table.add_column("\npeer", justify="right")
        table.add_column("\nratio", justify="right", no_wrap=True)
        table.add_column("\ntarget", justify="right", style="dim")
        table.add_column("\nbest peer", style="dim")
    table.add_column("as_data\nratio", justify="right")
    table.add_column("memory\nMB", justify="right", style="dim")
    for row in rows:
        table.add_row(*line(row))
    console().print(table)


def line(row: Row) -> list[str]:
    """The cells of a problem."""
    cells = [row["problem"]]
    for level, name in enumerate(map(str, LEVELS)):
        ours, best, good = row["ours"][name], row["best"][name], row["good"][name]
        colour = "dim" if good is None else "green" if good else "red"
        ratio = row["ratio"][name]
        cells += [
            f"{ours['cpu']:.3f}" if ours["certified"] else f"[red]{ours['gap']:.0e}[/]",
            "-" if best is None else f"{best['cpu']:.3f}",
            f"[{colour}]{'-' if ratio is None else format(ratio, '.2f')}[/]",
            "" if row["target"] is None else f"{row['target'][level]:g}",
            "" if best is None else best["name"],
        ]
    as_data = row["as_data"]["ours"] / row["as_data"]["sklearn"]
    cells.append(f"[{'green' if as_data <= CONVERSION else 'red'}]{as_data:.2f}[/]")
    return [*cells, "" if row["memory"] is None else f"{row['memory'] / 1e6:.0f}"]


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
    zero = problem.f.value(problem.f.point(np.zeros(problem.f.shape)))
    return {"problem": case.name, "family": case.family, "at zero": zero} | compare(problem, limits, solver)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="problems whose name contains this; several are separated by |")
    options.add_argument("--quick", action="store_true", help="one repeat, fewer peers, less patience")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--patience", type=float, help="seconds of the clock for ours; more on a busy machine")
    options.add_argument("--scale", type=float, default=1.0, help="of rows and columns of the tables")
    options.add_argument("--solver", default="auto", help="one of ours, such as 'PrimalAveraging()'")
    destinations(options)
    chosen = options.parse_args()
    with_one_thread()
    patience = chosen.patience or (8.0 if chosen.quick else 20.0)
    limits = Limits(1 if chosen.quick else chosen.repeat, patience, chosen.quick)
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
    finally:  # what was measured before an interrupt or a wrong bound is kept
        save(chosen.out, "sparse", payload)
    show(rows)
    good = [good for row in rows for good in row["good"].values() if good is not None]
    console().print(f"{sum(good)} of {len(good)} targets met")
    if chosen.commit:
        commit("sparse", payload)


if __name__ == "__main__":
    main()
