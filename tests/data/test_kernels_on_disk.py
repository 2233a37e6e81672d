"""Machine code on disk serves the next process, and never one whose loss has changed; adding a loss is one file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import projfree.losses

RUN = """
import importlib, json, sys
import numpy as np
from projfree.data import as_data, kernels
from projfree.data.rows import Blocks, compiled
from projfree.data.rows import Pass
from projfree.objectives.row_steps import TangentSums
module, name = sys.argv[1:]
loss = getattr(importlib.import_module(module), name)()
X, y = np.linspace(-1, 1, 60).reshape(20, 3), np.where(np.arange(20) % 2, 1.0, -1.0)
own = Pass(TangentSums(loss), as_data(X, y), (np.ones(3),), (0,), (None,))
prepared = compiled(own, 3, Blocks(20, 16))
prepared.over(X, 0)(0, 2)
stats = kernels.dense_rows.stats
sums = prepared.total()[0]
_, due = own(slice(0, 20), X @ np.ones(3))
print(json.dumps({
    "hits": sum(stats.cache_hits.values()), "misses": sum(stats.cache_misses.values()),
    "loss": prepared._loss.cache_hits,
    "value": sums[0], "due": due[0],
}))
"""
LOSS = """
from dataclasses import dataclass
from projfree.losses.squared import Squared
FACTOR = {factor}

@dataclass(frozen=True)
class Times(Squared):
    def value(self, u, y):
        return {by} * super().value(u, y)

    def derivative(self, u, y):
        return {by} * super().derivative(u, y)

    @staticmethod
    def kernel(parameters, u, y, value, slope):
        for i in range(len(u)):
            r = u[i] - y[i]
            value[i] = FACTOR * r * r
            slope[i] = 2.0 * FACTOR * r
"""


def run(folder: Path, module: str, name: str) -> dict[str, float]:
    path = os.pathsep.join([str(folder), str(Path(projfree.losses.__file__).parents[2])])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path}
    found = subprocess.run(
        [sys.executable, "-c", RUN, module, name], capture_output=True, text=True, check=False, env=environment
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_the_next_process_compiles_nothing(tmp_path):
    first = run(tmp_path, "projfree.losses", "Logistic")
    again = run(tmp_path, "projfree.losses", "Logistic")
    other = run(tmp_path, "projfree.losses", "Squared")
    assert (first["hits"], first["misses"], first["loss"]) == (0, 1, 0)
    assert (again["hits"], again["misses"], again["loss"]) == (1, 0, 1)
    assert (other["hits"], other["misses"], other["loss"]) == (1, 0, 0)
    assert again["value"] == first["value"] == pytest.approx(first["due"], rel=1e-14)


def test_a_changed_form_is_compiled_anew(tmp_path):
    """Numba tells versions of a file apart by its time and size."""
    values = []
    for by in (3.0, 5.0):
        text = LOSS.format(factor=by, by=by)
        (tmp_path / "mine.py").write_text(text)
        os.utime(tmp_path / "mine.py", (0, 10 * by))  # bytecode of the other version must not be used
        found = [run(tmp_path, "mine", "Times") for _ in range(2)]
        assert [own["loss"] for own in found] == [0, 1]
        assert found[0]["value"] == found[1]["value"] == pytest.approx(found[0]["due"], rel=1e-14)
        values.append(found[0]["value"])
    assert values[1] == pytest.approx(5.0 / 3.0 * values[0], rel=1e-14)
