"""`projfree complete`: exit codes, columns of any names, checkpoints, and what its bar shows."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from projfree import load, persist
from projfree.cli import complete as command


def test_a_tolerance_that_is_not_reached_is_told_by_the_exit_code(call, ratings, tmp_path):
    words = ("complete", ratings, "--radius", 2, "--rank", 2, "--json")
    for tol, code in ((1e-15, 1), (0.9, 0)):
        result = call(*words, "--tol", tol, "--time-limit", 2, "--out", tmp_path / f"m{code}")
        assert result.exit_code == code, result.output
        assert (json.loads(result.output)["relative_gap"] <= tol) == (code == 0)
        assert persist.exists(tmp_path / f"m{code}")
    assert call(*words, "--out", tmp_path / "m").exit_code == 0  # no tolerance was asked for


def test_columns_of_other_names_are_those_that_predict_reads(call, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"stars": rng.random(90), "film": rng.integers(0, 9, 90), "who": rng.integers(0, 9, 90)})
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    words = ("complete", tmp_path / "ratings.csv", "--rank", 2, "--hold-out", 0, "--quiet")
    assert call(*words, "--columns", "who,film,stars", "--out", tmp_path / "m").exit_code == 0
    model = load(tmp_path / "m")
    assert model.columns == ("who", "film", "stars")
    shown = call("predict", tmp_path / "m", tmp_path / "ratings.csv")
    assert shown.exit_code == 0, shown.output
    np.testing.assert_allclose(np.array(shown.output.split(), float), model.predict(frame[["who", "film"]]))
    frame[["film", "who"]].to_csv(tmp_path / "pairs.csv", index=False)
    assert call("predict", tmp_path / "m", tmp_path / "pairs.csv").output == shown.output
    assert call(*words, "--columns", "2,1,0", "--out", tmp_path / "n").exit_code == 0
    assert load(tmp_path / "n").columns == ("who", "film", "stars")


def test_text_that_looks_like_numbers_in_a_new_file(call, tmp_path):
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + "a1,up,3\n07,up,1\n07,heat,2\na1,heat,5\n" * 6)
    assert call("complete", tmp_path / "ratings.csv", "--hold-out", 0, "--out", tmp_path / "m").exit_code == 0
    (tmp_path / "new.csv").write_text("user,item\n07,up\n")
    model, found = load(tmp_path / "m"), call("predict", tmp_path / "m", tmp_path / "new.csv")
    assert float(found.output) == pytest.approx(model.predict([("07", "up")])[0])
    (tmp_path / "numbers.csv").write_text("user,item,rating\n" + "1,2,3\n1,3,4\n2,2,1\n" * 4)
    assert call("complete", tmp_path / "numbers.csv", "--out", tmp_path / "n").exit_code == 0
    refused = call("predict", tmp_path / "n", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert refused.exit_code == 2
    assert "`users` must be whole numbers, as in the fit, got text, such as '07'" in refused.output
    assert not (tmp_path / "p.csv").exists()


def test_held_out_ratings_are_reported(call, ratings, tmp_path):
    words = ("complete", ratings, "--rank", 2, "--seed", 3, "--recommend", 4)
    record = json.loads(call(*words, "--json", "--out", tmp_path / "m").output)
    frame = pd.read_csv(ratings).drop_duplicates(["user", "item"], keep="last")
    order = np.random.default_rng(3).permutation(len(frame))
    found = load(tmp_path / "m").report(frame.iloc[np.sort(order[: round(0.1 * len(frame))])], k=4)
    for name in ("rmse", "mae", "precision", "recall", "coverage"):
        assert record[name] == pytest.approx(getattr(found, name)), name
    assert (record["k"], record["held_out_ratings"]) == (4, round(0.1 * len(frame)))
    shown = call(*words, "--out", tmp_path / "n").output
    assert f"held-out RMSE  {found.rmse:.4f}, mean absolute error {found.mae:.4f}" in shown
    assert "lists of 4" in shown
    none = json.loads(call(*words, "--json", "--hold-out", 0, "--out", tmp_path / "o").output)
    assert none["rmse"] is None


# ---------------------------------------------------------------- checkpoints


class Pressed:
    """A bar that presses Ctrl-C at a sweep of the fit itself, and counts the sweeps that it sees in each stage."""

    def __init__(self, at=None):
        self.at, self.stage, self.seen = at, "", []

    def begin(self, stage, most):
        self.stage = stage

    def __call__(self, run):
        self.seen.append(self.stage)
        if self.stage == "sweeps" and run.iteration == self.at:
            raise KeyboardInterrupt


@pytest.fixture
def interrupted(call, ratings, tmp_path, monkeypatch):
    """A run that was interrupted in its second sweep, and a function that runs it with further words."""
    words = ("complete", ratings, "--rank", 2, "--checkpoint", tmp_path / "c", "--out", tmp_path / "m")

    def run(*more, at=None):
        bar = Pressed(at)
        monkeypatch.setattr(command, "bar", lambda label: bar)
        return call(*words, *more), bar

    result, bar = run(at=2)
    assert result.exit_code == 130
    assert re.search("Interrupted; the same command goes on from .*c'", result.output)
    assert "path" in bar.seen
    assert persist.exists(tmp_path / "c")
    assert not persist.exists(tmp_path / "m")
    return run


def test_the_same_command_goes_on_after_the_choice_of_the_radius(interrupted, call, ratings, tmp_path):
    resumed, bar = interrupted()
    assert resumed.exit_code == 0, resumed.output
    assert bar.seen == ["sweeps"]  # the third of three
    assert call("complete", ratings, "--rank", 2, "--out", tmp_path / "whole").exit_code == 0
    one, two = (load(tmp_path / name) for name in ("m", "whole"))
    np.testing.assert_array_equal(one.factors_.left, two.factors_.left)
    assert one.n_iter_ == two.n_iter_ == 3


def test_the_checkpoint_of_another_problem_is_one_sentence(interrupted, tmp_path):
    other, _ = interrupted("--rank", 3)
    assert other.exit_code == 2
    assert "is of another problem: its solver is Alternating" in other.output
    assert "begin anew with this folder removed" in " ".join(other.output.split())
    assert persist.exists(tmp_path / "c")


def test_recommendations_of_a_saved_model(call, ratings, table, tmp_path):
    words = ("complete", ratings, "--rank", 2, "--recommend", 3, "--out", tmp_path / "m")
    assert call(*words).exit_code == 0
    done = call("recommend", tmp_path / "m", "--n", 3, "--out", tmp_path / "r.csv")
    assert done.exit_code == 0, done.output
    assert "recommendations written to" in done.output
    assert (tmp_path / "r.csv").read_text() == (tmp_path / "m.recommendations.csv").read_text()
    assert call("recommend", tmp_path / "m", "--out", tmp_path / "r.csv").exit_code == 2  # it exists
    assert call("fit", table, "--target", "y", "--out", tmp_path / "linear", "--quiet").exit_code == 0
    refused = call("recommend", tmp_path / "linear", "--out", tmp_path / "s.csv")
    assert refused.exit_code == 2
    assert "holds a model that recommends nothing" in " ".join(refused.output.split())


def test_ctrl_c_during_the_choice_of_the_radius(call, ratings, tmp_path, monkeypatch):
    def press(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "bar", lambda label: press)
    words = ("complete", ratings, "--rank", 2, "--checkpoint", tmp_path / "c")
    result = call(*words, "--out", tmp_path / "m")
    assert result.exit_code == 130
    assert "Interrupted; nothing was written." in result.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ratings.csv"]


def test_a_checkpoint_never_replaces_something_else(call, ratings, tmp_path, unchanged):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "weights.bin").write_text("mine")
    words = ("complete", ratings, "--rank", 2, "--out", tmp_path / "m", "--force")
    with unchanged:
        for place, sentence in (
            ("mine", "holds 'weights.bin'; choose another path"),
            ("ratings.csv", "is a file; choose another path"),
            ("m", "would overwrite what is read from"),
        ):
            refused = call(*words, "--checkpoint", tmp_path / place)
            assert refused.exit_code == 2, refused.output
            assert sentence in refused.output, refused.output


# ---------------------------------------------------------------- the bar


def test_features(call, tmp_path):
    """Text is encoded; users without ratings are in the model, and are predicted and recommended to."""
    rng = np.random.default_rng(0)
    who, film = rng.integers(0, 30, 400), rng.integers(0, 12, 400)
    sex, genre = np.where(np.arange(40) % 2, "F", "M"), np.where(np.arange(12) % 3, "crime", "love")
    stars = 3.0 + 1.5 * (sex[who] == "F") * (genre[film] == "love") + 0.3 * rng.standard_normal(400)
    pd.DataFrame({"who": who, "film": film, "stars": stars}).to_csv(tmp_path / "ratings.csv", index=False)
    pd.DataFrame({"sex": sex, "age": rng.random(40), "who": range(40)}).to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame({"id": range(12), "genre": genre}).to_csv(tmp_path / "films.csv", index=False)
    words = ("complete", tmp_path / "ratings.csv", "--columns", "who,film,stars", "--rank", 3, "--recommend", 2)
    tables = ("--user-features", tmp_path / "people.csv", "--item-features", tmp_path / "films.csv")
    found = call(*words, *tables, "--json", "--out", tmp_path / "m")
    assert found.exit_code == 0, found.output
    model = load(tmp_path / "m")
    assert model.user_features_.names == ("sex=F", "sex=M", "age")
    assert model.item_features_.names == ("genre=crime", "genre=love")
    assert len(model.user_ids_) == 40
    woman, man = model.predict(([31, 32], [0, 0]))  # users without ratings, a film of love
    assert woman > man + 0.5
    assert pd.read_csv(tmp_path / "m.recommendations.csv")["user"].nunique() == 40
    assert "certified gap" in call(*words, *tables, "--out", tmp_path / "n").output
    (tmp_path / "short.csv").write_text("who,age\n1,2\n")
    refused = call(*words, "--user-features", tmp_path / "short.csv", "--out", tmp_path / "o")
    assert refused.exit_code == 2
    assert "`user_features` must have a row for each of the users in the ratings, got none for 0" in refused.output
    (tmp_path / "gaps.csv").write_text("who,age\n1,2\n2,inf\n")
    refused = call(*words, "--user-features", tmp_path / "gaps.csv", "--out", tmp_path / "o")
    assert "is infinite in row 2; leave it empty where it is not known" in " ".join(refused.output.split())
    people = pd.read_csv(tmp_path / "people.csv")
    people.loc[[3, 7], "age"], people.loc[5, "sex"] = np.nan, None
    people.to_csv(tmp_path / "gaps.csv", index=False)
    assert call(*words, "--user-features", tmp_path / "gaps.csv", "--out", tmp_path / "with gaps").exit_code == 0
    features = load(tmp_path / "with gaps").user_features_
    assert features.names == ("sex=(missing)", "sex=F", "sex=M", "age")
    assert np.isnan(features.on.toarray()[:, 3]).nonzero()[0].tolist() == [3, 7]
    (tmp_path / "commas.csv").write_text('who,age\n1,"2,5"\n2,"3,5"\n')
    refused = call(*words, "--user-features", tmp_path / "commas.csv", "--out", tmp_path / "o")
    assert "column 'age' holds numbers with decimal commas, such as '2,5'" in refused.output
    (tmp_path / "ids.csv").write_text("who\n1\n2\n")
    refused = call(*words, "--user-features", tmp_path / "ids.csv", "--out", tmp_path / "o")
    assert "must have a column of ids and others with features, got 'who' alone" in refused.output
