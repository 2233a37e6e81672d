"""Integer weights are repeated rows, in every estimator and every setting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree import ConstrainedClassifier, ConstrainedClassifierCV, ConstrainedRegressor, ConstrainedRegressorCV
from projfree.estimators.robust import residual_scale, weighted_median

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*that was tried, and .* ones may score better:UserWarning"
)
rng = np.random.default_rng(0)
N = 60
TASK = np.arange(N) % 3
X = np.column_stack([rng.standard_normal((N, 4)) * [1.0, 3.0, 0.3, 1.0] + [0.0, 5.0, 0.0, TASK.mean()], TASK])
X[:, 0] += TASK  # tasks have means and deviations of their own
Y = X[:, 0] - 0.5 * X[:, 1] + TASK + 0.3 * rng.standard_t(3, size=N)
LABELS = (Y + rng.standard_normal(N) > np.median(Y)).astype(int)
WEIGHT = rng.integers(0, 4, size=N)
ROWS = np.repeat(np.arange(N), WEIGHT)

REGRESSORS = {
    "squares": {},
    "scaled": {"standardize": True},
    "huber": {"loss": "huber"},
    "biweight": {"loss": "biweight"},
    "free": {"free": [1]},
    "tasks": {"task": 4},
    "scaled tasks": {"task": 4, "standardize": True},
    "tasks without intercepts": {"task": 4, "standardize": True, "fit_intercept": False},
    "tasks of Huber": {"task": 4, "loss": "huber", "standardize": True, "tol": 1e-6},
    "Lasso": {"p": 1.0},
}
CLASSIFIERS = {
    "logistic": {},
    "softmax": {"loss": "softmax"},
    "sigmoid": {"loss": "squared_sigmoid", "max_iter": 300, "tol": 1e-4},
    "scaled": {"standardize": True},
    "balanced": {"class_weight": "balanced"},
    "tasks": {"task": 4, "standardize": True, "tol": 1e-6},
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regression(name):
    given = {"radius": 0.8, "tol": 1e-9, "max_iter": 5_000, **REGRESSORS[name]}
    weighted = ConstrainedRegressor(**given).fit(X, Y, WEIGHT)
    repeated = ConstrainedRegressor(**given).fit(X[ROWS], Y[ROWS])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-3 if "loss" in given else 1e-4)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=2e-2 if "loss" in given else 1e-3)
    plain = ConstrainedRegressor(**given).fit(X, Y)
    assert np.abs(plain.intercept_ - weighted.intercept_).max() > 1e-2 or not given.get("fit_intercept", True)
    assert weighted.verify(X, Y, WEIGHT).ok


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classification(name):
    given = {"radius": 0.8, "tol": 1e-8, "max_iter": 5_000, **CLASSIFIERS[name]}
    weighted = ConstrainedClassifier(**given)
    if name == "balanced":  # scikit-learn counts rows, whatever they weigh
        given["class_weight"] = weighted.class_weight = {0: 1.0, 1: 2.5}
    weighted.fit(X, LABELS, WEIGHT)
    repeated = ConstrainedClassifier(**given).fit(X[ROWS], LABELS[ROWS])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=5e-3)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=5e-2)


@pytest.mark.parametrize("kind", [ConstrainedRegressorCV, ConstrainedClassifierCV])
@pytest.mark.parametrize("scaled", [False, True])
def test_searches(kind, scaled):
    """Copies of a row stay in one fold; scores count the rows of the fold by their weights."""
    y = Y if kind is ConstrainedRegressorCV else LABELS
    part = np.arange(N) // 3 % 3
    radii = np.geomspace(0.1, 3.0, 4)
    scoring = None if kind is ConstrainedRegressorCV else "neg_log_loss"
    given = {"radii": radii, "tol": 1e-8, "standardize": scaled, "scoring": scoring}
    kept = WEIGHT > 0
    weighted = kind(**given, cv=_folds(part[kept])).fit(X[kept], y[kept], WEIGHT[kept])
    repeated = kind(**given, cv=_folds(part[ROWS])).fit(X[ROWS], y[ROWS])
    np.testing.assert_allclose(weighted.scores_, repeated.scores_, atol=1e-5)
    assert weighted.radius_ == repeated.radius_
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


def _folds(part):
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(-100, 100), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_weighted_median_and_scale(pairs):
    values, weight = np.array([v for v, _ in pairs]), np.array([s for _, s in pairs], dtype=float)
    if not weight.any():
        return
    repeated = np.repeat(values, weight.astype(int))
    assert weighted_median(values, weight) == pytest.approx(np.median(repeated), abs=1e-9)
    assert residual_scale(values, weight) == pytest.approx(residual_scale(repeated), rel=1e-9)
