from __future__ import annotations

import gzip

import numpy as np
import pytest

from projfree.datasets import load_movielens, load_school


def made_up_100k():
    """Rows of the right number and shape, nothing of the real data."""
    rng = np.random.default_rng(0)
    entries = rng.choice(943 * 1682, size=100_000, replace=False)
    entries[: 943 + 1682] = [*(np.arange(943) * 1682), *range(1682)]  # every user and every film at least once
    users, films = entries // 1682 + 1, entries % 1682 + 1
    return np.column_stack([users, films, rng.integers(1, 6, 100_000), 874_724_710 + np.arange(100_000)])


def write(folder, table, name="u.data", separator="\t", pack=False):
    text = "".join(separator.join(map(str, row)) + "\n" for row in table.tolist())
    if pack:
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode(), 1))
    else:
        (folder / name).write_text(text)


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("times", [False, True])
def test_made_up_100k(tmp_path, monkeypatch, pack, times):
    table = made_up_100k()
    write(tmp_path, table if times else table[:, :3], pack=pack)
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    ratings = load_movielens("100k")
    assert ratings.shape == (943, 1682)
    assert np.array_equal(ratings.row_ids[ratings.rows], table[:, 0])
    assert np.array_equal(ratings.col_ids[ratings.cols], table[:, 1])
    assert np.array_equal(ratings.values, table[:, 2])


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (np.ones((5, 4), dtype=int), "5 x 4"),
        (np.ones((100_000, 2), dtype=int), "100000 x 2"),
        (np.ones((100_000, 3), dtype=int), "1 users and 1 films"),
        (np.array([["a", "b", "c"]]), "'a'"),
    ],
)
def test_not_the_original(tmp_path, monkeypatch, table, why):
    write(tmp_path, table)
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=f"100,000 ratings of 943 users .*{why}"):
        load_movielens("100k")


def test_missing(monkeypatch):
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"ratings.dat or ratings_no_timestamp.dat .* ml-1m .* PROJFREE_DATA"):
        load_movielens("1m")
    with pytest.raises(FileNotFoundError, match=r"`load_school\(\)` needs school.npz"):
        load_school()


def check(ratings, n):
    assert len(ratings.rows) == len(ratings.cols) == len(ratings.values) == n
    assert np.array_equal(np.unique(ratings.rows), np.arange(ratings.shape[0]))
    assert np.array_equal(np.unique(ratings.cols), np.arange(ratings.shape[1]))
    assert set(ratings.values) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert (np.diff(ratings.row_ids) > 0).all()
    assert (np.diff(ratings.col_ids) > 0).all()
    assert len(np.unique(ratings.rows * ratings.shape[1] + ratings.cols)) == n


def test_real_100k(real_data):
    ratings = load_movielens("100k")
    check(ratings, 100_000)
    assert ratings.shape == (943, 1_682)
    assert (ratings.row_ids[ratings.rows[0]], ratings.col_ids[ratings.cols[0]], ratings.values[0]) == (196, 242, 3)


def test_real_1m(real_data):
    ratings = load_movielens("1m")
    check(ratings, 1_000_209)
    assert ratings.shape == (6_040, 3_706)
    assert ratings.col_ids[-1] == 3_952
    assert (ratings.row_ids[ratings.rows[0]], ratings.col_ids[ratings.cols[0]], ratings.values[0]) == (1, 1193, 5)


def test_real_school(real_data):
    school = load_school()
    assert school.X.shape == (15_362, 28)
    assert np.array_equal(np.unique(school.task), np.arange(139))
    assert np.isfinite(school.X).all()
    assert np.isfinite(school.y).all()


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"X": np.zeros((2, 2)), "y": np.zeros(2)}, "task"),
        ({"X": np.zeros((2, 2)), "y": np.zeros(2), "task": np.zeros(2)}, r"\(2, 2\) with 1 tasks"),
    ],
)
def test_other_school(tmp_path, monkeypatch, arrays, why):
    np.savez(tmp_path / "school.npz", **arrays)
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=why):
        load_school()
