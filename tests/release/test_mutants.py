"""The faults of `make mutants` speak of the code as it is; whether tests find them, the command tells."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
FAULTS = tomllib.loads((TOP / "tools" / "mutants.toml").read_text(encoding="utf-8"))["fault"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["what"])
def test_each_text_occurs_once_and_each_test_exists(fault: dict[str, Any]) -> None:
    assert (TOP / fault["file"]).read_text(encoding="utf-8").count(fault["old"]) == 1
    assert fault["new"] != fault["old"]
    assert all((TOP / test.split("::")[0]).exists() for test in fault["tests"])
