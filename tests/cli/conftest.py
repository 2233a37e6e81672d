"""Calling the command within the test, and a small table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from projfree.cli.app import app


@pytest.fixture
def call():
    return lambda *words: CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def table(tmp_path):
    """A CSV file of 100 rows with the columns a, b, c, y."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((100, 3)), columns=list("abc"))
    frame["y"] = frame @ [1.0, 2.0, 3.0] + 0.1 * rng.standard_normal(100)
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.fixture
def ratings(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": rng.integers(0, 9, 90), "item": rng.integers(0, 9, 90), "rating": rng.random(90)})
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    return tmp_path / "ratings.csv"


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def unchanged(tmp_path):
    """Whether the files of the test's folder are what they were."""

    class Watch:
        def __enter__(self):
            self.before = contents(tmp_path)

        def __exit__(self, *error):
            if error[0] is None:
                assert contents(tmp_path) == self.before

    return Watch()
