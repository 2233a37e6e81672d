"""Calling the command within the test, and a small table."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from projfree.cli.app import app


class Call:
    """Runs the command in this process."""

    def __call__(self, *words):
        return CliRunner().invoke(app, list(map(str, words)))

    def json(self, *words):
        """What the command prints with ``--json``."""
        result = self(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def call():
    return Call()


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


@pytest.fixture
def unchanged(tmp_path):
    """A context after which the files of the test's folder are what they were."""

    def contents():
        return {str(p.relative_to(tmp_path)): p.read_bytes() for p in sorted(tmp_path.rglob("*")) if p.is_file()}

    @contextmanager
    def watch():
        before = contents()
        yield
        assert contents() == before

    return watch
