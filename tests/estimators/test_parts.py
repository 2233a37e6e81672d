"""Fits on parts of the rows, and on rows outside memory."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators.problems import exact_least_squares
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from projfree import (
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((90, 4)) * [1.0, 2.0, 0.5, 1.0] + [0.0, 3.0, 0.0, -1.0]
Y = X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(90)
S = rng.uniform(0.5, 2.0, size=90)
PARTS = [slice(0, 30), slice(30, 31), slice(31, 90)]


@pytest.mark.parametrize("weight", [None, S])
@pytest.mark.parametrize("table", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "given", [{}, {"p": 1.0}, {"p": 1.5}, {"fit_intercept": False}, {"standardize": True}], ids=str
)
def test_parts_are_the_whole(given, table, weight):
    given = {"radius": 0.7, "tol": 1e-9, **given}
    Z = table(X)
    whole = ConstrainedRegressor(**given).fit(Z, Y, weight)
    parts = ConstrainedRegressor(**given)
    for rows in PARTS:
        parts.partial_fit(Z[rows], Y[rows], None if weight is None else weight[rows])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, atol=1e-6)
    assert parts.multiplier_ == pytest.approx(whole.multiplier_, rel=1e-4)
    assert parts.result_.value == pytest.approx(whole.result_.value, rel=1e-9)
    assert parts.verify(Z, Y, weight).ok
    np.testing.assert_allclose(parts.predict(Z), whole.predict(Z), atol=1e-5)


@pytest.mark.parametrize("given", [{}, {"p": 1}, {"p": 1.5}, {"alpha": 3.0}, {"standardize": True, "p": 1}], ids=str)
def test_parts_have_the_radius_of_the_whole(given):
    Z = X * [1.0, 30.0, 1.0, 1.0]
    s = np.random.default_rng(1).integers(0, 3, len(Y)).astype(float)
    s[30] = 1.0  # alone in its part
    whole, parts = ConstrainedRegressor(tol=1e-7, **given).fit(Z, Y, s), ConstrainedRegressor(tol=1e-7, **given)
    for rows in PARTS:
        parts.partial_fit(Z[rows], Y[rows], s[rows])
    assert parts.radius_ == pytest.approx(whole.radius_, rel=1e-6)
    assert parts.standardize_ is whole.standardize_ is ("standardize" in given)
    np.testing.assert_allclose(parts.predict(Z), whole.predict(Z), atol=1e-3)
    assert parts.verify(Z, Y, s).ok


def test_what_parts_cannot_do_is_said():
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
        ConstrainedRegressor("huber").partial_fit(X, Y)
    assert "`partial_fit` keeps moments, which serve squares alone, got `loss='huber'`" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match=r"^`partial_fit` keeps no rows, and `free` needs them, got \[0\]; use `fit`"):
        ConstrainedRegressor(free=[0]).partial_fit(X, Y)
    model = ConstrainedRegressor(radius=1.0).partial_fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(X[:, :3], Y)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X * np.nan, Y)
    with pytest.raises(ValueError, match="as many outputs as in the rows before, a single column, got 2 columns; give"):
        model.partial_fit(X, np.column_stack([Y, Y]))
    np.testing.assert_array_equal(model.partial_fit(X, Y).coef_.round(9), before.round(9))
    assert not hasattr(ConstrainedRegressorCV(), "partial_fit")


def test_files_are_read_out_of_core(tmp_path):
    plain = ConstrainedRegressor(radius=0.7, tol=1e-9).fit(X, Y)
    np.save(tmp_path / "x.npy", X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["target"], frame["label"] = Y, (Y > 0).astype(float)
    (tmp_path / "folder").mkdir()
    frame.iloc[:50].to_parquet(tmp_path / "folder" / "0.parquet")
    frame.iloc[50:].to_parquet(tmp_path / "folder" / "1.parquet")
    only = frame.drop(columns="label")
    only.to_parquet(tmp_path / "x.parquet")
    for source, y in ((tmp_path / "x.npy", Y), (str(tmp_path / "x.npy"), Y), (tmp_path / "x.parquet", "target")):
        model = ConstrainedRegressor(radius=0.7, tol=1e-9).fit(source, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
        assert model.verify(source, y).ok
    assert list(model.feature_names_in_) == list("abcd")
    labelled = ConstrainedClassifier(radius=0.7).fit(tmp_path / "folder", "label")
    assert labelled.coef_.shape == (1, 5)  # the other column is a feature here
    with pytest.raises(ValueError, match=r"^`fit\(path, y\)` needs targets"):
        ConstrainedRegressor().fit(tmp_path / "x.npy")


def test_predictions_are_read_out_of_core(tmp_path, monkeypatch):
    monkeypatch.setattr("projfree.estimators.inputs.CHUNK_BYTES", 7 * 4 * 8)  # seven rows
    np.save(tmp_path / "x.npy", X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = np.where(Y > 0, "up", "down")
    (tmp_path / "folder").mkdir()
    mixed = frame[list("dbca")].assign(target=Y)  # in another order, and with the target
    mixed.iloc[:50].to_parquet(tmp_path / "folder" / "0.parquet")
    mixed.iloc[50:].to_parquet(tmp_path / "folder" / "1.parquet")
    for model in (ConstrainedRegressor(radius=0.7).fit(frame, Y), ConstrainedClassifier(radius=0.7).fit(frame, labels)):
        expected = model.predict(frame)
        for path in (tmp_path / "x.npy", str(tmp_path / "folder")):
            found = model.predict(path)
            assert found.dtype == expected.dtype
            if found.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-12)
            else:
                np.testing.assert_array_equal(found, expected)
        assert model.score(tmp_path / "x.npy", Y if found.dtype.kind == "f" else labels) > 0.3
    proba = model.predict_proba(tmp_path / "x.npy")
    np.testing.assert_allclose(proba, model.predict_proba(frame), rtol=1e-12)


def test_what_paths_cannot_be_predicted_is_said(tmp_path):
    model = ConstrainedRegressor(radius=0.7).fit(X, Y)
    np.save(tmp_path / "few.npy", X[:, :3])
    with pytest.raises(ValueError, match=r"few\.npy has 3 features, but ConstrainedRegressor was fitted on 4\.$"):
        model.predict(tmp_path / "few.npy")
    np.save(tmp_path / "none.npy", np.where(X > 2.0, np.nan, X))
    with pytest.raises(ValueError, match=r"none\.npy contains NaN or infinity; fill or drop"):
        model.predict(tmp_path / "none.npy")
    with pytest.raises(FileNotFoundError):
        model.predict(tmp_path / "nowhere.npy")
    tasks = ConstrainedRegressor(radius=0.7, task=3).fit(np.column_stack([X[:, :3], np.arange(len(X)) % 2]), Y)
    with pytest.raises(ValueError, match=r"^ConstrainedRegressor does not see the tasks of single rows in a file"):
        tasks.predict(tmp_path / "few.npy")


@pytest.fixture
def stored(tmp_path):
    """Rows as a Parquet file with targets, labels and weights, as a .npy file, and as a frame of features."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels, counts = (Y > 0).astype(float), np.floor(np.exp(0.5 * Y))
    frame.assign(target=Y, second=-Y, label=labels, counts=counts, weight=S).to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.parquet", tmp_path / "x.npy", frame


MODELS = {
    "squared": (ConstrainedRegressor(radius=0.7), "target", Y),
    "poisson": (ConstrainedRegressor("poisson", radius=0.7), "counts", np.floor(np.exp(0.5 * Y))),
    "logistic": (ConstrainedClassifier(radius=0.7), "label", (Y > 0).astype(float)),
    "outputs": (ConstrainedRegressor(radius=0.7), ["target", "second"], np.column_stack([Y, -Y])),
    "search": (ConstrainedRegressorCV(radii=3), "target", Y),
    "search, scored": (ConstrainedRegressorCV(radii=3, scoring="neg_mean_absolute_error"), "target", Y),
}


@pytest.mark.filterwarnings("ignore:.*that was tried, and .* ones may score better:UserWarning")
@pytest.mark.parametrize(("model", "name", "y"), MODELS.values(), ids=MODELS)
def test_files_are_scored_by_the_names_of_their_columns(stored, model, name, y):
    path, plain, frame = stored
    model = clone(model).fit(frame, y)
    for given, weight in ((None, None), ("weight", S), (S, S)):
        assert model.score(str(path), name, given) == pytest.approx(model.score(frame, y, weight), rel=1e-12)
    assert model.score(plain, y, S) == pytest.approx(model.score(frame, y, S), rel=1e-12)
    with pytest.raises(ValueError, match=r"^`score\(path, y\)` needs targets: an array, or with Parquet the name"):
        model.score(path)
    with pytest.raises(ValueError, match=r"x\.npy has no names of columns"):
        model.score(plain, "target")


FOLDS = {
    "default": ({}, {}, None),
    "three, weights by name": ({"cv": 3}, {}, "weight"),
    "groups, weights": ({"cv": GroupKFold(4)}, {"groups": np.arange(len(Y)) % 4}, S),
}


@pytest.mark.filterwarnings("ignore:.*that was tried, and .* ones may score better:UserWarning")
@pytest.mark.parametrize(("settings", "params", "given"), FOLDS.values(), ids=FOLDS)
@pytest.mark.parametrize(
    ("kind", "targets"),
    [
        (ConstrainedRegressorCV, {"y": Y}),
        (ConstrainedClassifierCV, {"y": (Y > 0).astype(float)}),
        (ConstrainedRegressorCV, {"y": Y, "z": -Y}),
    ],
    ids=["regressor", "classifier", "outputs"],
)
def test_searches_on_files_are_those_on_arrays(tmp_path, kind, targets, settings, params, given):
    """With the same folds, whoever makes them, and the same weights."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = {**targets, "weight": S} if isinstance(given, str) else targets
    frame.assign(**named).to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X)
    several = len(targets) > 1
    y, name = (np.column_stack(list(targets.values())), list(targets)) if several else (targets["y"], "y")
    weight = None if given is None else S
    search = kind(radii=[0.2, 0.5, 1.0], tol=1e-9, **settings)
    expected = clone(search).fit(frame, y, weight, **params)
    for source in ((str(tmp_path / "x.parquet"), name, given), (tmp_path / "x.npy", y, weight)):
        found = clone(search).fit(*source, **params)
        np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-6)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5)
        assert found.radius_ == expected.radius_
        assert found.verify(*source).ok


def test_rows_of_a_fit_are_not_kept(caplog):
    model = ConstrainedRegressor(radius=1.0).fit(X, Y)
    model.partial_fit(X[:30], Y[:30])
    assert "`partial_fit` begins anew: the rows of `fit` are not kept" in caplog.text
    np.testing.assert_allclose(model.coef_, ConstrainedRegressor(radius=1.0).fit(X[:30], Y[:30]).coef_, atol=1e-5)
    model.fit(X, Y)
    model.partial_fit(X[30:], Y[30:])
    np.testing.assert_allclose(model.coef_, ConstrainedRegressor(radius=1.0).fit(X[30:], Y[30:]).coef_, atol=1e-5)


@pytest.mark.parametrize("offset", [1.7e12, 1e15])
@pytest.mark.parametrize("standardize", [False, True])
def test_bounds_of_parts_stay_below_the_optimum_at_large_targets(offset, standardize):
    y = Y + offset
    least = exact_least_squares(X, y)
    model = ConstrainedRegressor(radius=5.0, standardize=standardize)
    for rows in PARTS:
        model.partial_fit(X[rows], y[rows])
    assert Fraction(model.result_.bound) <= least
    assert model.result_.value == pytest.approx(float(least), rel=1e-6)
