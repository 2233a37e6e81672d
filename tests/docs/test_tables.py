"""Tables on the pages come from committed files and from the code of the command, and name what is there."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BENCHMARKS = DOCS.parent / "benchmarks"
RESULTS = sorted((BENCHMARKS / "results").glob("*.json"))


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    return importlib.import_module("reports")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_table_is_made_of_its_file(reports: ModuleType, path: Path) -> None:
    tree = json.loads(path.read_text(encoding="utf-8"))
    shown = path.with_suffix(".md").read_text(encoding="utf-8")
    assert shown == reports.markdown(reports.REPORTS[path.stem], tree), "run `python benchmarks/record.py`"
    assert reports.REPORTS[path.stem].command in shown
    assert {"date", "processor", "software", "commit"} <= set(tree["machine"])
    assert all(tree["machine"][name] in shown for name in ("date", "processor"))


def test_the_page_shows_every_table_and_no_other() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    shown = re.findall(r"\{include\} \.\./benchmarks/results/(\w+)\.md", page)
    assert sorted(shown) == [path.stem for path in RESULTS]
    assert sorted(path.stem for path in RESULTS) == sorted(path.stem for path in BENCHMARKS.glob("results/*.md"))


def test_what_is_missing_is_called_so(reports: ModuleType) -> None:
    assert reports.shown(reports.found({"best": None}, "best/1e-07/cpu")) == "missing"
    assert [reports.shown(value) for value in (0.123456, 12_000, True, "a|b")] == ["0.1235", "12,000", "yes", "a\\|b"]
    with pytest.raises(KeyError):
        reports.found({"best": {}}, "best/1e-07")


def test_a_table_of_markdown(reports: ModuleType) -> None:
    tree = {"machine": {"date": "today"}, "parts": {"a": {"s": 0.5}, "b": {"s": None}}, "rows": [{"x": 1}, {"y": 2}]}
    tables = (reports.Shown("Seconds", "parts", {"part": "name", "s": "value/s"}), reports.Shown("All", "rows"))
    assert reports.markdown(reports.Report("make it", tables), tree).splitlines()[5:] == [
        *("Seconds:", "", "| part | s |", "| --- | --: |", "| a | 0.5 |", "| b | missing |", ""),
        *("All:", "", "| x | y |", "| --- | --- |", "| 1 |  |", "|  | 2 |"),
    ]


def test_every_command_is_on_its_page() -> None:
    from typer.main import get_command

    from projfree.cli.app import app

    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name, command in get_command(app).commands.items():
        for full in [f"{name} {below}" for below in getattr(command, "commands", {})] or [name]:
            assert f"```{{command}} {full}\n" in page
