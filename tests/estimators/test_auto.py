"""The radius that is chosen from the data."""

import numpy as np
import pytest
from estimators.problems import NORMS, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification, make_regression
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import scale

from projfree import (
    ConstrainedClassifier,
    ConstrainedRegressor,
    LpBall,
    Objective,
    Squared,
    as_data,
)
from projfree.estimators.auto import auto_radius, radius_grid
from projfree.testing import SealedData


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedClassifier])
@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_integer_weights_are_repeated_rows(kind, norm, seed):
    X, y = problem(seed, kind)
    s = np.random.default_rng(seed + 1).integers(0, 4, len(y))
    s[:2] = 1
    y[:2] = ["a", "b"] if kind is ConstrainedClassifier else y[:2]
    weighted = kind(**norm).fit(X, y, sample_weight=s)
    repeated = kind(**norm).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    assert weighted.radius_ == pytest.approx(repeated.radius_, rel=1e-6)


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedClassifier])
@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_rows_does_not_matter(kind, norm, seed):
    X, y = problem(seed, kind)
    order = np.random.default_rng(seed).permutation(len(y))
    assert kind(**norm).fit(X, y).radius_ == pytest.approx(kind(**norm).fit(X[order], y[order]).radius_, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-4, 0.3, 7.0, 1e5]))
def test_the_radius_goes_with_the_targets(norm, seed, factor):
    X, y = problem(seed, ConstrainedRegressor)
    one, other = (ConstrainedRegressor(**norm).fit(X, t).radius_ for t in (y, factor * y))
    assert other == pytest.approx(factor * one, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_rows_elsewhere_give_the_same_radius(norm):
    X, y = problem(1, ConstrainedClassifier, n=80)
    signs, s = np.where(y == "b", 1.0, -1.0), np.random.default_rng(0).uniform(0.0, 2.0, 80)
    far = ConstrainedClassifier(**norm).fit(SealedData(X, signs, s))
    assert far.radius_ == pytest.approx(ConstrainedClassifier(**norm).fit(X, signs, s).radius_, rel=1e-6)


def test_weights_may_have_any_scale():
    X, y = problem(2, ConstrainedRegressor)
    s = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
    small, tiny = (ConstrainedRegressor().fit(X, y, sample_weight=c * s).radius_ for c in (1.0, 1e-6))
    assert small == pytest.approx(tiny, rel=1e-9)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_odd_data_has_a_radius(norm):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    for A, y in (
        (X, np.ones(20)),  # nothing to explain
        (X[:2], np.array([1.0, 2.0])),
        (np.zeros((20, 3)), rng.standard_normal(20)),
        (np.ones((20, 1)), rng.standard_normal(20)),
        (X, X @ [1.0, 2.0, 3.0]),  # no noise
        (rng.standard_normal((5, 30)), rng.standard_normal(5)),
    ):
        model = ConstrainedRegressor(**norm).fit(A, y)
        assert 0.0 < model.radius_ < np.inf
        assert np.isfinite(model.predict(A)).all()
    separable = ConstrainedClassifier(**norm).fit(X, X[:, 0] > 0)
    assert 0.0 < separable.radius_ < 1e6
    assert separable.score(X, X[:, 0] > 0) == 1.0


LOADED = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "noisy": lambda: make_regression(200, 30, n_informative=10, noise=300.0, random_state=1),
    "wide": lambda: make_regression(100, 300, n_informative=8, noise=5.0, random_state=2),
    "outputs": lambda: make_regression(200, 10, n_targets=3, noise=60.0, random_state=4),
    "cancer": lambda: (lambda a: (scale(a[0]), a[1]))(load_breast_cancer(return_X_y=True)),
    "noisy classes": lambda: make_classification(300, 40, n_informative=4, flip_y=0.4, random_state=8),
    "three classes": lambda: make_classification(300, 10, n_informative=5, n_classes=3, random_state=9),
}


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", LOADED)
def test_the_radius_predicts_nearly_as_well_as_the_best_one(name, p):
    X, y = LOADED[name]()
    kind = ConstrainedRegressor if y.dtype.kind == "f" else ConstrainedClassifier
    ours, grid = [], []
    for rows, held in ShuffleSplit(3, test_size=0.3, random_state=0).split(X):
        model = kind(p=p, standardize=False).fit(X[rows], y[rows])
        ours.append(model.score(X[held], y[held]))
        fits = [
            kind(p=p, standardize=False, radius=model.radius_ * c, tol=1e-3).fit(X[rows], y[rows])
            for c in np.geomspace(0.1, 10, 7)
        ]
        grid.append([fit.score(X[held], y[held]) for fit in fits])
    assert np.mean(ours) > np.mean(grid, axis=0).max() - 0.05


def test_grids_lie_around_the_radius():
    X, y = problem(0, ConstrainedRegressor)
    f, ball = Objective(Squared(), as_data(X, y), fit_intercept=True), LpBall(1.5, 1.0)
    middle = auto_radius(f, ball)
    np.testing.assert_allclose(radius_grid(f, ball, 3), [middle / 30, middle, middle * 30])
    assert radius_grid(f, ball, 1) == [middle]


@pytest.mark.parametrize("size", [1e150, 1e-150])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_labels_of_columns_near_the_ends_of_the_range_get_the_same_radius(size, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    labels = X[:, 0] + 0.1 * rng.standard_normal(40) > 0
    usual, far = (ConstrainedClassifier(loss).fit(table, labels).radius_ for table in (X, size * X))
    assert far * size == pytest.approx(usual, rel=1e-2)
