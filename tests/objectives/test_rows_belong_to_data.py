"""Targets and weights of rows are touched by data alone: mathematics asks for sweeps, folds or named methods."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import projfree

FOLDERS = ("objectives", "solvers", "steps", "run", "completion")
TOUCHED = re.compile(r"\bdata\.(y|weight|places)\b|\bdata\.weights\(|\.pattern\.(rows|indices)\b")
#: Features and what was rated are parameters of the problem, as sparse matrices are.
PARAMETERS = {"side_information.py"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_touches_the_rows_of_data(folder):
    for path in sorted((Path(projfree.__file__).parent / folder).rglob("*.py")):
        if path.name not in PARAMETERS:
            found = TOUCHED.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path.name} has {found[0]!r}"


def test_the_law_can_fail():
    assert TOUCHED.search("u = e.data.y - 1")
    assert TOUCHED.search("f.data.weights(slice(None))")
    assert not TOUCHED.search("f.data.lines(side)")
