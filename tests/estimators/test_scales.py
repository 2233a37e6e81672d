"""Columns on different scales, which are scaled by default."""

import numpy as np
import pytest
import scipy.sparse as sp
from estimators.problems import problem
from sklearn.datasets import make_regression
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import ShuffleSplit

from projfree import ConstrainedClassifier, ConstrainedRegressor


def test_columns_on_different_scales_are_scaled():
    X, y = problem(0, ConstrainedRegressor, n=100)
    factors = np.array([1.0, 1e4, 1.0, 1e-3])
    uneven = ConstrainedRegressor().fit(X * factors, y)
    assert uneven.standardize_ is True
    assert ConstrainedRegressor().fit(X, y).standardize_ is False
    assert ConstrainedRegressor(standardize=False).fit(X * factors, y).standardize_ is False
    np.testing.assert_allclose(
        uneven.coef_ * factors, ConstrainedRegressor(standardize=True).fit(X, y).coef_, rtol=1e-6
    )
    constant = np.column_stack([X, np.full(100, 500.0)])
    assert ConstrainedRegressor().fit(constant, y).standardize_ is False
    assert uneven.verify(X * factors, y).ok


def test_deviations_are_weighted():
    X, y = problem(0, ConstrainedRegressor, n=100)
    X[0, 0] = 1e4
    assert ConstrainedRegressor().fit(X, y).standardize_ is True
    s = np.ones(100)
    s[0] = 0.0
    assert ConstrainedRegressor().fit(X, y, sample_weight=s).standardize_ is False


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedClassifier])
def test_the_certificate_takes_rows_as_they_were_given(kind):
    X, y = problem(0, ConstrainedRegressor, n=100)
    X = X * [1.0, 1e4, 1.0, 1e-3]
    y = y if kind is ConstrainedRegressor else np.where(y > 0, "high", "low")
    model = kind().fit(X, y)
    found = model.certificate_.verify(X, y)
    assert model.standardize_
    assert found.ok
    assert found == model.verify(X, y)
    assert not model.certificate_.verify(X, y[::-1]).ok
    assert not model.certificate_.verify(2.0 * X, y, np.arange(100)).ok
    with pytest.raises(TypeError, match="`verify` needs the data"):
        model.certificate_.verify()
    assert repr(model.certificate_) == repr(model.result_.certificate)


def test_a_certificate_stays_that_of_its_fit():
    """Otherwise one that was kept would call the rows of a later fit its own."""
    X, y = problem(0, ConstrainedRegressor, n=100)
    model = ConstrainedRegressor(radius=1.0).fit(X, y)
    kept = model.certificate_
    model.set_params(radius=0.1, fit_intercept=False).fit(3.0 * X, -y)
    assert kept.verify(X, y).ok
    assert not kept.verify(3.0 * X, -y).ok
    assert model.certificate_.verify(3.0 * X, -y).ok


def test_sparse_columns_are_scaled_and_not_centred():
    X, y = problem(0, ConstrainedRegressor, n=100)
    X = (X + 3.0) * [1.0, 1e4, 1.0, 1e-3]
    dense, sparse = ConstrainedRegressor(tol=1e-10).fit(X, y), ConstrainedRegressor(tol=1e-10).fit(sp.csr_array(X), y)
    assert sparse.standardize_ is True
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-5)


def test_badly_scaled_columns_are_no_worse_than_for_ridge():
    X, y = make_regression(200, 12, n_informative=8, noise=40.0, random_state=0)
    X = X * 10.0 ** np.linspace(-4, 4, 12)
    ours, theirs = [], []
    for rows, held in ShuffleSplit(5, test_size=0.3, random_state=0).split(X):
        ours.append(ConstrainedRegressor().fit(X[rows], y[rows]).score(X[held], y[held]))
        theirs.append(RidgeCV().fit(X[rows], y[rows]).score(X[held], y[held]))
    assert np.mean(ours) >= np.mean(theirs)


def test_a_wrong_setting_is_named():
    with pytest.raises(ValueError, match="`standardize` must be True, False or 'auto', got 'yes'"):
        ConstrainedRegressor(standardize="yes").fit(np.eye(3), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("size", [1e-151, 1e-200, 1e-310])
def test_targets_whose_squares_underflow(size):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), size * rng.uniform(0.1, 1.0, 30)
    for norm in ({"p": 2.0}, {"p": 1.0}, {"loss": "huber"}, {"p": 1.5, "radius": size}):
        with pytest.raises(ValueError, match=r"^`y` must have a largest size of at least 1e-150, got .*; multiply it"):
            ConstrainedRegressor(**norm).fit(X, y)


@pytest.mark.parametrize("norm", [{"p": 2.0}, {"p": 1.5}, {"p": 1.0}], ids=repr)
def test_small_targets_give_the_same_model(norm):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.5 * rng.standard_normal(30)
    usual, small = (ConstrainedRegressor(**norm).fit(X, size * y).coef_ / size for size in (1.0, 1e-149))
    np.testing.assert_allclose(small, usual, rtol=1e-4)
