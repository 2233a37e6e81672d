"""`projfree data`: where data sets are, without a network."""

from __future__ import annotations


def test_data(call, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    assert call.json("data", "list")["movielens-100k"]["where"] == "not here"
    assert "adult" in call("data", "list").output
    assert "adult.npz" in call("data", "get", "adult").output
    for words, told in (
        (("get", "x"), "'x'"),
        (("get", "school"), "school.npz"),
    ):
        refused = call("data", *words)
        assert refused.exit_code == 2
        assert told in refused.output


def test_a_packaged_table_is_written_once(call, tmp_path):
    place = tmp_path / "adult.csv"
    assert "48,842 rows" in call("data", "get", "adult", "--out", place).stdout
    first, second = place.read_text(encoding="utf-8").splitlines()[:2]
    assert (first.split(",")[-1], second.split(",")[-1]) == ("income", "<=50K")
    again = call("data", "get", "adult", "--out", place)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    other = call("data", "get", "year", "--out", tmp_path / "year.csv")
    assert other.exit_code == 2
    assert "year" in other.stderr
    assert not (tmp_path / "year.csv").exists()
