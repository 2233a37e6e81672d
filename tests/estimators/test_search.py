"""Searches: their grids, their table of results, and least squares from moments."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, log_loss, make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, TimeSeriesSplit, cross_val_score

from projfree import (
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
)

RADII = np.geomspace(0.1, 20.0, 6)
MAE = make_scorer(mean_absolute_error, greater_is_better=False)
pytestmark = pytest.mark.filterwarnings("ignore:.*that was tried, and .* ones may score better:UserWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 8)) * [1, 1, 1, 5, 1, 0.2, 1, 1] + 3.0
    return X, X @ [2.0, -1.0, 0, 0, 0, 0, 0, 0] + 1.5 * rng.standard_normal(90), rng.uniform(0.2, 2.0, size=90)


# ------------------------------------------------------------------ least squares from moments

CASES = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "scaled": {"standardize": True},
    "shuffled": {"cv": KFold(3, shuffle=True, random_state=0)},
    "overlapping": {"cv": ShuffleSplit(3, random_state=0)},
    "time": {"cv": TimeSeriesSplit(3)},
    "another scorer": {"scoring": MAE},
    "mean square": {"scoring": "neg_mean_squared_error"},
}


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_separate_fits(table, name, p):
    X, y, _ = table
    settings = {"cv": 4, **CASES[name]}
    search = ConstrainedRegressorCV(p=p, radii=RADII, **settings, tol=1e-8).fit(X, y)
    own = {k: v for k, v in settings.items() if k not in ("cv", "scoring")}
    for k, radius in enumerate(RADII):
        model = ConstrainedRegressor(p=p, radius=radius, tol=1e-9, **own)
        expected = cross_val_score(model, X, y, cv=settings["cv"], scoring=settings.get("scoring"))
        np.testing.assert_allclose(search.scores_[0, k], expected, atol=1e-6, rtol=1e-6)
    chosen = ConstrainedRegressor(p=p, radius=search.radius_, tol=1e-9, **own).fit(X, y)
    np.testing.assert_allclose(search.coef_, chosen.coef_, atol=1e-5)
    assert search.verify(X, y).ok
    assert search.result_.relative_gap <= 1e-8


@pytest.mark.parametrize("kind", [sp.csr_array, np.asarray])
@pytest.mark.parametrize("outputs", [1, 2])
def test_weights_tables_and_outputs(table, kind, outputs):
    X, y, s = table
    X, Y = kind(np.where(X > 2.5, X, 0.0)), y if outputs == 1 else np.column_stack([y, -y + X[:, 2]])
    search = ConstrainedRegressorCV(p=[1, 2], radii=RADII, cv=3, tol=1e-7).fit(X, Y, s)
    for i, p in enumerate((1, 2)):
        whole = ConstrainedRegressor(p=p, radius=RADII[3], tol=1e-10).fit(X, Y, s)
        if search.p_ == p:
            np.testing.assert_allclose(search.path_.coefs[3], whole.coef_, atol=1e-5)
            np.testing.assert_allclose(search.path_.intercepts[3], whole.intercept_, atol=1e-4)
            assert search.path_.values[3] == pytest.approx(whole.result_.value, rel=1e-8)
            assert search.path_.multipliers[3] == pytest.approx(whole.multiplier_, rel=1e-4, abs=1e-6)
        for k, (rows, held) in enumerate(KFold(3).split(X)):
            # Whether columns are scaled is decided once, for all rows.
            alone = ConstrainedRegressor(p=p, radius=RADII[3], tol=1e-10, standardize=search.standardize_)
            alone.fit(X[rows], Y[rows], s[rows])
            expected = r2_score(Y[held], alone.predict(X[held]), sample_weight=s[held])
            assert search.scores_[i, 3, k] == pytest.approx(expected, abs=1e-6)
    assert search.verify(X, Y, s).ok


# ------------------------------------------------------------------ the grid


@pytest.mark.parametrize("radii", [0, -1, -0.5, [1.0, 0.0], [-1.0, 2.0], [], True])
def test_radii_must_be_positive(table, radii):
    X, y, _ = table
    with pytest.raises((ValueError, TypeError), match=r"^`radii` must be "):
        ConstrainedRegressorCV(radii=radii).fit(X, y)
    with pytest.raises(ValueError, match=r"^`radii` must be finite, got inf at index 1"):
        ConstrainedRegressorCV(radii=[1.0, np.inf]).fit(X, y)


@pytest.mark.parametrize("kind", [ConstrainedRegressorCV, ConstrainedClassifierCV])
def test_a_grid_goes_on_beyond_its_ends(kind, monkeypatch, caplog):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = X @ [1.0, -2.0, 0.5, 3.0] + 0.3 * rng.standard_normal(200)
    y = y if kind is ConstrainedRegressorCV else y + rng.logistic(size=200) > 0
    scoring = None if kind is ConstrainedRegressorCV else "neg_log_loss"
    wide = kind(radii=30, scoring=scoring, cv=3).fit(X, y)
    assert wide.extended_ == (0, 0)
    for factor, side in ((1e-3, 1), (1e3, 0)):
        monkeypatch.setattr("projfree.estimators.paths.BELOW", 2.0 / factor)
        monkeypatch.setattr("projfree.estimators.paths.ABOVE", 2.0 * factor)
        with caplog.at_level(logging.INFO, logger="projfree.estimators.search_results"):
            search = kind(radii=4, scoring=scoring, cv=3).fit(X, y)
        assert search.extended_[side] > 0
        assert search.extended_[1 - side] == 0
        assert f"{kind.__name__} extended its grid by {search.extended_[0]} radii below and" in caplog.text
        assert search.radii_.shape[1] == 4 + sum(search.extended_) == search.scores_.shape[1]
        np.testing.assert_allclose(np.diff(np.log(search.radii_[0]), n=2), 0.0, atol=1e-9)
        assert search.radii_[0, 0] < search.radius_ < search.radii_[0, -1]
        assert search.best_score_ >= wide.best_score_ - 0.05 * abs(wide.best_score_)
        caplog.clear()


def test_radii_that_were_given_are_all_that_is_tried(table):
    X, y, _ = table
    with pytest.warns(
        UserWarning, match=r"^ConstrainedRegressorCV: the best radius, 0\.2, is the largest that was tried"
    ):
        search = ConstrainedRegressorCV(radii=[0.2, 0.05, 0.1]).fit(X, y)
    np.testing.assert_array_equal(search.radii_, [[0.05, 0.1, 0.2]])


# ------------------------------------------------------------------ the table of results


def test_results_are_those_of_a_grid_search(table):
    X, y, _ = table
    ours = ConstrainedRegressorCV(p=[1.0, 2.0], radii=RADII[:4], cv=4, tol=1e-9).fit(X, y)
    grid = GridSearchCV(ConstrainedRegressor(tol=1e-9), {"p": [1.0, 2.0], "radius": list(RADII[:4])}, cv=4).fit(X, y)
    assert set(ours.cv_results_) <= set(grid.cv_results_)
    assert ours.cv_results_["params"] == grid.cv_results_["params"]
    for name in ["mean_test_score", "std_test_score", *(f"split{k}_test_score" for k in range(4))]:
        np.testing.assert_allclose(ours.cv_results_[name], grid.cv_results_[name], atol=1e-6)
    np.testing.assert_array_equal(ours.cv_results_["rank_test_score"], grid.cv_results_["rank_test_score"])
    np.testing.assert_array_equal(ours.cv_results_["param_radius"], grid.cv_results_["param_radius"])
    assert (ours.best_index_, ours.best_params_) == (grid.best_index_, grid.best_params_)
    assert ours.best_score_ == pytest.approx(grid.best_score_, abs=1e-6)
    assert np.all(ours.cv_results_["mean_fit_time"] > 0)


def test_score_uses_the_scorer(table):
    X, y, s = table
    search = ConstrainedRegressorCV(radii=RADII, cv=3, scoring=MAE).fit(X, y)
    assert search.score(X, y) == pytest.approx(-mean_absolute_error(y, search.predict(X)))
    weighted = -mean_absolute_error(y, search.predict(X), sample_weight=s)
    assert search.score(X, y, s) == pytest.approx(weighted)
    plain = ConstrainedRegressorCV(radii=RADII, cv=3).fit(X, y)
    assert plain.score(X, y, s) == pytest.approx(r2_score(y, plain.predict(X), sample_weight=s))
    labels = y > np.median(y)
    sure = ConstrainedClassifierCV(radii=RADII, cv=3, scoring="neg_log_loss").fit(X, labels)
    assert sure.score(X, labels) == pytest.approx(-log_loss(labels, sure.predict_proba(X)))
    plain = ConstrainedClassifierCV(radii=RADII, cv=3).fit(X, labels)
    assert plain.score(X, labels) == pytest.approx(accuracy_score(labels, plain.predict(X)))


def test_radii_with_many_minimisers_are_scored_by_what_is_delivered():
    """Beyond the radius at which the rows are fitted exactly, the walk and a run end at different interpolations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 120))
    w = np.where(np.arange(120) < 4, 2.0, 0.0)
    y = X @ w + 0.1 * rng.standard_normal(40)
    search = ConstrainedRegressorCV(p=1, radii=[20.0, 40.0], cv=4, standardize=False).fit(X, y)
    for radius, score in zip(search.radii_[0], search.cv_results_["mean_test_score"], strict=True):
        single = ConstrainedRegressor(p=1, radius=float(radius), standardize=False)
        assert score == pytest.approx(np.mean(cross_val_score(single, X, y, cv=4)), abs=0.05)
