"""Parquet files, folders of them, and CSV turned into them."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import Growing, Huber, LpBall, Minibatch, Objective, PrimalAveraging, ProjectedGradient, as_data, minimize
from projfree.data import ChunkedData

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, D = 700, 6
NAMES = [f"x{j}" for j in range(D)]


def columns_of(X, **more):
    return pa.table({**{name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(NAMES)}, **more})


@pytest.fixture
def stored(tmp_path, held):
    """One file, with row groups that end where no block ends."""
    X, y, weight = held
    pq.write_table(columns_of(X, target=y, weight=weight), tmp_path / "x.parquet", row_group_size=90)
    return tmp_path / "x.parquet"


@pytest.fixture
def folder(tmp_path, held):
    X, y, weight = held
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    places = ["a.parquet", "b.parquet", "deep/c.parquet", "z.parquet"]
    for name, rows in zip(places, [(0, 100), (100, 333), (333, 333), (333, N)], strict=True):
        rows = slice(*rows)
        part = columns_of(X[rows], target=y[rows], weight=weight[rows])
        pq.write_table(part, tmp_path / "parts" / name, row_group_size=64)
    (tmp_path / "parts" / "_metadata.parquet").write_text("not a table")
    return tmp_path / "parts"


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("where", ["stored", "folder"])
@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "compiled"])
def test_runs_agree_with_memory(small, monkeypatch, request, held, where, compiled, intercept):
    if compiled:
        monkeypatch.setattr("projfree.data.tables.NATIVE_BYTES", 0)
    X, y, weight = held
    data = as_data(request.getfixturevalue(where), "target", "weight")
    assert isinstance(data, ChunkedData)
    assert data.source.columns == NAMES
    runs = [
        minimize(Objective(Huber(0.7), d, fit_intercept=intercept), LpBall(1.5, radius=1.0), max_iter=12)
        for d in (data, as_data(np.asfortranarray(X), y, weight))
    ]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert (runs[0].value, runs[0].bound, runs[0].n_passes) == (runs[1].value, runs[1].bound, runs[1].n_passes)


def test_columns_and_several_targets(stored, held):
    X, y, weight = held
    data = as_data(str(stored), ["target", "weight"], columns=["x3", "x1"])
    np.testing.assert_array_equal(data.y, np.stack([y, weight], axis=1))
    np.testing.assert_allclose(data.apply(np.array([1.0, 10.0])), X[:, 3] + 10 * X[:, 1], rtol=1e-14, atol=1e-14)
    given = as_data(stored, y, columns=["x0", "target"])
    np.testing.assert_allclose(given.apply(np.array([0.0, 1.0])), y)


def test_other_numbers(tmp_path):
    kinds = {"a": np.array([1, 2, 3], np.int8), "b": np.array([True, False, True]), "c": np.ones(3, np.float32)}
    pq.write_table(pa.table(kinds), tmp_path / "x.parquet")
    data = as_data(tmp_path / "x.parquet", np.zeros(3))
    assert data.source.dtype == np.float64
    np.testing.assert_array_equal(data.apply(np.array([1.0, 10.0, 100.0])), [111, 102, 113])
    single = as_data(tmp_path / "x.parquet", np.zeros(3), columns=["c"])
    assert single.source.dtype == np.float32


@pytest.mark.parametrize("solver", [PrimalAveraging(sampling=Growing(2)), ProjectedGradient(sampling=Minibatch(300))])
def test_samples_are_runs_of_rows(small, stored, solver):
    data = as_data(stored, "target", "weight")
    rows = data.sample(300, np.random.default_rng(0))
    assert len(set(rows.tolist())) == 300
    assert np.sum(np.diff(rows) != 1) <= 3
    result = minimize(Objective(Huber(0.7), data), LpBall(1.5, radius=1.0), solver, max_iter=20)
    assert result.bound <= result.value
