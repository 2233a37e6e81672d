"""`projfree fit`, `predict` and `explain`: what they write, what they print, and their exit codes."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score

from projfree import ConstrainedClassifier, ConstrainedRegressor, load
from projfree.cli.fit import split_rows
from projfree.losses import BY_NAME


def fit(path, out, *more):
    return ("fit", path, "--target", "y", "--out", out, *more)


@pytest.fixture
def classes(table, tmp_path):
    frame = pd.read_csv(table)
    frame["y"] = np.array(["no", "perhaps", "yes"])[np.digitize(frame["y"], [-1, 1])]
    frame.to_csv(tmp_path / "classes.csv", index=False)
    return tmp_path / "classes.csv"


# ---------------------------------------------------------------- scores and the model that is saved


@pytest.mark.parametrize("kind", ["numbers", "classes"])
@pytest.mark.parametrize("more", [("--radius", 1), ()], ids=["radius", "search"])
def test_the_score_is_on_rows_held_out_and_the_model_is_fitted_on_all(call, table, classes, tmp_path, kind, more):
    path = table if kind == "numbers" else classes
    record = call.json(*fit(path, tmp_path / "m", *more, "--seed", 3, "--hold-out", 0.4))
    frame, (train, test) = pd.read_csv(path), split_rows(100, 0.4, 3)
    assert sorted([*train, *test]) == list(range(100))
    assert (record["rows"], record["held_out_rows"]) == (100, 40)
    X, y, radius = frame[list("abc")], frame["y"], record["radius"]
    cls, score = (ConstrainedRegressor, r2_score) if kind == "numbers" else (ConstrainedClassifier, accuracy_score)
    part, whole = (
        cls(radius=radius, standardize=not more).fit(X.iloc[rows], y.iloc[rows]) for rows in (train, np.arange(100))
    )
    assert record["score"] == pytest.approx(score(y.iloc[test], part.predict(X.iloc[test])), abs=1e-6)
    assert record["bound"] <= record["value"]
    np.testing.assert_allclose(load(tmp_path / "m").coef_, whole.coef_, atol=1e-4)


def test_without_a_hold_out_there_is_no_score(call, table, tmp_path):
    record = call.json(*fit(table, tmp_path / "m", "--hold-out", 0))
    assert (record["rows"], record["held_out_rows"], record["score"]) == (100, 0, None)
    model = load(tmp_path / "m")
    assert (model.radius_, model.scores_.shape[2]) == (record["radius"], 5)


def test_one_row_held_out_has_no_r2(call, tmp_path):
    (tmp_path / "rows.csv").write_text("a,y\n1,1\n2,3\n3,2\n4,5\n5,4\n")
    record = call.json(*fit(tmp_path / "rows.csv", tmp_path / "m", "--radius", 1))
    assert (record["held_out_rows"], record["score"]) == (1, None)


def test_the_size_of_the_ball(call, table, tmp_path):
    """A search scales the columns; a radius or a penalty that is given is on the columns as they are."""
    frame = pd.read_csv(table)
    ways = {"m": (), "n": ("--no-standardize",), "r": ("--radius", 2), "a": ("--alpha", 3)}
    for name, more in ways.items():
        assert call(*fit(table, tmp_path / name, *more)).exit_code == 0
    models = {name: load(tmp_path / name) for name in ways}
    assert [bool(model.standardize) for model in models.values()] == [True, False, False, False]
    assert models["r"].radius_ == 2.0
    np.testing.assert_allclose(
        models["a"].coef_, ConstrainedRegressor(alpha=3).fit(frame[list("abc")], frame["y"]).coef_
    )
    record = call.json(*fit(table, tmp_path / "p", "--cv", 3, "--p", "1,2"))
    assert record["p"] in (1.0, 2.0)
    assert (load(tmp_path / "p").p, load(tmp_path / "p").radius_) == (record["p"], record["radius"])


def test_two_values_are_classes_unless_the_loss_says_otherwise(call, table, tmp_path):
    frame = pd.read_csv(table)
    frame.assign(y=(frame["y"] > 0).astype(int)).to_csv(tmp_path / "t.csv", index=False)
    result = call(*fit(tmp_path / "t.csv", tmp_path / "m", "--C", 1))
    assert result.exit_code == 0, result.output
    assert re.search("'y' .* 0 and 1 .*--loss squared", result.output)
    assert load(tmp_path / "m").classes_.tolist() == [0, 1]
    assert call.json(*fit(tmp_path / "t.csv", tmp_path / "n", "--loss", "squared"))["score_kind"] == "r2"


def test_several_targets(call, table, tmp_path):
    frame = pd.read_csv(table).assign(z=lambda frame: frame["a"] - frame["b"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    record = call.json(*fit(tmp_path / "t.csv", tmp_path / "m", "--target", "z", "--radius", 20))
    assert record["features"] == 3
    predicted = call("predict", tmp_path / "m", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert predicted.exit_code == 0, predicted.output
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv"), frame[["y", "z"]], atol=1.0)
    frame.assign(z="text").to_csv(tmp_path / "t.csv", index=False)
    assert "'z'" in call(*fit(tmp_path / "t.csv", tmp_path / "n", "--target", "z")).output


@pytest.mark.parametrize("loss", BY_NAME)
def test_every_loss_is_a_choice_and_scored_as_its_estimator(call, table, tmp_path, loss):
    frame, path = pd.read_csv(table), tmp_path / "t.parquet"
    if BY_NAME[loss].labels:
        frame["y"] = np.where(frame["y"] > 0, "yes", "no")
    elif loss in ("poisson", "gamma"):
        frame["y"] = np.exp(frame["y"] / 4)
    frame.to_parquet(path)
    record = call.json(*fit(path, tmp_path / "m", "--loss", loss, "--radius", 1, "--tol", 1e-4))
    (train, test), kind = (
        split_rows(100, 0.2, 0),
        ConstrainedClassifier if BY_NAME[loss].labels else ConstrainedRegressor,
    )
    model = kind(loss, radius=1, tol=1e-4, random_state=0).fit(frame[list("abc")].iloc[train], frame["y"].iloc[train])
    assert record["score"] == pytest.approx(model.score(frame[list("abc")].iloc[test], frame["y"].iloc[test]), abs=5e-3)
    assert record["score_kind"] == (
        "accuracy" if BY_NAME[loss].labels else "d2" if loss in ("poisson", "gamma") else "r2"
    )
    assert call("predict", tmp_path / "m", path).exit_code == 0


def test_a_quantile_leaves_its_share_of_the_rows_below(call, table, tmp_path):
    level = ("--loss", "quantile", "--quantile", 0.9, "--tol", 1e-3, "--radius", 8)
    assert call(*fit(table, tmp_path / "m", *level)).exit_code == 0
    frame = pd.read_csv(table)
    assert 0.86 <= (frame["y"] <= load(tmp_path / "m").predict(frame[list("abc")])).mean() <= 0.94


def test_feature_groups(call, table, tmp_path):
    frame = pd.read_csv(table).assign(city=np.array(["Rome", "Oslo", "Bern"])[np.arange(100) % 3])
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("--norm", "group", "--p", 2, "--q", 1, "--radius", 2)
    for name, groups in (("m", "a,c"), ("n", "auto")):
        path = table if name == "m" else tmp_path / "t.csv"
        assert call(*fit(path, tmp_path / name, *words, "--feature-groups", groups)).exit_code == 0
    coef = load(tmp_path / "m").coef_
    assert np.hypot(coef[0], coef[2]) + abs(coef[1]) == pytest.approx(2.0)
    coef = load(tmp_path / "n").named_steps["model"].coef_
    assert np.abs(coef[:3]).sum() + np.linalg.norm(coef[3:]) == pytest.approx(2.0)


def test_a_tolerance_that_was_not_reached(call, classes, tmp_path):
    result = call(*fit(classes, tmp_path / "m", "--tol", "1e-15", "--max-iter", 1, "--radius", 3))
    assert result.exit_code == 1
    assert load(tmp_path / "m").n_iter_ == 1


def test_quiet_and_verbose(call, table, tmp_path):
    assert call(*fit(table, tmp_path / "a", "--quiet")).output == ""
    assert re.search(r"iteration +1 .* value ", call(*fit(table, tmp_path / "b", "--verbose")).output)
    assert call("predict", tmp_path / "a", table, "--out", tmp_path / "p.csv", "-q").output == ""
    shown = call(*fit(table, tmp_path / "c")).output
    assert "certified gap" in shown
    assert "\x1b" not in shown


# ---------------------------------------------------------------- predict and explain


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_a_prediction_may_be_in_any_order(call, table, tmp_path, kind):
    call(*fit(table, tmp_path / "m", "--radius", 3))
    frame = pd.read_csv(table)
    mixed, path = frame.assign(other="text")[["c", "other", "a", "b"]], tmp_path / f"mixed.{kind}"
    mixed.to_csv(path, index=False) if kind == "csv" else mixed.to_parquet(path)
    result = call("predict", tmp_path / "m", path)
    expected = load(tmp_path / "m").predict(frame[list("abc")])
    np.testing.assert_allclose([float(word) for word in result.output.split()], expected, rtol=1e-12)
    mixed.drop(columns="b").to_csv(tmp_path / "short.csv", index=False)
    assert "'b'" in call("predict", tmp_path / "m", tmp_path / "short.csv").output


def test_columns_without_names_are_counted(call, tmp_path):
    rows = np.random.default_rng(0).standard_normal((50, 4))
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "features.npy", rows[:, :3])
    assert call("fit", tmp_path / "rows.npy", "--target", "-1", "--out", tmp_path / "m").exit_code == 0
    result = call("predict", tmp_path / "m", tmp_path / "rows.npy")
    assert result.exit_code == 2
    assert re.search("3 columns.* got 4", result.output)
    assert call("predict", tmp_path / "m", tmp_path / "features.npy").exit_code == 0


def test_probabilities(call, classes, table, tmp_path):
    call(*fit(classes, tmp_path / "m", "--radius", 5))
    call("predict", tmp_path / "m", classes, "--proba", "--out", tmp_path / "p.csv")
    found, labels = pd.read_csv(tmp_path / "p.csv"), ["no", "perhaps", "yes"]
    assert list(found.columns) == ["prediction", *(f"probability of {label}" for label in labels)]
    shares = found.iloc[:, 1:].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert [labels[k] for k in shares.argmax(axis=1)] == found["prediction"].tolist()
    call(*fit(table, tmp_path / "n", "--radius", 5))
    assert "--proba" in call("predict", tmp_path / "n", table, "--proba").output


def test_explain_runs_nothing(call, table):
    words = ("explain", table, "--target", "y", "--radius", 2)
    record = json.loads(call(*words, "--json").output)
    assert f"{record['solver']}: {record['why']}" in call(*words).output


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--cv", 3, "--radius", 2), ["--cv", "--radius"]),
        (("--radius", 3, "--alpha", 2), ["--radius", "--alpha"]),
        (("--C", 3), ["--C", "squared"]),
        (("--radius", 0), ["--radius", "0"]),
        (("--p", "1,2", "--radius", 2), ["--p must be one number", "'1,2'", "leave out"]),
        (("--p", "x"), ["--p", "'x'"]),
        (("--p", 0.5, "--radius", 1), ["--p", "0.5"]),
        (("--norm", "round"), ["--norm", "'round'"]),
        (("--loss", "round"), ["--loss", "'round'"]),
        (("--impute", "mean"), ["--impute", "'mean'"]),
        (("--q", 2), ["--q", "group"]),
        (("--quantile", 0.3), ["--quantile", "squared"]),
        (("--feature-groups", "auto"), ["--feature-groups", "--norm"]),
        (("--norm", "group", "--feature-groups", "a,b;b,c"), ["--feature-groups", "'b'"]),
        (("--norm", "group", "--feature-groups", "a,z"), ["--feature-groups", "'z'"]),
        (("--time-limit", 0), ["--time-limit", "0"]),
        (("--drop", "z"), ["--drop", "'z'"]),
        (("--target", "q"), ["--target", "'q'"]),
        (("--loss", "logistic"), ["'y'", "--loss squared"]),
    ],
)
def test_bad_options_are_one_sentence_and_write_nothing(call, table, tmp_path, words, told):
    refused = call(*fit(table, tmp_path / "m", *words))
    assert refused.exit_code == 2, refused.output
    assert all(word in refused.output for word in told), refused.output
    assert len(refused.output.strip().splitlines()) == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("words", [("--cv", 1), ("--tol", -1), ("--max-iter", 0), ("--hold-out", 1), ("--seed", -1)])
def test_options_have_ranges(call, table, tmp_path, words):
    refused = call(*fit(table, tmp_path / "m", *words))
    assert refused.exit_code == 2
    assert words[0] in refused.output


def test_a_fault_inside_is_not_called_bad_input(call, table, tmp_path, monkeypatch):
    def broken(self, X, y=None, sample_weight=None):
        return {}["missing"]

    monkeypatch.setattr(ConstrainedRegressor, "fit", broken)
    result = call(*fit(table, tmp_path / "m", "--radius", 1))
    assert result.exit_code == 3
    assert "KeyError: 'missing'" in result.output
    assert "Traceback" not in result.output
    assert "Traceback" in call(*fit(table, tmp_path / "m", "--radius", 1, "--debug")).output


def test_an_alias_of_a_norm_needs_no_exponent(call, table, tmp_path):
    record = call.json(*fit(table, tmp_path / "m", "--norm", "l1", "--radius", 2))
    assert record["p"] == 1.0
    assert abs(np.abs(load(tmp_path / "m").coef_).sum() - 2.0) < 1e-9
    assert call.json(*fit(table, tmp_path / "s", "--norm", "l1"))["p"] == 1.0
    assert call("explain", table, "--target", "y", "--norm", "l1").exit_code == 0


def test_a_target_that_is_named_twice_counts_once(call, table, tmp_path):
    assert call.json(*fit(table, tmp_path / "m", "--target", "y", "--radius", 2))["features"] == 3


def test_columns_may_have_names_of_any_kind(call, table, tmp_path):
    frame = pd.read_csv(table).rename(columns={"a": "self", "b": "index", "c": "=c"}).assign(d=list("xy") * 50)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert call(*fit(tmp_path / "t.csv", tmp_path / "m", "--radius", 2)).exit_code == 0
    assert call("predict", tmp_path / "m", tmp_path / "t.csv").exit_code == 0
