"""Every block of our code in the pages runs, commands too, and prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from projfree.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if "```python\n" in path.read_text(encoding="utf-8"))
BLOCK = re.compile(r"```(?P<kind>python|shell)\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```)?", flags=re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
        printed = commanded(block["code"]) if block["kind"] == "shell" else executed(block["code"], path, names)
        if block["shown"] is not None:
            assert_alike(printed, block["shown"])


def executed(code: str, path: Path, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(path), "exec"), names)
    return printed.getvalue()


def commanded(lines: str) -> str:
    printed = ""
    for program, *words in map(shlex.split, lines.splitlines()):
        assert program == "projfree"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        printed += done.stdout
    return printed


def assert_alike(printed: str, shown: str) -> None:
    """The same words; numbers within a tenth, seconds and gaps of the size of rounding of any size."""
    printed, shown = (
        re.sub(r"^  compiled .*\n|[\d.e-]+ s$", "", text, flags=re.MULTILINE) for text in (printed, shown)
    )
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for a, b in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        x, y = (float(text.replace(",", "").rstrip(".") or "nan") for text in (a, b))
        tiny = "e-" in a and "e-" in b and max(abs(x), abs(y)) < 1e-3
        assert tiny or math.isclose(x, y, rel_tol=0.1, abs_tol=1e-9), (a, b, printed)


def test_every_link_between_pages_leads_somewhere() -> None:
    generated = ("gallery/", "api/")
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([\w/.-]+\.(?:md|rst))(?:#[\w-]*)?\)", path.read_text(encoding="utf-8")):
            assert target.startswith(generated) or (DOCS / target).exists(), f"{path.name}: {target}"
