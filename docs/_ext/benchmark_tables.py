"""The directive ``benchmark``: a table out of a committed JSON file, so that no page holds a measured number itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

COMMITTED = Path(__file__).parents[2] / "benchmarks" / "committed"


def found(tree: Any, place: str) -> Any:
    """The part of a JSON tree that a place such as ``speed/rows`` names."""
    for name in filter(None, place.split("/")):
        if tree is None:  # a peer that is missing
            return None
        tree = tree[int(name)] if isinstance(tree, list) else tree[name]
    return tree


def shown(value: Any) -> str:
    """A cell: four digits of a number, words as they are."""
    if value is None:
        return "missing"
    if isinstance(value, dict):  # settings, such as a norm
        return ", ".join(f"{name} = {shown(inner)}" for name, inner in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Benchmark(SphinxDirective):
    """``{benchmark} file.json`` with ``rows``, a place in the file, and ``columns``: key = heading; key = heading."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"rows": directives.unchanged, "columns": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        path = COMMITTED / self.arguments[0]
        self.env.note_dependency(str(path))
        rows = found(json.loads(path.read_text(encoding="utf-8")), self.options.get("rows", ""))
        if isinstance(rows, dict):
            rows = [{"name": name, "value": value} for name, value in rows.items()]
        pairs = [part.split("=") for part in self.options["columns"].split(";")]
        keys, heads = zip(*((key.strip(), head.strip()) for key, head in pairs), strict=True)
        return [table(heads, [[shown(found(row, key)) for key in keys] for row in rows])]


def table(heads: tuple[str, ...], rows: list[list[Any]]) -> nodes.table:
    """A table of docutils from words, or from nodes that stand in a line."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in heads), cols=len(heads))
    group += nodes.thead("", _row(heads))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return nodes.table("", group)


def _row(words: Any) -> nodes.row:
    parts = (nodes.Text(word) if isinstance(word, str) else word for word in words)
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", part)) for part in parts))


def setup(app: Any) -> dict[str, bool]:
    """Make the directive known to Sphinx."""
    app.add_directive("benchmark", Benchmark)
    return {"parallel_read_safe": True}
