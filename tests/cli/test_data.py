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
