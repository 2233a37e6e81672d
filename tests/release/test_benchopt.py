"""The benchopt benchmark runs on a small problem, and our solver reaches the minimum there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_small_run(tmp_path: Path) -> None:
    pytest.importorskip("benchopt")
    pandas = pytest.importorskip("pandas")
    place = shutil.copytree(TOP / "benchmark_norm_ball", tmp_path / "benchmark_norm_ball")
    ask = [
        sys.executable,
        "-m",
        "benchopt",
        "run",
        str(place),
        "--local",
        "--no-plot",
        "--no-html",
        "-n",
        "6",
        "-r",
        "1",
    ]
    problem = ["-d", "simulated[n_samples=500,n_features=50]", "-o", "Mean loss over an l_p ball[loss=squared,p=1.5]"]
    environment = {**os.environ, "PYTHONPATH": str(TOP / "src")}
    done = subprocess.run([*ask, *problem], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = pandas.read_parquet(next((place / "outputs").glob("*.parquet")))
    ours = found[found["solver_name"].str.contains("auto")]
    assert -1e-9 <= ours["objective_value"].min() <= 1e-9
    assert "skip" in done.stdout  # scikit-learn has no such penalty, and is shown so
