"""The tables of the benchmark of first-order solvers."""

from __future__ import annotations

from typing import Any

from common import NAMES, shown_count, shown_seconds
from problems import Target
from rich import box
from rich.table import Table
from rich.text import Text

Row = dict[str, Any]


def empty(title: str) -> Table:
    """A table in the style of all of them."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,  # the box itself leaves one space between columns
        show_edge=False,
    )


def by_problem(target: Target, rows: list[Row]) -> Table:
    """All solvers on one problem: iterations, passes and time to each level."""
    p, best = target.p, target.optimum.value
    radius = f"radius {target.ball.radius:.5g} (R_{p:g} = {target.unit:.5g})"
    table = empty(f"\nl_{p:g}, rho = {target.rho:g}: {radius}, f* = {best:.9g}")
    table.add_column("\nsolver", no_wrap=True, min_width=18)
    for name in NAMES.values():
        table.add_column(f"{name}\niter", justify="right", no_wrap=True, min_width=8)
        table.add_column("\npasses", justify="right", no_wrap=True, style="dim")
        table.add_column("\nsec", justify="right", no_wrap=True, min_width=6)
        table.add_column("\n(true)", justify="right", no_wrap=True, style="dim")
    table.add_column("gap at\nthe end", justify="right", no_wrap=True, style="dim", min_width=9)
    fastest = {name: _fastest(rows, name) for name in NAMES.values()}
    for row in rows:
        cells: list[str | Text] = []
        for name in NAMES.values():
            certified, true = row["levels"][name]["certified"] or {}, row["levels"][name]["true"]
            counts = [shown_count(certified.get(key)) for key in ("iteration", "passes")]
            cells += [*counts, _time(row, name, fastest[name]), f"({true:,})" if true else "-"]
        table.add_row(row["solver"], *cells, f"{row['relative_gap']:.1e}")
    return table


def by_solver(rows: list[Row], names: list[str]) -> list[Table]:
    """One table a level: solver time of every solver on every problem."""
    places = list(dict.fromkeys((row["p"], row["rho"]) for row in rows))
    found = {(row["solver"], row["p"], row["rho"]): row for row in rows}
    tables = []
    for level in NAMES.values():
        table = empty(f"\nSeconds to a certified {level}")
        table.add_column("  p =\nrho =", no_wrap=True, min_width=18)
        for i, (p, rho) in enumerate(places):
            new = i == 0 or places[i - 1][0] != p
            table.add_column(f"{p:g}\n{rho:g}" if new else f"\n{rho:g}", justify="right", no_wrap=True, min_width=7)
        fastest = {place: _fastest([found[name, *place] for name in names], level) for place in places}
        for name in names:
            table.add_row(name, *(_time(found[name, *place], level, fastest[place]) for place in places))
        tables.append(table)
    return tables


def _seconds(row: Row, level: str) -> float | None:
    certified = row["levels"][level]["certified"]
    return None if certified is None else certified["seconds"]


def _fastest(rows: list[Row], level: str) -> float:
    return min((s for row in rows if (s := _seconds(row, level)) is not None), default=float("inf"))


def _time(row: Row, level: str, fastest: float) -> Text:
    seconds = _seconds(row, level)
    return Text(shown_seconds(seconds), style="bold green" if seconds is not None and seconds <= fastest else "")
