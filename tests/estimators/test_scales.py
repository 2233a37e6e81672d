"""Columns on different scales."""

import numpy as np
import pytest
import scipy.sparse as sp
from estimators.problems import problem
from sklearn.base import clone

from projfree import ConstrainedClassifier, ConstrainedRegressor


def test_scaled_columns_have_the_coefficients_of_their_units():
    X, y = problem(0, ConstrainedRegressor, n=100)
    factors = np.array([1.0, 1e4, 1.0, 1e-3])
    model = ConstrainedRegressor(standardize=True)
    expected = model.fit(X, y).coef_
    np.testing.assert_allclose(model.fit(X * factors, y).coef_ * factors, expected, rtol=1e-6)
    assert model.standardize_ is True
    assert model.verify(X * factors, y).ok
    assert ConstrainedRegressor().fit(X, y).standardize_ is False


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedClassifier])
def test_rows_are_verified_as_they_were_given(kind):
    """And as the fit has read them, whatever settings were changed since."""
    X, y = problem(0, ConstrainedRegressor, n=100)
    X = X * [1.0, 1e4, 1.0, 1e-3]
    settings = {"standardize": True}
    if kind is ConstrainedClassifier:
        y, settings = np.where(y > 0, "high", "low"), {**settings, "class_weight": "balanced"}
    model = kind(**settings).fit(X, y)
    found = model.verify(X, y)
    assert model.standardize_
    assert found.ok
    assert not model.verify(X, y[::-1]).ok
    assert not model.verify(2.0 * X, y, np.arange(100)).ok
    changed = {"loss": "softmax", "class_weight": None} if kind is ConstrainedClassifier else {"loss": "poisson"}
    model.set_params(fit_intercept=False, standardize=False, radius=0.1, **changed)
    assert model.verify(X, y) == found


def test_sparse_columns_are_scaled_and_not_centred():
    X, y = problem(0, ConstrainedRegressor, n=100)
    X = (X + 3.0) * [1.0, 1e4, 1.0, 1e-3]
    model = ConstrainedRegressor(tol=1e-10, standardize=True)
    dense, sparse = clone(model).fit(X, y), clone(model).fit(sp.csr_array(X), y)
    assert sparse.standardize_ is True
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-5)


@pytest.mark.parametrize("size", [1e-151, 1e-200, 1e-310])
def test_targets_whose_squares_underflow(size):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), size * rng.uniform(0.1, 1.0, 30)
    for norm in ({"p": 2.0}, {"p": 1.0}, {"loss": "huber"}, {"p": 1.5, "radius": size}):
        with pytest.raises(ValueError, match=r"^`y` must have a largest size of at least 1e-150, got .*; multiply it"):
            ConstrainedRegressor(**norm).fit(X, y)


@pytest.mark.parametrize("p", [2.0, 1.5, 1.0])
def test_small_targets_give_the_same_model(p):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.5 * rng.standard_normal(30)
    sizes = [1.0, 1e-149]
    radii = [None if p == 2.0 else size for size in sizes]  # other penalties have units
    usual, small = (
        ConstrainedRegressor(p=p, radius=r).fit(X, size * y).coef_ / size for r, size in zip(radii, sizes, strict=True)
    )
    np.testing.assert_allclose(small, usual, rtol=1e-4)
