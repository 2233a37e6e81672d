"""Tables of Markdown out of the JSON file of a benchmark."""

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
    without
        Keys that the JSON file has and the table leaves out, where every key is shown.
    named
        Headings of columns of solvers, of which the table has the name without the settings, which take much room.
    """

    title: str
    rows: str
    columns: dict[str, str] | None = None
    without: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A heading, what one has to know to read the tables, the command that measures, and the tables."""

    title: str
    about: str
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
    machine = dict(tree["machine"])
    options = f", with the options `{machine.pop('options')}`" if "options" in machine else ""
    software = [machine.pop("software"), *(f"{name} {found}" for name, found in tree.get("versions", {}).items())]
    parts = {"Command": f"`{report.command}`{options}", "Date": machine.pop("date")}
    parts |= {"Machine": "; ".join([machine.pop("processor"), *(f"{k}: {v}" for k, v in machine.items())])}
    parts |= {"Software": ", ".join(software)}
    parts |= {"Settings": shown(tree["settings"])} if "settings" in tree else {}
    texts = ["\n".join(f"- {name}: {text}" for name, text in parts.items())]
    for table in report.tables:
        heads, cells = _cells(table, tree)
        texts += [f"{table.title}:", grid(heads, cells)] if cells else []
    return "\n\n".join(texts) + "\n"


def together(reports: dict[str, Report], trees: dict[str, dict[str, Any]]) -> str:
    """All reports that have results, below their headings."""
    parts = ["<!-- Written by benchmarks/record.py out of the JSON files in this folder. -->\n"]
    for name, report in reports.items():
        if name in trees:
            parts.append(f"## {report.title}\n\n{report.about}\n\n{markdown(report, trees[name])}")
    return "\n".join(parts)


def _cells(table: Shown, tree: dict[str, Any]) -> tuple[tuple[str, ...], list[list[Any]]]:
    rows = found(tree, table.rows) if table.rows.split("/")[0] in tree else []
    if isinstance(rows, dict):
        rows = [{"name": name, "value": value} for name, value in rows.items()]
    rows = rows or []  # a part that was not run
    columns = table.columns or {key: key for row in rows for key in row if key not in table.without}
    # A row of another kind may lack a column that was not asked for by name.
    pick = found if table.columns else lambda row, key: row.get(key, "")
    cells = [{head: pick(row, place) for head, place in columns.items()} for row in rows]
    for row in cells:
        row |= {head: row[head].split("(")[0] for head in table.named}
    return tuple(columns), [list(row.values()) for row in cells]


def grid(heads: tuple[str, ...], rows: list[list[Any]]) -> str:
    """A table of Markdown; numbers stand at the right."""
    right = [bool(rows) and all(isinstance(row[k], int | float | None) for row in rows) for k in range(len(heads))]
    lines = [heads, ["--:" if number else "---" for number in right], *([shown(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
