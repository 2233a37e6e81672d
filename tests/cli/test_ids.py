"""Ids in text files: what is read as a number and what as text, and pairs that occur several times."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from projfree import load
from projfree.cli.id_columns import as_ids


def _ratings(path, users, times=8):
    lines = [
        f"{user},{item},{1 + (3 * i + j) % 5}" for i, user in enumerate(users) for j, item in enumerate(range(times))
    ]
    path.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("column", "ids"),
    [
        (["3", "-2", "0", "3"], [3, -2, 0, 3]),
        (["3.0", "4.0"], [3, 4]),
        (["9223372036854775807"], [2**63 - 1]),
        (["007", "07", "7"], ["007", "07", "7"]),
        (["+7", "7"], ["+7", "7"]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["1.5", "2"], ["1.5", "2"]),
        (["1.0", "1"], ["1.0", "1"]),
        (["-0", "0"], ["-0", "0"]),
        (["1e3", "5"], ["1e3", "5"]),
    ],
)
def test_numbers_where_they_say_the_same(column, ids):
    assert as_ids(pd.Series(column, index=range(5, 5 + len(column)), name="user")).tolist() == ids


@pytest.mark.parametrize("users", [["007", "07", "7"], ["18446744073709551617", "3", "4"]])
def test_ids_that_numbers_would_change_stay_as_they_are(call, tmp_path, users):
    file = _ratings(tmp_path / "ratings.csv", users)
    words = ("complete", file, "--hold-out", 0, "--rank", 2, "--recommend", 2, "--out", tmp_path / "m")
    done = call(*words)
    assert done.exit_code == 0, done.output
    model = load(tmp_path / "m")
    assert model.user_ids_.tolist() == sorted(users)
    assert model.item_ids_.dtype.kind == "i"
    (tmp_path / "pairs.csv").write_text("user,item\n" + "\n".join(f"{user},0" for user in users) + "\n")
    shown = call("predict", tmp_path / "m", tmp_path / "pairs.csv")
    np.testing.assert_allclose(np.array(shown.output.split(), float), model.predict([(user, 0) for user in users]))


def test_ids_of_features_are_text_where_those_of_ratings_are(call, tmp_path):
    file = _ratings(tmp_path / "ratings.csv", ["07", "8", "9"])
    (tmp_path / "people.csv").write_text("user,age\n07,3\n8,4.5\n9,5\n10,6\n")
    words = ("complete", file, "--hold-out", 0, "--rank", 2, "--user-features", tmp_path / "people.csv")
    done = call(*words, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "m").user_ids_.tolist() == ["07", "10", "8", "9"]
    file = _ratings(tmp_path / "ratings.csv", ["x7", "8", "9"])
    (tmp_path / "people.csv").write_text("age,user\n3,x7\n4.5,8\n5,9\n")
    assert call(*words, "--out", tmp_path / "n").exit_code == 0


def test_pairs_that_occur_several_times_are_not_held_out_and_fitted_at_once(call, ratings, tmp_path):
    once = pd.read_csv(ratings).drop_duplicates(["user", "item"], keep="last")
    once.to_csv(tmp_path / "once.csv", index=False)
    pd.concat([once.assign(rating=9.0), once.assign(rating=-9.0), once]).to_csv(tmp_path / "thrice.csv", index=False)
    found = []
    for name in ("once", "thrice"):
        words = ("complete", tmp_path / f"{name}.csv", "--rank", 2, "--out", tmp_path / name)
        found.append(json.loads(call(*words, "--json").output))
        said = call(*words, "--force").output
        left_out = (
            f"Of pairs that are rated several times the last rating counts; {2 * len(once)} earlier rows are left"
        )
        assert (left_out in " ".join(said.split())) == (name == "thrice")
    assert found[1] == {**found[0], "model": found[1]["model"]}
