"""The directive ``command``: arguments and options of one subcommand, read from the code of the command itself."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Command(SphinxDirective):
    """``{command} fit`` (or ``data get``) gives its help text, its arguments and its options."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        from typer.main import get_command

        from projfree.cli.app import app

        command: Any = get_command(app)
        for name in self.arguments[0].split():
            command = command.commands[name]
        usage = " ".join(["projfree", *self.arguments[0].split(), *_usage(command)])
        about = [nodes.paragraph(text=part) for part in (command.help or "").split("\n\n") if part.strip()]
        return [
            nodes.literal_block(usage, usage, language="text"),
            *about,
            table(("argument or option", "meaning"), _rows(command)),
        ]


def _usage(command: Any) -> list[str]:
    return [*(name for p in command.params if p.param_type_name == "argument" for name in _names(p)), "[OPTIONS]"]


def _rows(command: Any) -> list[list[str]]:
    """Name and meaning of each argument and option."""
    shown = [p for p in command.params if not getattr(p, "hidden", False) and p.name != "help"]
    return [[", ".join(f"`{name}`" for name in _names(p)), _meaning(p)] for p in shown]


def _names(parameter: Any) -> list[str]:
    if parameter.param_type_name == "argument":
        return [str(parameter.metavar or parameter.name.upper())]
    return [*parameter.opts, *parameter.secondary_opts]


def _meaning(parameter: Any) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split())
    default = parameter.default
    told = default is not None and not callable(default) and default not in (False, True, "", ())
    return f"{text} Default: {default}." if told else text


def table(heads: tuple[str, ...], rows: list[list[str]]) -> nodes.table:
    """A table of docutils from lines of text."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in heads), cols=len(heads))
    group += nodes.thead("", _line(heads))
    group += nodes.tbody("", *(_line(row) for row in rows))
    return nodes.table("", group)


def _line(words: Any) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *_inline(word))) for word in words))


def _inline(text: str) -> list[nodes.Node]:
    """Words, and code between backticks."""
    parts = enumerate(text.split("`"))
    return [nodes.literal(text=part) if k % 2 else nodes.Text(part) for k, part in parts if part]


def _options(app: Any, doctree: nodes.document, page: str) -> None:
    """Mark code with options, whose names a narrow screen must not break at their dashes."""
    for literal in doctree.findall(nodes.literal):
        if re.search(r"(^| )--?[a-z]", literal.astext()):
            literal["classes"].append("option")


def setup(app: Any) -> dict[str, bool]:
    """Make the directive known to Sphinx."""
    app.add_directive("command", Command)
    app.connect("doctree-resolved", _options)
    return {"parallel_read_safe": True}
