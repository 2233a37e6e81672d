"""Integer weights are repeated rows, in every estimator and every setting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree import ConstrainedClassifier, ConstrainedClassifierCV, ConstrainedRegressor, ConstrainedRegressorCV
from projfree.estimators.robust import robust_scale, weighted_median

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

THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
OUTPUTS = np.column_stack([Y, X[:, 2] + 0.1 * Y**2])
TASKS = {"task": 4, "norm": "group"}

CASES = {
    "squares": (ConstrainedRegressor, Y, {}),
    "squares, penalised": (ConstrainedRegressor, Y, {"radius": None}),
    "squares, penalised and scaled": (ConstrainedRegressor, Y, {"radius": None, "standardize": True}),
    "lasso, penalised": (ConstrainedRegressor, Y, {"radius": None, "p": 1.0}),
    "p = 1.5, penalised": (ConstrainedRegressor, Y, {"radius": None, "p": 1.5}),
    "scaled": (ConstrainedRegressor, Y, {"standardize": True}),
    "lasso": (ConstrainedRegressor, Y, {"p": 1.0}),
    "free": (ConstrainedRegressor, Y, {"free": [1]}),
    "outputs": (ConstrainedRegressor, OUTPUTS, {"norm": "group"}),
    "huber": (ConstrainedRegressor, Y, {"loss": "huber"}),
    "biweight": (ConstrainedRegressor, Y, {"loss": "biweight"}),
    "tasks": (ConstrainedRegressor, Y, TASKS),
    "tasks, scaled": (ConstrainedRegressor, Y, {**TASKS, "standardize": True}),
    "tasks, scaled, no intercept": (ConstrainedRegressor, Y, {**TASKS, "standardize": True, "fit_intercept": False}),
    "tasks, huber": (ConstrainedRegressor, Y, {"task": 4, "loss": "huber", "standardize": True}),
    "logistic": (ConstrainedClassifier, LABELS, {}),
    "logistic, penalised": (ConstrainedClassifier, LABELS, {"radius": None, "standardize": True}),
    "logistic, penalised and balanced": (ConstrainedClassifier, LABELS, {"radius": None, "class_weight": "balanced"}),
    "logistic, balanced": (ConstrainedClassifier, LABELS, {"class_weight": "balanced"}),
    "logistic, weights of classes": (ConstrainedClassifier, LABELS, {"class_weight": {0: 1.0, 1: 2.5}}),
    "logistic, tasks": (ConstrainedClassifier, LABELS, {"task": 4, "standardize": True, "tol": 1e-8}),
    "softmax of two": (ConstrainedClassifier, LABELS, {"loss": "softmax"}),
    "three classes": (ConstrainedClassifier, THREE, {}),
    "three classes, balanced": (ConstrainedClassifier, THREE, {"class_weight": "balanced"}),
    "sigmoid": (ConstrainedClassifier, LABELS, {"loss": "squared_sigmoid"}),
}


@pytest.mark.parametrize(("kind", "y", "more"), CASES.values(), ids=CASES)
def test_fits(kind, y, more):
    given = {"radius": 0.8, "tol": 1e-10, "max_iter": 5_000, "standardize": False, **more}
    weighted, repeated, plain = (kind(**given).fit(*rows) for rows in ((X, y, WEIGHT), (X[ROWS], y[ROWS]), (X, y)))
    assert weighted.radius_ == pytest.approx(repeated.radius_, rel=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-4, atol=1e-4)
    assert not np.allclose(plain.coef_, repeated.coef_, rtol=1e-3)  # the weights matter here
    assert weighted.verify(X, y, WEIGHT).ok


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
    assert robust_scale(values, weight) == pytest.approx(robust_scale(repeated), rel=1e-9)


NEGATIVE = {"one": np.where(np.arange(N) == 7, -1.0, 1.0), "all": np.full(N, -1.0)}
REFUSAL = r"^`sample_weight` must be non-negative with a positive sum, got -1 to -?1; drop the rows that should not"


@pytest.mark.parametrize("weight", NEGATIVE.values(), ids=NEGATIVE)
@pytest.mark.parametrize(("kind", "y", "more"), CASES.values(), ids=CASES)
def test_negative_weights_are_refused(kind, y, more, weight):
    with pytest.raises(ValueError, match=REFUSAL):
        kind(**{"radius": 0.8, **more}).fit(X, y, weight)


def test_negative_weights_of_classes_are_refused():
    model = ConstrainedClassifier(radius=1.0, class_weight={0: 1.0, 1: -2.0})
    with pytest.raises(ValueError, match=r"^`class_weight` must hold no negative weight, got -2 for the class 1; drop"):
        model.fit(X, LABELS)
