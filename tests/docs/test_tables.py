"""Tables on the pages come from committed files and from the code of the command, and name what is there."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BENCHMARKS = DOCS.parent / "benchmarks"
RESULTS = sorted((BENCHMARKS / "results").glob("*.json"))


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    return importlib.import_module("report_tables")


@pytest.fixture
def reports(tables: ModuleType) -> dict[str, Any]:
    return importlib.import_module("reports").REPORTS


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_table_is_made_of_its_file(tables: ModuleType, reports: dict[str, Any], path: Path) -> None:
    tree, shown = read(path), path.with_suffix(".md").read_text(encoding="utf-8")
    assert shown == tables.markdown(reports[path.stem], tree), "run `python benchmarks/record.py`"
    assert {"date", "processor", "software"} <= set(tree["machine"])
    rows = [row for part in tree.values() if isinstance(part, list) for row in part]
    assert "commit" in tree["machine"] or any("commit" in row for row in rows)  # rows of several commits name theirs
    assert all(told in shown for told in (reports[path.stem].command, *tree["machine"].values()))


def test_pages_show_the_results(tables: ModuleType, reports: dict[str, Any]) -> None:
    trees = {path.stem: read(path) for path in RESULTS}
    together = (BENCHMARKS / "results" / "README.md").read_text(encoding="utf-8")
    assert together == tables.together(reports, trees)
    shown = tables.grid(*importlib.import_module("overview").overview(trees))
    assert f"\n\n{shown}\n\n" in (DOCS / "performance.md").read_text(encoding="utf-8"), (
        "run `python benchmarks/record.py`"
    )
    shown = tables.markdown(reports["cluster"], trees["cluster"])
    assert f"\n\n{shown}\n" in (DOCS / "dask.md").read_text(encoding="utf-8")
    written = {path.stem for path in BENCHMARKS.glob("results/*.md")} - {"README"}
    assert written == {path.stem for path in RESULTS} <= set(reports)


def test_every_command_is_a_file_or_a_target(reports: dict[str, Any]) -> None:
    makefile = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
    for report in reports.values():
        words = report.command.split()
        assert f"\n{words[1]}:" in makefile if words[0] == "make" else (DOCS.parent / words[1]).exists()


def test_every_command_is_on_its_page() -> None:
    from typer.main import get_command

    from projfree.cli.app import app

    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    shown = {name: command for name, command in get_command(app).commands.items() if not command.hidden}
    for name, command in shown.items():
        for full in [f"{name} {below}" for below in getattr(command, "commands", {})] or [name]:
            assert f"```{{command}} {full}\n" in page


def test_every_status_is_on_the_page_on_certificates() -> None:
    from projfree import Status

    page = (DOCS / "certificates.md").read_text(encoding="utf-8")
    assert [status.name for status in Status if f"`{status.name}`" not in page] == []
