"""Tables that are no plain arrays: frames with columns of every kind, sparse containers of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from projfree import ConstrainedClassifier, ConstrainedClassifierCV, ConstrainedRegressor, ConstrainedRegressorCV

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 4)) * (rng.uniform(size=(40, 4)) < 0.6)
Y = X @ [1.0, -1.0, 0.5, 0.0] + 0.1 * rng.standard_normal(40)
KINDS = ["csr", "csc", "coo", "dok", "lil", "dia", "bsr"]


def pandas(column):
    return pd.DataFrame({"a": X[:, 0], "b": column})


BAD = {
    "categories": (pd.Categorical(["u", "v"] * 20), r"no numbers \(category\)"),
    "codes": (pd.Categorical([1, 2] * 20), r"no numbers \(category\)"),
    "text": (["u", "v"] * 20, r"no numbers \("),
    "dates": (pd.date_range("2020", periods=40), r"no numbers \(datetime64\["),
    "durations": (pd.to_timedelta(np.arange(40), unit="h"), r"no numbers \(timedelta64"),
    "complex": (1j * np.ones(40), r"no numbers \(complex128\)"),
}


@pytest.mark.parametrize(
    ("kind", "name"), [*((ConstrainedRegressor, name) for name in BAD), (ConstrainedClassifierCV, "text")]
)
def test_columns_that_are_no_numbers_are_named(name, kind):
    column, words = BAD[name]
    y = Y if kind is ConstrainedRegressor else Y > 0
    with pytest.raises(ValueError, match=rf"^Column 'b' of `X` holds {words}.*`OneHotEncoder`"):
        kind().fit(pandas(column), y)
    fitted = kind().fit(pandas(X[:, 1]), y)
    with pytest.raises(ValueError, match=rf"^Column 'b' of `X` holds {words}"):
        fitted.predict(pandas(column))


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedRegressorCV])
@pytest.mark.parametrize(
    "y", [pd.Series(pd.date_range("2020", periods=40)), pd.to_timedelta(np.arange(40), unit="h").to_numpy()]
)
def test_targets_that_are_dates_are_refused(kind, y):
    """As numbers they would be counts of units since 1970."""
    with pytest.raises(ValueError, match=r"^`y` must hold numbers, got (datetime|timedelta)64\[.s\]; convert it"):
        kind().fit(X, y)
    days = (y - y.min()) / np.timedelta64(1, "D")
    assert np.isfinite(kind().fit(X, days).coef_).all()


def test_columns_of_polars_are_named():
    for column in (
        pl.Series(["u", "v"] * 20, dtype=pl.Categorical),
        pl.Series(["u", "v"] * 20),
        pl.Series([[1.0, 2.0]] * 40),
    ):
        with pytest.raises(ValueError, match=r"^Column 'b' of `X` holds no numbers \("):
            ConstrainedRegressor().fit(pl.DataFrame({"a": X[:, 0], "b": column}), Y)


@pytest.mark.parametrize("missing", [pd.array([1, None] * 20, dtype="Int64"), pl.Series([None, 1] * 20)])
def test_missing_values_are_refused(missing):
    frame = pl.DataFrame if isinstance(missing, pl.Series) else pd.DataFrame
    with pytest.raises(ValueError, match="contains NaN"):
        ConstrainedRegressor().fit(frame({"a": X[:, 0], "b": missing}), Y)


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedRegressorCV])
def test_tables_that_are_refused_as_a_whole(kind):
    for table, error, sentence in (
        (pl.LazyFrame(X), TypeError, r"^`X` must hold its rows, got a LazyFrame; give `X\.collect\(\)`\.$"),
        (np.zeros((40, 4), "M8[s]"), ValueError, r"^`X` must hold numbers, got datetime64\[s\]; convert it"),
        (np.zeros((40, 4), "m8[D]"), ValueError, r"^`X` must hold numbers, got timedelta64\[D\]; convert it"),
    ):
        with pytest.raises(error, match=sentence):
            kind().fit(table, Y)
        with pytest.raises(error, match=sentence):
            kind().fit(X, Y).predict(table)


def test_columns_that_are_numbers_in_another_dress_are_taken():
    plain = ConstrainedRegressor().fit(pandas(np.arange(40.0)), Y)
    for column in (
        pd.array(range(40), dtype="Int64"),
        pd.array(range(40), dtype="Float64"),
    ):
        same = ConstrainedRegressor().fit(pandas(column), Y)
        np.testing.assert_allclose(same.coef_, plain.coef_)
    flags = ConstrainedRegressor().fit(pandas(pd.array([True, False] * 20, dtype="boolean")), Y)
    assert np.isfinite(flags.coef_).all()


@pytest.mark.parametrize("container", ["array", "matrix"])
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_containers_of_every_kind(kind, container):
    table = getattr(sp, f"{kind}_{container}")(X)
    dense = ConstrainedRegressor(radius=1.0, tol=1e-9).fit(X, Y)
    sparse = ConstrainedRegressor(radius=1.0, tol=1e-9).fit(table, Y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(sparse.predict(table), dense.predict(X), atol=1e-6)
    assert sparse.verify(table, Y).ok
    labels = ConstrainedClassifier(radius=1.0).fit(table, Y > 0)
    assert labels.predict_proba(table).shape == (40, 2)
    search = ConstrainedRegressorCV(radii=3, cv=2).fit(table, Y)
    assert search.score(table, Y) > 0.1
    task = ConstrainedRegressor(radius=1.0, task=3, tol=1e-3)
    coded = X.copy()
    coded[:, 3] = np.arange(40) % 2 + 1.0
    assert task.fit(getattr(sp, f"{kind}_{container}")(coded), Y).coef_.shape == (2, 3)
