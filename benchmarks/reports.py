"""What is shown of the results of each benchmark: its command, and tables out of its JSON file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shown:
    """A table.

    Attributes
    ----------
    title
        What the numbers are.
    rows
        The place of the rows in the JSON tree, such as ``speed/rows``. A mapping becomes rows with ``name`` and
        ``value``.
    columns
        The place of each cell in its row, by its heading; by default every key of the rows.
    """

    title: str
    rows: str
    columns: dict[str, str] | None = None


@dataclass(frozen=True)
class Report:
    """The command that measures, and the tables that show what it found."""

    command: str
    tables: tuple[Shown, ...]


def found(tree: Any, place: str) -> Any:
    """The part of a JSON tree that a place such as ``speed/rows`` names; None where a peer is missing."""
    for name in filter(None, place.split("/")):
        if tree is None:
            return None
        tree = tree[int(name)] if isinstance(tree, list) else tree[name]
    return tree


def shown(value: Any) -> str:
    """A cell: four digits of a number, words as they are."""
    if value is None:
        return "missing"
    if isinstance(value, dict):  # settings, such as a norm
        return ", ".join(f"{name} = {shown(inner)}" for name, inner in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("|", "\\|")


def markdown(report: Report, tree: dict[str, Any]) -> str:
    """The command, the machine and the tables of a benchmark."""
    about = {"command": f"`{report.command}`"} | tree["machine"] | tree.get("versions", {})
    about |= {"settings": tree["settings"]} if "settings" in tree else {}
    parts = [grid(("", "machine and software"), [[name, value] for name, value in about.items()])]
    for table in report.tables:
        heads, cells = _cells(table, tree)
        parts += [f"{table.title}:", grid(heads, cells)]
    return "\n\n".join(parts) + "\n"


def _cells(table: Shown, tree: dict[str, Any]) -> tuple[tuple[str, ...], list[list[Any]]]:
    rows = found(tree, table.rows) or []
    if isinstance(rows, dict):
        rows = [{"name": name, "value": value} for name, value in rows.items()]
    columns = table.columns or {key: key for row in rows for key in row}
    # A row of another kind may lack a column that was not asked for by name.
    pick = found if table.columns else lambda row, key: row.get(key, "")
    return tuple(columns), [[pick(row, place) for place in columns.values()] for row in rows]


def grid(heads: tuple[str, ...], rows: list[list[Any]]) -> str:
    """A table of Markdown; numbers stand at the right."""
    right = [bool(rows) and all(isinstance(row[k], int | float | None) for row in rows) for k in range(len(heads))]
    lines = [heads, ["--:" if number else "---" for number in right], *([shown(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _sparse(level: str) -> dict[str, str]:
    place = {"1e-4": "0.0001", "1e-7": "1e-07"}[level]
    sizes = {"problem": "problem", "rows": "n", "columns": "d"}
    peer = {"best peer": f"best/{place}/name", "its time, s": f"best/{place}/cpu", "ratio": f"ratio/{place}"}
    return sizes | {"ours, s": f"ours/{place}/cpu"} | peer


REPORTS = {
    "sparse": Report(
        "python benchmarks/sparse.py --commit",
        tuple(Shown(f"CPU seconds to a relative error of {at}", "problems", _sparse(at)) for at in ("1e-7", "1e-4")),
    ),
    "plan": Report(
        "python benchmarks/plan_fit.py --commit",
        (
            Shown(
                "The time of the chosen solver over that of the best one",
                "present",
                {
                    "half": "name",
                    "problems": "value/problems",
                    "share within 1.5": "value/good",
                    "geometric mean": "value/mean",
                    "largest": "value/worst",
                },
            ),
        ),
    ),
    "defaults": Report(
        "python benchmarks/defaults.py --commit",
        (
            Shown(
                "Scores on held-out rows, R2 or accuracy",
                "scores",
                {
                    "data": "data",
                    "kind": "kind",
                    "norm": "norm",
                    "ours": "ours",
                    "best radius": "best",
                    "scikit-learn": "scikit-learn",
                },
            ),
            Shown(
                "Processor time of a default fit over that of a fit with the same radius",
                "costs",
                {"model": "model", "rows": "rows", "features": "features", "p": "p", "ratio": "cost"},
            ),
        ),
    ),
    "dask": Report(
        "make bench-dask",
        (
            Shown(
                "Seconds of a tangent, in memory and as a round on one and two workers",
                "sizes",
                {
                    "rows": "rows",
                    "memory": "memory",
                    "1 worker": "1 workers",
                    "2 workers": "2 workers",
                    "half of the rows on 1": "half on 1",
                    "efficiency": "weak",
                    "efficiency of plain reading": "machine",
                },
            ),
            Shown("Seconds of a round over partitions of a few rows", "overhead", {"partitions": "name", "s": "value"}),
        ),
    ),
}
REPORTS |= {
    "small": Report(
        "python benchmarks/small.py --commit",
        (
            Shown(
                "What small problems cost",
                "figures",
                {"what": "name", "figure": "value/figure", "target": "value/target", "behind it": "value/behind"},
            ),
        ),
    ),
    "passes": Report(
        "python benchmarks/passes.py --commit",
        (Shown("Times of a tangent over those of one read of the table, unless said otherwise", "ratios"),),
    ),
    "projections": Report(
        "python benchmarks/projections.py --commit",
        (Shown("Processor time over that of one sum of the vector, by its length", "reads"),),
    ),
    "scaling": Report(
        "python benchmarks/scaling.py --commit",
        (Shown("Seconds to a certified 1e-6 by the planned solver, and the exponent of growth", "growth"),),
    ),
    "newton": Report(
        "python benchmarks/newton.py --commit",
        (
            Shown("Logistic regression on Adult to a certified 1e-8", "logistic"),
            Shown("Least squares on the stand-in for the year data, to 1e-12", "squares"),
            Shown("Paths of 50 radii, a certified 1e-6 each, over the hardest solution from scratch", "paths"),
        ),
    ),
    "first_order": Report(
        "python benchmarks/first_order.py --commit",
        (Shown("Problems that each solver certified to a level, and its median passes to it", "summary"),),
    ),
    "auto": Report(
        "python benchmarks/auto.py --commit",
        (
            Shown(
                "Seconds of the planned solver over those of the best one; under 50 ms not judged",
                "problems",
                {"problem": "problem", "planned": "planned", "best": "best", "ratio": "ratio", "judged": "judged"},
            ),
        ),
    ),
    "peers": Report(
        "python benchmarks/peers.py --commit",
        (
            Shown(
                "Seconds of the processor to a relative error",
                "rows",
                {"problem": "problem", "method": "method"}
                | {level: f"seconds/{level}" for level in ("1e-2", "1e-4", "1e-6")},
            ),
        ),
    ),
    "estimators": Report(
        "python benchmarks/estimators.py --commit",
        (
            Shown("Searches of a classifier on Adult, 20 values x 5 folds", "speed"),
            Shown("Searches of regressors, 24 values x 5 folds", "search"),
            Shown("Mean absolute errors on held-out songs, without and with outliers in the training years", "robust"),
        ),
    ),
    "school": Report("python benchmarks/school.py --commit", (Shown("Test explained variance on School", "methods"),)),
    "completion": Report(
        "python benchmarks/completion.py rmse 1m --seeds 0 1 2 3 4 --method NAME --commit",
        (Shown("Mean RMSE over the seeds of the split", "results"),),
    ),
}
