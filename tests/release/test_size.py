"""Folders and protocols are no larger than recorded, and what is counted is what it says."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "size.py"
SOURCE = '''"""A module
in two lines."""

import math  # no constant

A, B = 1, 2.5
WEIGHTS = {"a": (1 << 4, -3)}
ROOT, FLAG = math.sqrt(1.25), True


class Thing:
    """What it is."""

    size: int = 3
    name: str = "x"
    open: bool

    def grow(self, by=2, *, to=1e-3, how="fast", _more=None):
        """More."""

        def inner(x=0.25):
            return x + 0.75

        return f"{by + 0.1!r} and {to}" + inner(2.0) \\
            + 0.5 * self._hidden(7)

    async def _hidden(self, x): ...
'''


@pytest.fixture(scope="module")
def size():
    spec = importlib.util.spec_from_file_location("size", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_counted(size):
    found = size.measure(SOURCE)
    assert {name: found[name] for name in ("lines", "files", "functions", "docstrings")} == {
        "lines": 27,
        "files": 1,
        "functions": 3,
        "docstrings": 4,
    }
    assert found["constants"] == 3  # A, B and WEIGHTS
    assert found["defaults"] == 3  # by, to and x
    assert found["fields"] == 1  # size
    assert found["floats"] == 3  # 1.25, 0.75, and 0.1 in the text
    classes = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.ClassDef)]
    assert size.members(classes[0]) == {"size", "name", "open", "grow"}


def test_growth_is_told_and_shrinking_is_not(size):
    before = {"folders": {"src": {"lines": 10, "files": 2}, "gone": {"lines": 5}}, "protocols": {"Data": 3}}
    now = {"folders": {"src": {"lines": 9, "files": 3}, "new": {"lines": 1}}, "protocols": {"Data": 4}}
    assert size.growth(before, before) == []
    assert size.growth(now, before) == ["src: files 2 -> 3", "new: lines 0 -> 1", "Data: members 3 -> 4"]


def test_nothing_is_larger_than_recorded(size):
    recorded = json.loads(size.RECORDED.read_text(encoding="utf-8"))
    grown = size.growth(size.static(size.folders()), recorded)
    assert not grown, (
        "larger than recorded:\n  " + "\n  ".join(grown) + "\nMake it smaller, or record it with "
        "`python tools/size.py --record` and say in the commit why it has to grow."
    )
