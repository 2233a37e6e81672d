"""Tables on the pages come from committed files and from the code of the command, and name what is there."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("sphinx")
DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = re.findall(
    r"```\{benchmark\} (\S+)\n:rows: (\S+)\n:columns: (.+)\n```", (DOCS / "benchmarks.md").read_text(encoding="utf-8")
)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    return importlib.import_module("benchmark_tables")


@pytest.mark.parametrize(("file", "rows", "columns"), BLOCKS)
def test_every_column_is_in_the_file(tables: ModuleType, file: str, rows: str, columns: str) -> None:
    tree = json.loads((tables.COMMITTED / file).read_text(encoding="utf-8"))
    found = tables.found(tree, rows)
    listed = [{"name": k, "value": v} for k, v in found.items()] if isinstance(found, dict) else found
    assert listed
    for key in (part.split("=")[0].strip() for part in columns.split(";")):
        assert any(tables.found(row, key) is not None for row in listed), key


def test_what_is_missing_is_called_so(tables: ModuleType) -> None:
    assert tables.shown(tables.found({"best": None}, "best/1e-07/cpu")) == "missing"
    assert tables.shown(0.123456) == "0.1235"
    with pytest.raises(KeyError):
        tables.found({"best": {}}, "best/1e-07")


def test_every_command_is_on_its_page() -> None:
    from typer.main import get_command

    from projfree.cli.app import app

    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name, command in get_command(app).commands.items():
        for full in [f"{name} {below}" for below in getattr(command, "commands", {})] or [name]:
            assert f"```{{command}} {full}\n" in page
