"""Stated roundings of values and images hold against fractions, and are not much larger than they need to be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import Logistic, LpBall, Objective, Squared, as_data, minimize
from projfree.data.sparse import TaskData
from projfree.objectives.rounding import reported_value


def exact_squares(X, w, b, y):
    """The mean of squares, without any rounding."""
    w, b = [Fraction(v) for v in w.tolist()], Fraction(float(b))
    rows = zip(X.tolist(), y.tolist(), strict=True)
    residuals = [sum(Fraction(x) * v for x, v in zip(row, w, strict=True)) + b - Fraction(t) for row, t in rows]
    return sum(r * r for r in residuals) / len(y)


def planted(seed, noise, scale=1.0):
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((12, 5)) * np.array([1.0, scale, 1.0, 1.0, 1.0]), rng.standard_normal(5)
    w[1] /= scale
    return X, w, X @ w + noise * rng.standard_normal(12)


@pytest.mark.parametrize("scale", [1.0, 1e-8])
@pytest.mark.parametrize("noise", [0.0, 1e-16, 1e-15, 1e-12, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_values_are_off_by_no_more_than_is_stated(noise, intercept, scale):
    for seed in range(20):
        X, w, y = planted(seed, noise, scale)
        f = Objective(Squared(), as_data(X, y), fit_intercept=intercept)
        found = f.evaluate(f.point(w), tangent=False)
        value, b = found.value, found.intercept
        exact = exact_squares(X, w, 0.0 if b is None else b, y)
        assert abs(Fraction(value) - exact) <= Fraction(f.structure.rounding.value(value, w, b))
        assert exact <= 2 * Fraction(reported_value(f, found))
        assert value <= reported_value(f, found) <= value + 1e-27


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_ordinary_values_are_reported_as_they_are(loss):
    X, w, y = planted(0, 1.0)
    f = Objective(loss, as_data(X, np.sign(y) if loss.labels else y), fit_intercept=True)
    found = f.evaluate(f.point(w))
    assert reported_value(f, found) == found.value


@pytest.mark.parametrize("intercept", [False, True])
def test_a_run_reports_no_less_than_rounding_hides(intercept):
    """Residuals of exact data are rounded away; what is left of the value says nothing."""
    below = 0
    for seed in range(100):
        X, _, y = planted(seed, 0.0)
        X, y = X[:3], y[:3]
        result = minimize(Objective(Squared(), as_data(X, y), fit_intercept=intercept), LpBall(2, 100.0), tol=1e-9)
        exact = exact_squares(X, result.w, 0.0 if result.intercept is None else result.intercept, y)
        assert exact <= 2 * Fraction(result.value)
        assert result.bound <= result.value <= 1e-25
        assert result.gap == result.value - result.bound
        assert result.certificate.value == result.value
        plain = Objective(Squared(), as_data(X, y), fit_intercept=intercept)
        below += exact > 2 * Fraction(plain(plain.point(result.w, result.intercept)))
    assert below, "without the floor some values would be far too small"


def test_one_row_that_is_fitted_exactly():
    X, y = np.array([[1.0, 3.0]]), np.array([0.1])
    result = minimize(Objective(Squared(), as_data(X, y)), LpBall(2, 10.0))
    assert exact_squares(X, result.w, 0.0, y) <= 2 * Fraction(result.value)
    assert 0.0 < result.value < 1e-29


def test_a_negative_value_is_left_alone():
    class Lowered(Squared):
        def value(self, u, y):
            return super().value(u, y) - 5.0

    f = Objective(Lowered(), as_data(np.eye(2), [1.0, 2.0]))
    assert reported_value(f, f.evaluate(f.point([1.0, 2.0]))) == -5.0


@pytest.mark.parametrize("kind", ["dense", "sparse", "centred", "tasks"])
def test_images(kind):
    """The products of a row are added in any order; the stated error is that of the worst."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((15, 6)) * np.array([1.0, 1e6, 1e-6, 1.0, 1.0, 1.0]) + 3.0, rng.standard_normal(15)
    data, w = as_data(X, y), rng.standard_normal(6)
    if kind == "sparse":
        data = as_data(sp.csr_array(X), y)
    if kind == "centred":
        data = as_data(X, y, centre=np.full(6, 1e9), scale=True)
    if kind == "tasks":
        data, w = TaskData(X, y, np.arange(15) % 3), rng.standard_normal((6, 3))
    f = Objective(Squared(), data)
    image = [Fraction(u) for u in data.apply(w).tolist()]
    if kind == "centred":
        exact = [
            sum(
                (Fraction(x) - Fraction(m)) / Fraction(s) * Fraction(v)
                for x, m, s, v in zip(row, data.scaling[0].tolist(), data.scaling[1].tolist(), w.tolist(), strict=True)
            )
            for row in X.tolist()
        ]
    else:
        columns = [w[:, i % 3] if kind == "tasks" else w for i in range(15)]
        exact = [
            sum(Fraction(x) * Fraction(v) for x, v in zip(row, c.tolist(), strict=True))
            for row, c in zip(X.tolist(), columns, strict=True)
        ]
    square = sum((u - e) ** 2 for u, e in zip(image, exact, strict=True)) / 15
    assert 0 < square <= Fraction(f.structure.rounding.predictions(w, None)) ** 2


def test_columns_bound_predictions_better_than_norms():
    X, w, y = planted(0, 1.0, scale=1e-8)
    f, ball = Objective(Squared(), as_data(X, y)), LpBall(2, 1e9)
    coarse = np.sqrt(f.data.column_stats.mean_square) * np.linalg.norm(w)
    assert np.sqrt(np.mean((X @ w) ** 2)) <= f.structure.rounding.extent(w) <= 1e-6 * coarse
    for seed in range(20):
        v = np.random.default_rng(seed).standard_normal(5)
        v *= 1e9 / np.linalg.norm(v)
        images = np.abs(X @ v)
        mean, most = f.structure.rounding.extents(ball, (5,))
        assert np.sqrt(np.mean(images**2)) <= mean
        assert images.max() <= most


def test_sizes_of_columns():
    rng = np.random.default_rng(3)
    X, s = rng.standard_normal((50, 4)) * [1.0, 1e-200, 0.0, 1e200], rng.uniform(size=50)
    X[:, 1:3] = np.where(rng.uniform(size=(50, 2)) < 0.5, 0.0, X[:, 1:3])
    X[:, 3] = X[:, 3] * 1e-100
    y, by = np.zeros(50), np.array([1.0, 1e-200, 1.0, 1e100])
    mean = by * np.sqrt(s @ (X / by) ** 2 / s.sum())
    for table in (X, sp.csr_array(X)):
        data = as_data(table, y, s)
        own = data.column_stats
        np.testing.assert_allclose(own.largest, np.abs(X).max(axis=0), rtol=1e-12)
        np.testing.assert_allclose(own.root_mean_square[[0, 2, 3]], mean[[0, 2, 3]], rtol=1e-12)
        assert mean[1] <= own.root_mean_square[1] <= own.largest[1], "squares are lost"
