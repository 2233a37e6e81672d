"""`projfree complete` and `recommend`: columns of any names, ids, features, checkpoints, new users."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from projfree import MatrixCompletion, load, persist


def complete(path, out, *more):
    return ("complete", path, "--rank", 2, "--out", out, *more)


def test_the_report_is_about_ratings_held_out(call, ratings, tmp_path):
    record = call.json(*complete(ratings, tmp_path / "m", "--seed", 3))
    frame = pd.read_csv(ratings).drop_duplicates(["user", "item"], keep="last")
    held = np.isin(np.arange(len(frame)), np.random.default_rng(3).permutation(len(frame))[: round(0.1 * len(frame))])
    expected = MatrixCompletion(rank=2, certify=False, random_state=3).fit(frame[~held]).report(frame[held])
    for name in ("rmse", "mae", "precision", "recall", "coverage"):
        assert record[name] == pytest.approx(getattr(expected, name)), name
    assert record["held_out_ratings"] == round(0.1 * len(frame))
    assert len(load(tmp_path / "m").ratings_) == len(frame)  # the model that is saved knows all ratings
    assert f"{expected.rmse:.6g}" in call(*complete(ratings, tmp_path / "n", "--seed", 3)).output
    assert call.json(*complete(ratings, tmp_path / "o", "--hold-out", 0))["rmse"] is None


def test_a_tolerance_that_is_not_reached_is_told_by_the_exit_code(call, ratings, tmp_path):
    for tol, code in ((1e-15, 1), (0.9, 0)):
        words = ("--radius", 2, "--tol", tol, "--time-limit", 2)
        assert call(*complete(ratings, tmp_path / f"m{code}", *words)).exit_code == code
        assert (load(tmp_path / f"m{code}").relative_gap_ <= tol) == (code == 0)


def test_columns_of_other_names_are_those_that_predict_reads(call, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"stars": rng.random(90), "film": rng.integers(0, 9, 90), "who": rng.integers(0, 9, 90)})
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    for name, columns in (("m", "who,film,stars"), ("n", "2,1,0")):
        words = complete(tmp_path / "ratings.csv", tmp_path / name, "--columns", columns, "--hold-out", 0)
        assert call(*words).exit_code == 0
        assert load(tmp_path / name).columns == ("who", "film", "stars")
    shown = call("predict", tmp_path / "m", tmp_path / "ratings.csv")
    np.testing.assert_allclose(
        np.array(shown.output.split(), float), load(tmp_path / "m").predict(frame[["who", "film"]])
    )
    for columns in ("who,film", "who,film,moons"):
        refused = call(*complete(tmp_path / "ratings.csv", tmp_path / "o", "--columns", columns))
        assert refused.exit_code == 2
        assert "--columns" in refused.output


# ---------------------------------------------------------------- ids and features


def test_ids_that_numbers_would_change_stay_text(call, tmp_path):
    users = ["007", "07", "7"]
    lines = [f"{user},{item},{1 + (3 * i + item) % 5}" for i, user in enumerate(users) for item in range(8)]
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    (tmp_path / "people.csv").write_text("user,age\n007,3\n7,4.5\n07,5\n10,6\n")
    for name, more in (("m", ()), ("n", ("--user-features", tmp_path / "people.csv"))):
        done = call(*complete(tmp_path / "ratings.csv", tmp_path / name, "--hold-out", 0, *more))
        assert done.exit_code == 0, done.output
    model = load(tmp_path / "m")
    assert model.user_ids_.tolist() == users
    assert model.item_ids_.dtype.kind == "i"
    assert load(tmp_path / "n").user_ids_.tolist() == ["007", "07", "10", "7"]
    (tmp_path / "pairs.csv").write_text("user,item\n" + "\n".join(f"{user},0" for user in users) + "\n")
    shown = call("predict", tmp_path / "m", tmp_path / "pairs.csv")
    np.testing.assert_allclose(np.array(shown.output.split(), float), model.predict([(user, 0) for user in users]))


def test_of_pairs_that_are_rated_several_times_the_last_counts(call, ratings, tmp_path):
    once = pd.read_csv(ratings).drop_duplicates(["user", "item"], keep="last")
    once.to_csv(tmp_path / "once.csv", index=False)
    pd.concat([once.assign(rating=9.0), once.assign(rating=-9.0), once]).to_csv(tmp_path / "thrice.csv", index=False)
    records = [call.json(*complete(tmp_path / f"{name}.csv", tmp_path / "m", "--force")) for name in ("once", "thrice")]
    assert records[0] == records[1]
    told = call(*complete(tmp_path / "thrice.csv", tmp_path / "n")).output
    assert f"{2 * len(once)} earlier rows" in " ".join(told.split())


def test_features(call, tmp_path):
    """Text is encoded; users without ratings are in the model, and are predicted and recommended to."""
    rng = np.random.default_rng(0)
    who, film = rng.integers(0, 30, 800), rng.integers(0, 12, 800)
    sex, genre = np.where(np.arange(40) % 2, "F", "M"), np.where(np.arange(12) % 3, "crime", "love")
    stars = 3.0 + 1.5 * (sex[who] == "F") * (genre[film] == "love") + 0.3 * rng.standard_normal(800)
    pd.DataFrame({"who": who, "film": film, "stars": stars}).to_csv(tmp_path / "ratings.csv", index=False)
    people = pd.DataFrame({"sex": sex, "age": rng.random(40), "who": range(40)})
    people.loc[[3, 7], "age"], people.loc[5, "sex"] = np.nan, None
    people.to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame({"id": range(12), "genre": genre}).to_csv(tmp_path / "films.csv", index=False)
    words = complete(tmp_path / "ratings.csv", tmp_path / "m", "--columns", "who,film,stars")
    tables = ("--user-features", tmp_path / "people.csv", "--item-features", tmp_path / "films.csv")
    assert call(*words, *tables).exit_code == 0
    model = load(tmp_path / "m")
    assert set(model.user_features_.names) == {"sex=(missing)", "sex=F", "sex=M", "age"}
    assert model.item_features_.names == ("genre=crime", "genre=love")
    assert len(model.user_ids_) == 40
    woman, man = model.predict(([31, 32], [0, 0]))  # users without ratings, a film of love
    assert woman > man + 0.5
    assert call.json("recommend", tmp_path / "m", "--n", 2, "--out", tmp_path / "r.csv")["users"] == 40
    for text, told in (
        ("who,age\n1,2\n", "user_features` must have a row for each"),
        ("who,age\n1,2\n2,inf\n", "'age'"),
        ('who,age\n1,"2,5"\n2,"3,5"\n', "'2,5'"),
        ("who\n1\n2\n", "'who' alone"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        refused = call(*words, "--force", "--user-features", tmp_path / "bad.csv")
        assert refused.exit_code == 2
        assert told.replace("user_features`", "--user-features") in " ".join(refused.output.split())


# ---------------------------------------------------------------- recommendations


def test_recommendations_of_a_saved_model(call, ratings, table, tmp_path):
    assert call(*complete(ratings, tmp_path / "m")).exit_code == 0
    assert call("recommend", tmp_path / "m", "--n", 3, "--out", tmp_path / "r.csv").exit_code == 0
    lists, model = pd.read_csv(tmp_path / "r.csv"), load(tmp_path / "m")
    assert list(lists.columns) == ["user", "place", "item", "rating"]
    assert lists["user"].unique().tolist() == model.user_ids_.tolist()
    for user, own in lists.groupby("user"):
        items, scores = model.recommend(user, 3)
        assert own["item"].tolist() == items.tolist()
        np.testing.assert_allclose(own["rating"], scores, atol=1e-4)
    assert call("recommend", tmp_path / "m", "--out", tmp_path / "r.csv").exit_code == 2  # it exists
    call("fit", table, "--target", "y", "--radius", 1, "--out", tmp_path / "linear")
    assert "linear" in call("recommend", tmp_path / "linear", "--out", tmp_path / "s.csv").output


def test_new_users_are_folded_in(call, ratings, tmp_path):
    assert call(*complete(ratings, tmp_path / "m", "--radius", 5)).exit_code == 0
    (tmp_path / "new.csv").write_text("item,user,rating\n1,x,0.9\n2,x,0.1\n3,y,0.5\n")
    words = ("recommend", tmp_path / "m", "--ratings", tmp_path / "new.csv", "--n", 20)
    record = call.json(*words, "--out", tmp_path / "r.csv")
    lists, model = pd.read_csv(tmp_path / "r.csv"), load(tmp_path / "m")
    assert record["users"] == lists["user"].nunique() == 2
    own = lists[lists["user"] == "x"]
    assert sorted(own["item"]) == sorted(set(model.item_ids_) - {1, 2})
    scores = dict(zip(model.item_ids_, model.fold_in({1: 0.9, 2: 0.1}), strict=True))
    inside = np.clip(own["rating"], *model.rating_range_)  # predictions of items beside a list are clipped
    np.testing.assert_allclose(inside, [scores[item] for item in own["item"]], atol=1e-4)
    assert own["item"].tolist() == model.fold_in({1: 0.9, 2: 0.1}, n=20)[0].tolist()


# ---------------------------------------------------------------- checkpoints


@pytest.fixture
def resume(call, ratings, tmp_path, monkeypatch):
    """A run that was interrupted in its second sweep, and a function that runs it again with further words."""
    words = complete(ratings, tmp_path / "m", "--checkpoint", tmp_path / "c")

    class Bar:
        stage = ""

        def __init__(self, **settings):
            pass

        def begin(self, stage, most):
            self.stage = stage

        def __call__(self, run):
            if self.stage == "sweeps" and run.iteration == 2:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("projfree.cli.complete.ProgressBar", Bar)
        result = call(*words)
    assert result.exit_code == 130
    assert "c'" in result.output
    assert persist.exists(tmp_path / "c")
    assert not persist.exists(tmp_path / "m")
    return lambda *more: call(*words, *more)


def test_the_same_command_goes_on(resume, call, ratings, tmp_path):
    assert resume().exit_code == 0
    assert call(*complete(ratings, tmp_path / "whole")).exit_code == 0
    one, two = (load(tmp_path / name) for name in ("m", "whole"))
    np.testing.assert_array_equal(one.factors_.left, two.factors_.left)
    assert one.n_iter_ == two.n_iter_


def test_a_checkpoint_of_another_problem_is_refused(resume, tmp_path):
    other = resume("--p", 1.5)
    assert other.exit_code == 2
    assert "another problem" in other.output
    assert persist.exists(tmp_path / "c")


def test_a_checkpoint_never_replaces_something_else(call, ratings, tmp_path, unchanged):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "weights.bin").write_text("mine")
    with unchanged():
        for place, told in (("mine", "weights.bin"), ("ratings.csv", "is a file"), ("m", "would overwrite")):
            refused = call(*complete(ratings, tmp_path / "m", "--force", "--checkpoint", tmp_path / place))
            assert refused.exit_code == 2, refused.output
            assert told in refused.output, refused.output


def test_a_table_without_the_columns_of_the_fit_is_named(call, ratings, table, tmp_path):
    assert call("complete", ratings, "--out", tmp_path / "m").exit_code == 0
    result = call("predict", tmp_path / "m", table)
    assert result.exit_code == 2
    assert "no column 'user'" in result.output
