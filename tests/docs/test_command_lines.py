"""Command lines on the pages and in the README use commands and options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from projfree.cli.app import app

TOP = Path(__file__).parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]
LINE = re.compile(r"^(?:\$ )?(projfree [^\n#]+)$|`(projfree [^`\n]+)`", flags=re.MULTILINE)


def command_lines(path: Path) -> list[str]:
    return [block or inline for block, inline in LINE.findall(path.read_text(encoding="utf-8"))]


def checked(line: str) -> None:
    """Follow the words to a command, then look up each option."""
    words = shlex.split(line.replace("[", "").replace("]", ""))[1:]
    command: Any = get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        assert words[0].rstrip(",") in command.commands, line
        command = command.commands[words.pop(0).rstrip(",")]
    known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)} | {"--help", "--install-completion"}
    for word in words:
        assert not word.startswith("--") or word.split("=")[0] in known, f"{line}: {word}"


@pytest.mark.parametrize("path", [path for path in PAGES if command_lines(path)], ids=lambda path: path.stem)
def test_command_lines(path: Path) -> None:
    for line in command_lines(path):
        checked(line)
