"""Free columns: the model, the bound and the check, however large the columns are."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from estimators.problems import exact_least_squares

from projfree import ConstrainedRegressor, Huber

N = 120


def unix_time(rng):
    t, x, noise = 1.7e12 + rng.uniform(0.0, 3.15e10, N), rng.standard_normal(N), 0.1 * rng.standard_normal(N)
    return t, x, 1e-9 * (t - 1.7e12) + x + noise


def huge(rng):
    t, x, noise = 1e14 * rng.standard_normal(N), rng.standard_normal(N), 0.1 * rng.standard_normal(N)
    return t, x, 1e-14 * t + x + 7.0 + noise


def shifted(rng):
    t, x, noise = 1e6 + rng.standard_normal(N), rng.standard_normal(N), 0.1 * rng.standard_normal(N)
    return t, 1e7 + x, 1e9 + t + x + noise


@pytest.mark.parametrize("columns", [unix_time, huge, shifted])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bound_is_below_what_can_be_attained_and_the_model_attains_it(columns, standardize, weighted):
    t, x, y = columns(np.random.default_rng(3))
    X, weight = np.column_stack([t, x]), np.full(N, 2.0) if weighted else None
    least = exact_least_squares(X, y)
    model = ConstrainedRegressor(p=1.5, radius=5.0, free=[0], standardize=standardize).fit(X, y, weight)
    assert Fraction(model.result_.bound) <= least
    assert model.result_.value == pytest.approx(float(least), rel=1e-8)
    own = np.mean((y - model.predict(X)) ** 2)
    assert own == pytest.approx(float(least), rel=1e-3)  # raw columns of 1e9 leave no more digits
    assert model.verify(X, y, weight).ok


@pytest.mark.parametrize("what", ["coef_", "intercept_"])
def test_other_coefficients_are_refused(what):
    t, x, y = unix_time(np.random.default_rng(3))
    X = np.column_stack([t, x])
    model = ConstrainedRegressor(p=1.5, radius=0.5, free=[0]).fit(X, y)
    assert model.verify(X, y).ok
    setattr(model, what, getattr(model, what) * 1.001)
    assert not model.verify(X, y).ok


def test_columns_that_others_explain_get_no_coefficient():
    rng = np.random.default_rng(5)
    level = rng.integers(0, 3, N)
    dummies, x = np.eye(3)[level], rng.standard_normal(N)
    X, y = np.column_stack([dummies, x]), x + level + 0.1 * rng.standard_normal(N)
    model = ConstrainedRegressor(radius=5.0, free=[0, 1, 2]).fit(X, y)
    kept = ConstrainedRegressor(radius=5.0, free=[0, 1]).fit(np.delete(X, 2, axis=1), y)
    assert model.coef_[2] == 0.0
    np.testing.assert_allclose(model.predict(X), kept.predict(np.delete(X, 2, axis=1)), rtol=1e-10)


@pytest.mark.parametrize("part", [1e-6, 1e-8, 1e-11])
def test_bounds_where_a_free_column_nearly_explains_another(part):
    rng = np.random.default_rng(1)
    f = rng.standard_normal(N)
    X, y = np.column_stack([f + part * rng.standard_normal(N), f]), f + rng.standard_normal(N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the rounding of what is left of the column may be all of the gap
        model = ConstrainedRegressor(radius=100.0, free=[1], standardize=True).fit(X, y)
    assert Fraction(model.result_.bound) <= exact_least_squares(X, y)


@pytest.mark.parametrize("offset", [0.0, 1e11, 1e12])
def test_bounds_of_tasks_with_large_means(offset):
    rng = np.random.default_rng(2)
    task, x = np.arange(N) % 2, offset + rng.standard_normal(N)
    y = (x - offset) * (1.0 + task) + rng.standard_normal(N)
    model = ConstrainedRegressor(radius=1e3, task=1, standardize=True).fit(np.column_stack([x, task]), y)
    least = sum(exact_least_squares(x[task == k, None], y[task == k]) for k in (0, 1)) / 2
    assert Fraction(model.result_.bound) <= least


@pytest.mark.parametrize("column", [0, 1])
def test_entries_whose_squares_overflow_are_refused(column):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, 2)), rng.standard_normal(N)
    X[:, column] *= 1e300
    with pytest.raises(ValueError, match=r"`X` has entries as large as .*; rescale its columns"):
        ConstrainedRegressor(radius=1.0, free=[0]).fit(X, y)


@pytest.mark.parametrize("signs", [None, {0: 1}])
def test_the_size_of_a_free_column_does_not_matter_for_other_losses(signs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    y = X @ [1.0, 0.5, -1.0, 0.0, 2.0] + 0.3 * rng.standard_normal(200)
    model = ConstrainedRegressor(Huber(1.0), radius=1.0, free=[4], signs=signs, tol=1e-7)
    expected = model.fit(X, y).coef_
    for size in (1e-9, 1e-5, 1e6):
        factors = np.array([1.0, 1.0, 1.0, 1.0, size])
        np.testing.assert_allclose(model.fit(X * factors, y).coef_ * factors, expected, rtol=1e-2, atol=1e-3)
        assert model.result_.status.converged
        assert model.verify(X * factors, y).ok
        assert not model.standardize_
