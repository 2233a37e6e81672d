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


def test_a_best_setting_at_an_end_of_its_grid_is_told(tuning: ModuleType) -> None:
    def fit(train: Any, level: float, power: float, kind: str) -> tuple[Any, str]:
        return lambda pairs: np.full(len(pairs[0]), level + (power - 1.0) ** 2), ""

    train = [np.arange(40), np.arange(40), np.tile([1.0, 3.0, 3.0, 5.0], 10)]

    def note(levels: list[float]) -> str:
        grid = [{"level": level, "power": power, "kind": "a"} for level in levels for power in (0.0, 1.0, 2.0)]
        method = tuning.Tuned(fit, grid).settled(train, tuning.Pieces(), "tried")
        return str(method(train)[1])

    assert "at an end" not in note([1.0, 3.0, 5.0])
    assert note([3.0, 5.0]).endswith(", at an end of the grid of level")
    assert note([1.0, 3.0]).endswith(", at an end of the grid of level")


def test_each_row_keeps_its_commit_load_and_date(
    tuning: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later call for another row changes none of them, and rows of before without them are shown too."""
    record = importlib.import_module("record")
    here = record.machine()
    old = {"ratings": 1, "s": 1.0, "date": "before"}
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    record.commit("completion", {"machine": here, "memory": [old]})
    for ratings in (2, 3):
        info = here | {"commit": f"c{ratings}", "load": f"{ratings}.0 at the start", "date": f"d{ratings}"}
        monkeypatch.setattr(record, "machine", lambda info=info: info)
        module = _completion()
        module.started()
        monkeypatch.setattr(record, "machine", lambda: here | {"load": "much at the end"})
        module.told("memory", {"ratings": ratings, "s": 1.0}, ("ratings",))
    rows = record.committed("completion")["memory"]
    assert rows[0] == old
    assert [(row["commit"], row["load"], row["date"]) for row in rows[1:]] == [
        (f"c{k}", f"{k}.0 at the start", f"d{k}") for k in (2, 3)
    ]
    assert not {"commit", "load", "options"} & set(record.committed("completion")["machine"])
    table = (tmp_path / "completion.md").read_text()
    assert "| ratings | s | date | commit | load |" in table
    assert "| 2 | 1 | d2 | c2 | 2.0 at the start |" in table


def test_cold_users_are_predicted_with_features_and_by_offsets(
    tuning: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of MovieLens have ids with gaps, by which features are found."""
    rng, folder = np.random.default_rng(0), tmp_path / "ml-1m"
    folder.mkdir()
    pairs = np.divmod(rng.choice(20 * 15, 200, replace=False), 15)
    lines = [f"{3 * u + 1}::{2 * i + 5}::{rng.integers(1, 6)}::0" for u, i in zip(*pairs, strict=True)]
    (folder / "ratings.dat").write_text("\n".join(lines))
    (folder / "users.dat").write_text("\n".join(f"{3 * u + 1}::{'FM'[u % 2]}::{u % 3}::{u % 4}::0" for u in range(20)))
    films = "\n".join(f"{2 * i + 5}::A film ({1990 + i})::Drama|Comedy" for i in range(15))
    (folder / "movies.dat").write_text(films)
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    data, cold = importlib.import_module("completion_data"), importlib.import_module("completion_cold")
    given = data.ratings_by_id("1m")
    assert set(given[0].tolist()) <= set(range(1, 61, 3))
    assert data.ratings("1m")[0].max() < 20
    found = cold.cold(given, 0, [0, 1], [1.0])
    assert sorted(found) == ["features, weight 1", "offsets"]
    assert all(len(errors) == 2 and np.isfinite(errors).all() for errors in found.values())


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


def test_where_pieces_are_kept_is_no_part_of_a_result(tuning: ModuleType) -> None:
    given = ["rmse", "1m", "--pieces", "some/file", "--most", "1", "--seeds", "0", "--out", "there", "--commit"]
    assert importlib.import_module("record")._options(given) == "rmse 1m --seeds 0"
