"""Folders of Parquet files that workers read."""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from projfree import ConstrainedClassifier, ConstrainedRegressor, as_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    X, y, weight = table
    path = tmp_path_factory.mktemp("parts")
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        s=weight, number=X @ [1.0, 2.0, 0.0, -1.0, 0.5], label=np.where(y > 0, "yes", "no")
    )
    for k, part in enumerate(np.array_split(np.arange(240), 3)):
        frame.iloc[part].to_parquet(path / f"part-{k}.parquet")
    return path, frame


def test_workers_read_their_files(client, folder):
    path, frame = folder
    names = list("abcde")
    data = as_data(path, "number", "s", columns=names, client=client)
    assert (data.n, len(data.facts), data.feature_names) == (240, 3, tuple(names))
    model = ConstrainedRegressor(radius=1.0, tol=1e-8).fit(data)
    other = ConstrainedRegressor(radius=1.0, tol=1e-8).fit(frame[names], frame.number, frame.s)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-6)
    labelled = as_data(path, "label", columns=names, client=client)
    model = ConstrainedClassifier(radius=1.0).fit(labelled)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(labelled) == pytest.approx(model.score(frame[names], frame.label))
    with pytest.raises(TypeError, match="`y` and `sample_weight` must be names of columns where `X` is a folder"):
        as_data(path, frame.number.to_numpy(), client=client)


def test_frames_of_small_files(folder):
    """Dask's optimiser joins files for some columns and not for others."""
    path, table = folder
    frame = dd.read_parquet(path)
    names = list("abcde")
    with dask.config.set(scheduler="synchronous"):
        model = ConstrainedClassifier(radius=1.0).fit(frame[names], frame.label)
        assert frame.npartitions == 3
        np.testing.assert_array_equal(model.predict(frame[names]).compute(), model.predict(table[names]))


@pytest.mark.parametrize("p", [1, 2])
def test_constraints_hold_where_workers_read(client, folder, p):
    """Only gradients and Hessians come back: rows are as good as in memory, and so is the certificate."""
    path, frame = folder
    names = list("abcde")
    asked = {"signs": {"d": 1}, "order": [["a", "b"]], "bounds": {"e": (None, 0.25)}, "standardize": True}
    data = as_data(path, "number", "s", columns=names, client=client)
    model = ConstrainedRegressor(p=p, radius=1.0, tol=1e-8, **asked).fit(data)
    other = ConstrainedRegressor(p=p, radius=1.0, tol=1e-8, **asked).fit(frame[names], frame.number, frame.s)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-6)
    assert model.coef_[3] >= 0.0
    assert model.coef_[0] <= model.coef_[1]
    assert model.coef_[4] <= 0.25
    assert set(model.multipliers_) == set(other.multipliers_)
    assert model.verify(data, None).ok
