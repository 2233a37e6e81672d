"""Data frames: numbers without a copy where there is none to make, names kept, and sentences that name the column."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import as_data
from projfree.data import SparseData

pd = pytest.importorskip("pandas")
X = np.arange(12.0).reshape(4, 3) % 5
NAMES = ["age", "height", "pay"]
Y = np.array([1.0, 2.0, 0.0, 1.0])


def polars():
    return pytest.importorskip("polars")


def frames():
    mixed = {"age": X[:, 0].astype(int), "height": X[:, 1].astype(np.float32), "pay": X[:, 2]}
    yield "one block", pd.DataFrame(X, columns=NAMES)
    yield "mixed", pd.DataFrame(mixed)
    yield "whole numbers", pd.DataFrame(X.astype(int), columns=NAMES)
    yield "nullable", pd.DataFrame(mixed).convert_dtypes()
    yield "masked", pd.DataFrame({"age": X[:, 0].astype(int)}, dtype="Int64").assign(height=X[:, 1], pay=X[:, 2])


CASES = dict(frames())


@pytest.mark.parametrize("name", CASES)
def test_numbers_and_names(name):
    frame = CASES[name]
    data = as_data(frame, pd.Series(Y), pd.Series([1, 2, 1, 2]))
    np.testing.assert_array_equal(data.apply(np.eye(3)), X)
    assert data.feature_names == tuple(NAMES)
    assert data.y.tolist() == Y.tolist()
    np.testing.assert_allclose(data.weight, np.array([1, 2, 1, 2]) / 6)
    assert as_data(frame, Y, centre=True).feature_names == tuple(NAMES)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_block_is_not_copied(dtype):
    table = np.asfortranarray(X.astype(dtype))
    frame = pd.DataFrame(table, columns=NAMES, copy=False)
    data = as_data(frame, Y)
    assert np.shares_memory(data.X, frame.to_numpy())
    assert data.X.dtype == dtype


def test_several_targets_and_plain_arrays_have_no_names():
    data = as_data(pd.DataFrame(X), pd.DataFrame({"a": Y, "b": 2 * Y}))
    assert data.y.shape == (4, 2)
    assert data.feature_names == ("0", "1", "2")
    assert as_data(X, Y).feature_names is None
    assert as_data(X, pd.Series(Y, dtype="Float64")).y.dtype == np.float64


def test_sparse_columns_stay_sparse():
    frame = pd.DataFrame(
        {name: pd.arrays.SparseArray(column, fill_value=0.0) for name, column in zip("abc", X.T, strict=True)}
    )
    data = as_data(frame, Y)
    assert isinstance(data, SparseData)
    np.testing.assert_array_equal(data.apply(np.eye(3)), X)
    assert data.feature_names == ("a", "b", "c")
    filled = pd.DataFrame({"a": pd.arrays.SparseArray(X[:, 0], fill_value=1.0)})
    with pytest.raises(ValueError, match=r"fill value must be 0"):
        as_data(filled, Y)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b", "c", "d"]),
        pd.Series([1, "b", 2.0, None], dtype=object),
        pd.Series(["a", "b", "a", "b"], dtype="category"),
        pd.to_datetime(pd.Series(["2020-01-01"] * 4)),
        pd.Series([1j] * 4),
    ],
    ids=["text", "objects", "categories", "dates", "complex"],
)
def test_other_columns_are_named(column):
    frame = pd.DataFrame(X, columns=NAMES).assign(city=column)
    with pytest.raises(TypeError, match=r"`X` must have numeric columns, got column 'city' of type .*; encode it"):
        as_data(frame, Y)
    with pytest.raises(TypeError, match="`y` must hold real numbers, got a series of type"):
        as_data(X, column)


@pytest.mark.parametrize("dtype", ["float64", "Float64", "Int64"])
def test_missing_values_are_named(dtype):
    frame = pd.DataFrame(X, columns=NAMES)
    frame["height"] = pd.Series([1, 2, None, 4], dtype=dtype)
    with pytest.raises(ValueError, match=r"`X` must be finite, got nan at row 2 of 'height'; drop or impute"):
        as_data(frame, Y)
    with pytest.raises(ValueError, match=r"`y` must be finite, got nan at index 2; drop or impute"):
        as_data(X, pd.Series([1, 2, None, 4], dtype=dtype))


def test_polars():
    pl = polars()
    frame = pl.DataFrame({"age": X[:, 0].astype(int), "height": X[:, 1].astype(np.float32), "pay": X[:, 2]})
    data = as_data(frame, pl.Series("y", Y), pl.Series([1, 2, 1, 2]))
    np.testing.assert_array_equal(data.apply(np.eye(3)), X)
    assert data.feature_names == tuple(NAMES)
    assert data.y.tolist() == Y.tolist()
    assert as_data(pl.DataFrame(X, schema=NAMES), pl.DataFrame({"a": Y, "b": Y})).y.shape == (4, 2)
    with pytest.raises(TypeError, match=r"got column 'city' of type String"):
        as_data(frame.with_columns(city=pl.Series(["a", "b", "c", "d"])), Y)
    with pytest.raises(ValueError, match=r"got nan at row 1 of 'k'"):
        as_data(frame.with_columns(k=pl.Series([1, None, 3, 4])), Y)
    with pytest.raises(ValueError, match=r"`y` must be finite, got nan at index 1"):
        as_data(X, pl.Series([1, None, 3, 4]))
