"""The benchmark of matrix completion tunes its methods one fit at a time, and goes on where it was cut off."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parents[2] / "benchmarks"
SETTINGS = [{"level": 1.0}, {"level": 3.0}, {"level": 5.0}]


@pytest.fixture
def tuning(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])
    return importlib.import_module("completion_tuning")


def test_a_call_that_was_cut_off_is_gone_on_from(tuning: ModuleType, tmp_path: Path) -> None:
    asked: list[float] = []

    def fit(train: Any, level: float) -> tuple[Any, str]:
        asked.append(level)
        return lambda pairs: np.full(len(pairs[0]), level), ""

    train = [np.arange(40), np.arange(40), np.tile([1.0, 3.0, 3.0, 5.0], 10)]
    method, file = tuning.Tuned(fit, SETTINGS), tmp_path / "pieces.json"
    for done in (1, 2):
        with pytest.raises(SystemExit, match="stopped before tried"):
            method.settled(train, tuning.Pieces(file, 1), "tried")
        assert len(asked) == done
    fitted = method.settled(train, tuning.Pieces(file, 1), "tried")
    assert asked == [1.0, 3.0, 5.0]
    assert "{'level': 3.0} of 3" in fitted(train)[1]
    assert asked[-1] == 3.0


def _completion() -> ModuleType:
    """The benchmark by its file, because a folder of tests has the same name."""
    spec = importlib.util.spec_from_file_location("benchmark_completion", HERE / "completion.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_our_own_fit_is_judged_on_a_file(
    tuning: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, file = np.random.default_rng(0), tmp_path / "ratings.tab"
    rows = np.column_stack([rng.integers(0, 20, 200), rng.integers(0, 15, 200), rng.integers(1, 6, 200)])
    np.savetxt(file, rows, fmt="%d", delimiter="\t")
    given = {"file": file, "size": None, "method": "projfree", "seeds": [0, 1], "test_part": 10, "tuned_on": None}
    _completion().rmse(Namespace(**given, pieces=None, most=None, commit=False))
    assert "ratings.tab 1/10 projfree: mean RMSE 1." in capsys.readouterr().out
