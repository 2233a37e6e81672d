"""The benchmarks can be started, and write what belongs into the repository where they are told to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
SCRIPTS = sorted(path for path in TOP.glob("benchmarks/*.py") if "ArgumentParser" in path.read_text(encoding="utf-8"))
pytestmark = [pytest.mark.slow]


def run(script: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(TOP / "src")}
    ask = [sys.executable, str(script), *options]
    return subprocess.run(ask, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", [path for path in SCRIPTS if path.stem != "record"], ids=lambda path: path.stem)
def test_a_benchmark_starts(path: Path) -> None:
    done = run(path, "--help")
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout


def test_a_benchmark_writes_its_json_file_and_its_tables(tmp_path: Path) -> None:
    place = shutil.copytree(TOP / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("scratch"))
    options = "--rows", "3200", "--repeat", "1"
    done = run(place / "cluster.py", "--out", str(place / "scratch"), *options, "--commit")
    assert done.returncode == 0, done.stderr
    found = json.loads((place / "results" / "cluster.json").read_text(encoding="utf-8"))
    assert found["machine"]["options"] == "--rows 3200 --repeat 1"
    shown = (place / "results" / "cluster.md").read_text(encoding="utf-8")
    assert "| latency |" in shown
    assert shown in (place / "results" / "README.md").read_text(encoding="utf-8")
    assert list((place / "scratch").glob("cluster-*.json"))
