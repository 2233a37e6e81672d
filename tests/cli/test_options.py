"""The options of fit and predict: what they do, seen from their results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score

from projfree.cli.fit import split
from projfree.estimators import load
from projfree.losses import BY_NAME


def fit(path, out, *more):
    return ("fit", path, "--target", "y", "--out", out, *more)


@pytest.fixture
def classes(table, tmp_path):
    frame = pd.read_csv(table)
    frame["y"] = np.array(["no", "perhaps", "yes"])[np.digitize(frame["y"], [-1, 1])]
    frame.to_csv(tmp_path / "classes.csv", index=False)
    return tmp_path / "classes.csv"


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_the_held_out_score_is_that_of_the_rows_held_out(call, table, classes, tmp_path, kind):
    path = table if kind == "numbers" else classes
    result = call(*fit(path, tmp_path / "m", "--radius", 1, "--seed", 3, "--hold-out", 0.4, "--json"))
    record, frame = json.loads(result.output), pd.read_csv(path)
    train, test = split(100, 0.4, 3)
    assert sorted([*train, *test]) == list(range(100))
    assert (record["rows"], record["held_out_rows"]) == (60, 40)
    score = r2_score if kind == "numbers" else accuracy_score
    model, held, seen = load(tmp_path / "m"), frame.iloc[test], frame.iloc[train]
    assert record["score"] == pytest.approx(score(held["y"], model.predict(held[list("abc")])))
    assert record["score"] != pytest.approx(score(seen["y"], model.predict(seen[list("abc")])))


def test_without_a_radius_cross_validation_chooses_one_on_scaled_features(call, table, tmp_path):
    ways = {"m": (), "n": ("--no-standardize",), "r": ("--radius", 2), "z": ("--cv", 0)}
    for name, more in ways.items():
        assert call(*fit(table, tmp_path / name, *more)).exit_code == 0
    models = [load(tmp_path / name) for name in ways]
    assert [model.standardize_ for model in models] == [True, False, False, False]
    assert [hasattr(model, "cv_results_") for model in models] == [True, True, False, False]
    assert models[0].scores_.shape[2] == 5
    assert models[2].radius_ == 2.0
    assert models[3].alpha == 1.0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_a_prediction_may_stand_in_any_order(call, table, tmp_path, kind):
    call(*fit(table, tmp_path / "m", "--radius", 3))
    frame = pd.read_csv(table)
    mixed = frame.assign(other="text")[["c", "other", "a", "b"]]
    path = tmp_path / f"mixed.{kind}"
    mixed.to_csv(path, index=False) if kind == "csv" else mixed.to_parquet(path)
    result = call("predict", tmp_path / "m", path)
    expected = load(tmp_path / "m").predict(frame[list("abc")])
    np.testing.assert_allclose([float(word) for word in result.output.split()], expected, rtol=1e-12)


def test_columns_without_names_are_counted(call, tmp_path):
    rows = np.random.default_rng(0).standard_normal((50, 4))
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "features.npy", rows[:, :3])
    assert call("fit", tmp_path / "rows.npy", "--target", "-1", "--out", tmp_path / "m").exit_code == 0
    result = call("predict", tmp_path / "m", tmp_path / "rows.npy")
    assert result.exit_code == 2
    assert "must have 3 columns, the features of the model, which have no names, got 4; leave out" in result.output
    assert call("predict", tmp_path / "m", tmp_path / "features.npy").exit_code == 0


def test_probabilities(call, classes, tmp_path):
    call(*fit(classes, tmp_path / "m", "--radius", 5))
    call("predict", tmp_path / "m", classes, "--proba", "--out", tmp_path / "p.csv")
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table.columns) == [
        "prediction",
        "probability of no",
        "probability of perhaps",
        "probability of yes",
    ]
    np.testing.assert_allclose(table.iloc[:, 1:].sum(axis=1), 1.0)
    assert (
        table.iloc[:, 1:].to_numpy().argmax(axis=1) == table["prediction"].map({"no": 0, "perhaps": 1, "yes": 2})
    ).all()


def test_cross_validation_chooses_radius_and_p(call, table, tmp_path):
    result = call(*fit(table, tmp_path / "m", "--cv", 3, "--p", "1,2", "--json"))
    assert result.exit_code == 0, result.output
    record, model = json.loads(result.output), load(tmp_path / "m")
    assert record["p"] in (1.0, 2.0)
    assert type(model).__name__ == "ConstrainedRegressorCV"
    assert (model.p_, model.radius_) == (record["p"], record["radius"])
    assert "by cross-validation" in call(*fit(table, tmp_path / "n", "--cv", 3, "--p", "1")).output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--cv", 3, "--radius", 2), "--cv chooses the radius; leave out --radius"),
        (("--cv", 1), "--cv must be 0 or at least 2, got 1"),
        (("--p", "1,2", "--radius", 2), "--p must be one number with --radius or --cv 0, got 1,2; leave"),
        (("--p", "x"), "--p must be at least 1, got x"),
        (("--q", 2), "--q is for --norm group"),
        (("--feature-groups", "auto"), "--feature-groups is for --norm group"),
        (("--norm", "group", "--feature-groups", "a,b;b,c"), "--feature-groups names the column 'b' twice"),
        (("--norm", "group", "--feature-groups", "a,z"), "--feature-groups must be a column of .*, got 'z'"),
        (("--tol", -1), "--tol must be at least 0, got -1"),
        (("--max-iter", 0), "--max-iter must be at least 1, got 0"),
        (("--time-limit", 0), "--time-limit must be more than 0, got 0"),
    ],
)
def test_messages_speak_of_options(call, table, tmp_path, words, sentence):
    refused = call(*fit(table, tmp_path / "m", *words))
    assert refused.exit_code == 2, refused.output
    assert re.search(sentence, refused.output), refused.output
    assert "(p=" not in refused.output
    assert not (tmp_path / "m").exists()


def test_feature_groups(call, table, tmp_path):
    words = ("--norm", "group", "--p", 2, "--q", 1, "--radius", 2, "--hold-out", 0, "--json")
    groups = call(*fit(table, tmp_path / "m", *words, "--feature-groups", "a,c"))
    assert groups.exit_code == 0, groups.output
    coef = load(tmp_path / "m").coef_
    assert np.hypot(coef[0], coef[2]) + abs(coef[1]) == pytest.approx(2.0)
    assert call(*fit(table, tmp_path / "n", *words, "--feature-groups", "auto")).exit_code == 0
    assert np.abs(load(tmp_path / "n").coef_).sum() == pytest.approx(2.0)


def test_levels_of_one_column_are_one_group(call, table, tmp_path):
    frame = pd.read_csv(table)
    frame["city"] = np.array(["Rome", "Oslo", "Bern"])[np.arange(100) % 3]
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("--norm", "group", "--radius", 2, "--hold-out", 0, "--feature-groups", "auto")
    assert call(*fit(tmp_path / "t.csv", tmp_path / "m", *words)).exit_code == 0
    coef = load(tmp_path / "m").named_steps["model"].coef_
    assert np.abs(coef[:3]).sum() + np.linalg.norm(coef[3:]) == pytest.approx(2.0)


def test_quiet_and_verbose(call, table, tmp_path):
    assert call(*fit(table, tmp_path / "a", "--quiet")).output == ""
    said = call(*fit(table, tmp_path / "b", "--verbose")).output
    assert re.search(r"iteration +1  passes .* value .* bound .* relative gap", said)
    assert call("predict", tmp_path / "a", table, "--out", tmp_path / "p.csv", "-q").output == ""


# ------------------------------------------------------------------ faults and errors


def test_a_fault_inside_is_not_called_bad_input(call, table, tmp_path, monkeypatch):
    from projfree import ConstrainedRegressor

    def broken(self, X, y=None, sample_weight=None):
        return {}["missing"]

    monkeypatch.setattr(ConstrainedRegressor, "fit", broken)
    result = call(*fit(table, tmp_path / "m", "--radius", 1))
    assert result.exit_code == 3
    assert "Fault of projfree: KeyError: 'missing'; nothing was written; run it again with --debug" in result.output
    assert "Traceback" not in result.output
    assert "Traceback" in call(*fit(table, tmp_path / "m", "--radius", 1, "--debug")).output


# ------------------------------------------------------------------ terminals, spreadsheets, shells


def command(*words, **variables):
    words = [sys.executable, "-m", "projfree", *map(str, words)]
    return subprocess.run(words, capture_output=True, env={**os.environ, **variables}, check=False)


def test_an_ascii_terminal(call, table, tmp_path):
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = command(*fit(table, tmp_path / "m", "--radius", 2), **ascii_only)
    assert done.returncode == 0, done.stderr
    assert b"held-out R2" in done.stdout
    frame = pd.read_csv(table).assign(y=np.where(pd.read_csv(table)["y"] > 0, "zürich", "bern"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert call(*fit(tmp_path / "t.csv", tmp_path / "n", "--json")).exit_code == 0
    said = command("predict", tmp_path / "n", tmp_path / "t.csv", **ascii_only)
    assert said.returncode == 0, said.stderr
    assert b"bern" in said.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_report_that_cannot_be_printed(table, tmp_path):
    """The model is there, so that this is no bad input."""
    words = [sys.executable, "-m", "projfree", *map(str, fit(table, tmp_path / "m", "--radius", 2))]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1, done.stderr
    assert b"m' was written, but the report could not be printed (No space left on device)" in done.stderr
    assert (tmp_path / "m" / "projfree.npz").exists()


def test_no_formula_reaches_a_spreadsheet(call, ratings, tmp_path):
    frame = pd.read_csv(ratings)
    frame["item"] = "=HYPERLINK(" + frame["item"].astype(str) + ")"
    frame["user"] = "+user" + frame["user"].astype(str)
    frame.to_csv(tmp_path / "evil.csv", index=False)
    words = ("complete", tmp_path / "evil.csv", "--radius", 2, "--rank", 2, "--recommend", 2, "--out", tmp_path / "m")
    assert call(*words).exit_code == 0
    written = pd.read_csv(tmp_path / "m.recommendations.csv")
    assert written["item"].str.startswith("'=HYPERLINK(").all()
    assert written["user"].str.startswith("'+user").all()


# ------------------------------------------------------------------ tables larger than memory


@pytest.mark.parametrize("kind", ["parquet", "npy", "labels"])
def test_a_table_larger_than_memory_is_streamed(call, table, classes, tmp_path, monkeypatch, kind):
    frame = pd.read_csv(classes if kind == "labels" else table)
    path = tmp_path / ("t.npy" if kind == "npy" else "t.parquet")
    np.save(path, frame.to_numpy()) if kind == "npy" else frame.to_parquet(path)
    words = ("--target", 3 if kind == "npy" else "y", "--radius", 2, "--json")
    small = json.loads(call("fit", path, *words, "--out", tmp_path / "a").output)
    monkeypatch.setattr("projfree.cli.streaming.memory_limit", lambda: 6_000)
    monkeypatch.setattr(pd, "read_parquet", _columns_only(pd.read_parquet))
    monkeypatch.setattr(np, "load", None)
    monkeypatch.setattr("projfree.cli.streaming.CHUNK", 17)
    streamed = call("fit", path, *words, "--out", tmp_path / "b")
    assert streamed.exit_code == 0, streamed.output
    large = json.loads(streamed.output)
    assert large["loss"] == small["loss"]
    for name in ("value", "score", "features", "rows"):
        assert large[name] == pytest.approx(small[name], rel=1e-9), name
    monkeypatch.undo()
    monkeypatch.setattr("projfree.cli.streaming.CHUNK", 17)
    said = [call("predict", tmp_path / name, path).output.split() for name in "ab"]
    if kind == "labels":
        assert said[0] == said[1]
    elif kind == "parquet":
        np.testing.assert_allclose(np.array(said[0], float), np.array(said[1], float), rtol=1e-9)


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_a_table_larger_than_memory_is_searched(call, table, classes, tmp_path, monkeypatch, kind):
    frame = pd.read_csv(classes if kind == "labels" else table)
    frame.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr("projfree.cli.asked.too_large", lambda path: True)
    result = call(*fit(tmp_path / "t.parquet", tmp_path / "m", "--json"))
    assert result.exit_code == 0, result.output
    record, model = json.loads(result.stdout), load(tmp_path / "m")
    assert (model.standardize_, model.scores_.shape[2], model.radius_) == (True, 5, record["radius"])
    held = frame.iloc[split(100, 0.2, 0)[1]]
    assert record["score"] == pytest.approx(model.score(held[list("abc")], held["y"]))
    assert record["score"] > 0.8


def _columns_only(read):
    def limited(path, columns=None):
        assert columns is not None, "the whole table was read"
        return read(path, columns=columns)

    return limited


@pytest.fixture
def targets(table, tmp_path):
    """The table with targets that a loss of this name takes."""

    def made(loss):
        frame = pd.read_csv(table)
        if BY_NAME[loss].labels:
            frame["y"] = np.where(frame["y"] > 0, "yes", "no")
        elif loss in ("poisson", "gamma"):
            frame["y"] = np.exp(frame["y"] / 4)
        frame.to_csv(tmp_path / f"{loss}.csv", index=False)
        return frame, tmp_path / f"{loss}.csv"

    return made


@pytest.mark.parametrize("loss", BY_NAME)
@pytest.mark.parametrize("streamed", [False, True], ids=["memory", "streamed"])
def test_every_loss_of_the_package_is_a_choice_and_scored_as_its_estimator(
    call, targets, tmp_path, loss, streamed, monkeypatch
):
    if streamed and loss in ("huber", "biweight"):
        pytest.skip("takes its scale from single residuals")
    frame, path = targets(loss)
    if streamed:
        path = tmp_path / "streamed.parquet"
        frame.to_parquet(path)
        monkeypatch.setattr("projfree.cli.asked.too_large", lambda path: True)
    result = call(*fit(path, tmp_path / "m", "--loss", loss, "--radius", 1, "--tol", 1e-4, "--json"))
    assert result.exit_code == 0, result.output
    record, held = json.loads(result.stdout), frame.iloc[split(100, 0.2, 0)[1]]
    model = load(tmp_path / "m")
    assert record["score"] == pytest.approx(model.score(held[list("abc")], held["y"]), rel=1e-9)
    kind = "accuracy" if BY_NAME[loss].labels else "d2" if loss in ("poisson", "gamma") else "r2"
    assert record["score_kind"] == kind


@pytest.mark.parametrize(
    "more", [("--radius", 8), pytest.param(("--cv", 2, "--p", 2), marks=pytest.mark.slow)], ids=["fit", "cv"]
)
def test_a_quantile_leaves_its_part_of_the_rows_below(call, table, tmp_path, more):
    level = ("--loss", "quantile", "--quantile", 0.9, "--tol", 1e-3)
    result = call(*fit(table, tmp_path / "m", *level, "--hold-out", 0, *more))
    assert result.exit_code == 0, result.output
    frame = pd.read_csv(table)
    below = frame["y"] <= load(tmp_path / "m").predict(frame[list("abc")])
    assert 0.86 <= below.mean() <= 0.94
