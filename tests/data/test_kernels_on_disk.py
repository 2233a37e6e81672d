"""Machine code on disk serves the next process, and never one whose loss has changed; adding a loss is one file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import projfree.losses

RUN = """
import importlib, json, sys
import numpy as np
from projfree.data import kernels
from projfree.data.rows import Blocks, compiled
from projfree.data.rows import Pass
from projfree.objectives.row_steps import TangentSums
module, name = sys.argv[1:]
loss = getattr(importlib.import_module(module), name)()
X, y = np.linspace(-1, 1, 60).reshape(20, 3), np.where(np.arange(20) % 2, 1.0, -1.0)
own = Pass(TangentSums(loss), 20, y, None, (np.ones(3),), (0,), (None,))
prepared = compiled(own, 3, Blocks(20, 16), 1 << 40)
prepared.dense(X)(0, 2)
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
from projfree.numerics.forms import register
FACTOR = {factor}

@dataclass(frozen=True)
class Times(Squared):
    def value(self, u, y):
        return {by} * super().value(u, y)

    def derivative(self, u, y):
        return {by} * super().derivative(u, y)

def helper(r):
    return {helper} * r * r

def tile(parameters, u, y, value, slope):
    for i in range(len(u)):
        r = u[i] - y[i]
        value[i] = FACTOR * helper(r)
        slope[i] = 2.0 * FACTOR * helper(1.0) * r

register(Times, tile=tile)
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


@pytest.mark.parametrize("part", ["factor", pytest.param("helper", marks=pytest.mark.slow)])
def test_a_changed_form_is_compiled_anew(tmp_path, part):
    """Numba tells versions of a file apart by its time and size."""
    values = []
    for by in (3.0, 5.0):
        text = LOSS.format(**{"factor": 1.0, "helper": 1.0, "by": by, part: by})
        (tmp_path / "mine.py").write_text(text)
        os.utime(tmp_path / "mine.py", (0, 10 * by))  # bytecode of the other version must not be used
        found = [run(tmp_path, "mine", "Times") for _ in range(2)]
        assert [own["loss"] for own in found] == [0, 1]
        assert found[0]["value"] == found[1]["value"] == pytest.approx(found[0]["due"], rel=1e-14)
        values.append(found[0]["value"])
    assert values[1] == pytest.approx(5.0 / 3.0 * values[0], rel=1e-14)


def test_the_forms_of_a_loss_are_in_one_file():
    """No kernel knows a loss's name, and its own file has both forms."""
    root = Path(projfree.losses.__file__).parents[1]
    kernels = "".join(path.read_text() for path in (root / "data").rglob("*.py"))
    for loss in projfree.losses.LOSSES:
        own = (root / "losses" / f"{loss.__module__.rpartition('.')[2]}.py").read_text()
        assert own.count(f"register({loss.__name__}, tile=") == 1
        assert f"import {loss.__name__}\n" not in kernels


FOUND = """
import numpy as np
from projfree import LpBall, Objective, as_data, minimize
from projfree.losses import BY_NAME, LOSSES, Times
from projfree.numerics.forms import form_of
assert BY_NAME["times"] is Times is LOSSES[-1]
assert form_of(Times()) is not None
X = np.eye(2)
assert minimize(Objective(Times(), as_data(X, [3.0, 4.0])), LpBall(2, radius=1.0)).status.converged
"""


def test_adding_a_loss_is_one_file_and_one_line(tmp_path):
    """In a copy of the package: the file of a loss with a compiled form, and its line in the list of names."""
    root = Path(projfree.losses.__file__).parents[1]
    copied = tmp_path / "projfree"
    shutil.copytree(root, copied, ignore=shutil.ignore_patterns("__pycache__", "files"))
    (copied / "losses" / "times.py").write_text(LOSS.format(factor=3.0, helper=1.0, by=3.0))
    with (copied / "losses" / "__init__.pyi").open("a") as names:
        names.write("from projfree.losses.times import Times as Times\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    listed = [sys.executable, "-m", "projfree", "list", "losses", "--json"]
    for command in ([sys.executable, "-c", FOUND], listed):
        found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert found.returncode == 0, found.stderr
    assert "Times" in json.loads(found.stdout)
