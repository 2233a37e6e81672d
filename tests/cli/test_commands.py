"""The commands: what they write, what they say, and their exit codes."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from projfree.cli.app import app


def call(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table as CSV, Parquet and npy, with a column of text and one of classes."""
    root, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["y"] = X @ np.arange(4.0) + 0.1 * rng.standard_normal(200)
    frame.to_parquet(root / "numbers.parquet")
    np.save(root / "numbers.npy", frame.to_numpy())
    frame.assign(kind=np.where(frame["y"] > 0, "yes", "no"), word="w").to_csv(root / "mixed.csv", index=False)
    ratings = {"user": rng.integers(0, 15, 200), "item": rng.integers(0, 20, 200), "rating": rng.integers(1, 6, 200)}
    pd.DataFrame(ratings).to_csv(root / "ratings.csv", index=False)
    (root / "empty.csv").touch()
    (root / "header.csv").write_text("a,b,y\n")
    (root / "holes.csv").write_text("a,y\n1,2\n,3\n")
    (root / "broken.parquet").write_bytes(b"PAR1 but no more")
    return root


@pytest.mark.parametrize(("name", "target"), [("numbers.parquet", "y"), ("numbers.npy", "4"), ("numbers.npy", "-1")])
def test_fit_and_predict(folder, tmp_path, name, target):
    out = tmp_path / "model"
    fitted = call("fit", folder / name, "--target", target, "--p", 1.5, "--radius", 4, "--out", out, "--json")
    assert fitted.exit_code == 0, fitted.output
    record = json.loads(fitted.output)
    assert record["bound"] <= record["value"]
    assert record["relative_gap"] <= 1e-6
    assert record["score"] > 0.5
    assert (record["rows"], record["held_out_rows"], record["radius"]) == (160, 40, 4.0)
    if name.endswith("parquet"):
        predicted = call("predict", out, folder / name, "--out", tmp_path / "p.csv")
        assert predicted.exit_code == 0, predicted.output
        values = pd.read_csv(tmp_path / "p.csv")["prediction"]
        assert np.corrcoef(values, pd.read_parquet(folder / name)["y"])[0, 1] > 0.9


def test_fit_classes_with_text_labels(folder, tmp_path):
    words = ("fit", folder / "mixed.csv", "--target", "kind", "--loss", "logistic", "--drop", "word", "--drop", "y")
    fitted = call(*words, "--out", tmp_path / "m")
    assert fitted.exit_code == 0, fitted.output
    assert "certified gap" in fitted.output
    assert "held-out accuracy" in fitted.output
    assert "\x1b" not in fitted.output
    assert set(call("predict", tmp_path / "m", folder / "mixed.csv").output.split()) == {"yes", "no"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mixed.csv", "--target", "y", "--one-hot", "none"], "column 'kind' must hold numbers, got '(yes|no)' in row"),
        (["mixed.csv", "--target", "z"], "--target must be a column of .*, got 'z'; its columns are a, b, c, d, y"),
        (
            ["mixed.csv", "--target", "word", "--loss", "squared"],
            "column 'word' must hold numbers, got 'w' in row 1; .*; for classes use --loss logistic",
        ),
        (["empty.csv", "--target", "y"], "empty.csv' is empty"),
        (["header.csv", "--target", "y"], "header.csv' has no rows"),
        (
            ["holes.csv", "--target", "y"],
            "column 'a' is missing or infinite in row 2; fill it or .* fit with --impute median .or --impute drop",
        ),
        (["broken.parquet", "--target", "y"], "broken.parquet is no Parquet file"),
        (["none.csv", "--target", "y"], "none.csv' does not exist"),
        (
            ["numbers.parquet", "--target", "y", "--radius", "big"],
            "--radius must be a positive number, got 'big'",
        ),
        (["numbers.parquet", "--target", "y", "--p", "0.5"], "--p must be at least 1, got 0.5"),
        (["numbers.parquet", "--target", "y", "--hold-out", "1"], "--hold-out must be at least 0 and less than 1"),
        (["numbers.parquet", "--target", "y", "--loss", "logistic"], "too many for classes"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(folder, tmp_path, words, sentence):
    out = tmp_path / "model"
    result = call("fit", folder / words[0], *words[1:], "--out", out)
    assert result.exit_code == 2
    assert len(result.output.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
    assert re.search(sentence, result.output), result.output


def test_a_tolerance_that_was_not_reached(folder, tmp_path):
    words = ("fit", folder / "mixed.csv", "--target", "kind", "--loss", "logistic", "--drop", "word", "--drop", "y")
    result = call(*words, "--tol", "1e-15", "--max-iter", 1, "--out", tmp_path / "m")
    assert result.exit_code == 1
    assert "stopped after the largest number of iterations" in result.output


def test_complete(folder, tmp_path):
    words = ("complete", folder / "ratings.csv", "--radius", 5, "--rank", 3, "--recommend", 2, "--out", tmp_path / "m")
    result = call(*words)
    assert result.exit_code == 0, result.output
    assert "held-out RMSE" in result.output
    assert "lower bound" in result.output
    table = pd.read_csv(tmp_path / "m.recommendations.csv")
    assert list(table.columns) == ["user", "place", "item", "rating"]
    assert table.groupby("user").size().max() == 2
    predicted = call("predict", tmp_path / "m", folder / "ratings.csv")
    assert len(predicted.output.split()) == 200
    assert call("complete", folder / "ratings.csv", "--columns", "user,item", "--out", tmp_path / "n").exit_code == 2
    assert not (tmp_path / "n").exists()


def test_explain_runs_nothing(folder):
    result = call("explain", folder / "numbers.parquet", "--target", "y", "--radius", 2)
    assert result.exit_code == 0, result.output
    record = json.loads(call("explain", folder / "numbers.parquet", "--target", "y", "--radius", 2, "--json").output)
    assert f"{record['solver']}: {record['why']}" in result.output


@pytest.mark.parametrize("kind", ["losses", "sets", "solvers"])
def test_list_follows_the_package(kind):
    import projfree.losses
    import projfree.sets
    import projfree.solvers

    everything = {"losses": projfree.losses.LOSSES, "sets": projfree.sets.SETS, "solvers": projfree.solvers.SOLVERS}
    assert set(json.loads(call("list", kind, "--json").output)) == {cls.__name__ for cls in everything[kind]}
    assert "\\" not in call("list", kind).output  # words, no formulas


def test_data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    assert json.loads(call("data", "list", "--json").output)["movielens-100k"]["where"] == "not here"
    assert call("data", "path", "adult").output.strip().endswith("adult.npz")
    missing = call("data", "path", "year")
    assert missing.exit_code == 2
    assert "projfree data get year" in missing.output
    assert "there is no data set 'x'" in call("data", "get", "x").output
    assert "has no home to download from" in call("data", "get", "school").output


def test_an_interrupt_in_the_run_writes_nothing(folder, tmp_path, monkeypatch):
    from projfree.run import Run

    def pressed(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "advance", pressed)
    fitted = call("fit", folder / "numbers.parquet", "--target", "y", "--radius", 4, "--out", tmp_path / "model")
    assert fitted.exit_code == 130
    assert fitted.output == "Interrupted; nothing was written.\n"
    assert not list(tmp_path.iterdir())
