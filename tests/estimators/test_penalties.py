"""`alpha` and `C`: scikit-learn's penalised models as balls."""

import re

import numpy as np
import pytest
from estimators.problems import L1_PENALTY
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_regression
from sklearn.linear_model import GammaRegressor, Lasso, LogisticRegression, MultiTaskLasso, PoissonRegressor, Ridge
from sklearn.preprocessing import scale

from projfree import ConstrainedClassifier, ConstrainedRegressor, PrimalAveraging

EXACT = {"tol": 1e-13, "max_iter": 200_000}


def regression():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y, np.random.default_rng(0).integers(0, 4, len(y)).astype(float)


def agrees(ours, theirs, X, y, s=None):
    given = {} if s is None else {"sample_weight": s}
    ours.fit(X, y, **given)
    theirs.fit(X, y, **given)
    largest = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(np.squeeze(ours.coef_), np.squeeze(theirs.coef_), rtol=0, atol=1e-6 * largest)
    assert ours.verify(X, y, **given).ok
    assert ours.standardize_ is False
    assert ours.result_.status.converged


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("intercept", [True, False])
def test_ridge(alpha, intercept):
    X, y, s = regression()
    ours = ConstrainedRegressor(alpha=alpha, fit_intercept=intercept)
    agrees(ours, Ridge(alpha=alpha, fit_intercept=intercept), X, y, s)
    from projfree.estimators import ridge_alpha

    assert ridge_alpha(ours.multiplier_, ours.radius_, s.sum()) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 20.0])
def test_lasso(alpha):
    X, y, s = regression()
    ours = ConstrainedRegressor(p=1, alpha=alpha)
    agrees(ours, Lasso(alpha=alpha, **EXACT), X, y, s)
    assert ours.multiplier_ == pytest.approx(2.0 * alpha, rel=1e-6)
    assert np.count_nonzero(ours.coef_) == np.count_nonzero(Lasso(alpha=alpha, **EXACT).fit(X, y, s).coef_)


@pytest.mark.parametrize("alpha", [0.1, 20.0])
def test_several_outputs(alpha):
    X, y, _ = regression()
    Y = np.column_stack([y, 30.0 * X[:, 0] + 0.1 * y, X[:, 1]])
    agrees(ConstrainedRegressor(norm="group", alpha=alpha), MultiTaskLasso(alpha=alpha, **EXACT), X, Y)
    agrees(ConstrainedRegressor(p=1, alpha=alpha), Lasso(alpha=alpha, **EXACT), X, Y)
    agrees(ConstrainedRegressor(alpha=alpha), Ridge(alpha=alpha), X, Y)


@pytest.mark.parametrize("p", [1, 2])
def test_wide_tables(p):
    X, y = make_regression(100, 1500, n_informative=10, noise=3.0, random_state=0)
    agrees(ConstrainedRegressor(p=p, alpha=1.0), Lasso(**EXACT) if p == 1 else Ridge(), X, y)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("loss", "theirs"), [("poisson", PoissonRegressor), ("gamma", GammaRegressor)])
def test_means_on_a_logarithmic_scale(loss, theirs, alpha, intercept):
    X, y, s = regression()
    given = {"alpha": alpha, "fit_intercept": intercept}
    other = theirs(solver="newton-cholesky", tol=1e-12, max_iter=1000, **given)
    agrees(ConstrainedRegressor(loss, **given), other, X, y / 100.0, s)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
def test_logistic_regression(C):
    X, y = load_breast_cancer(return_X_y=True)
    s = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    theirs = LogisticRegression(C=C, solver="newton-cholesky", **EXACT)
    agrees(ConstrainedClassifier(C=C), theirs, scale(X), y, s)


@pytest.mark.parametrize("C", [1e-2, 1.0])
def test_three_classes(C):
    X, y = load_wine(return_X_y=True)
    agrees(ConstrainedClassifier(C=C), LogisticRegression(C=C, solver="newton-cg", **EXACT), scale(X), y)


def test_classes_of_many_features_take_the_matrices_that_the_fit_takes(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000, 70))
    y = np.digitize(X[:, :10].sum(axis=1) + rng.standard_normal(2_000), [-2.0, 2.0])
    monkeypatch.setattr("scipy.sparse.linalg.cg", None)
    agrees(ConstrainedClassifier(C=0.1), LogisticRegression(C=0.1, solver="newton-cg", **EXACT), X, y)


def test_logistic_regression_with_few_features():
    X, y = load_breast_cancer(return_X_y=True)
    theirs = LogisticRegression(C=0.05, **L1_PENALTY, solver="saga", tol=1e-9, max_iter=50_000)
    agrees(ConstrainedClassifier(p=1, C=0.05), theirs, scale(X[:, :8]), y)


@pytest.mark.parametrize("norm", [{"p": 1}, {"norm": "group"}], ids=repr)
def test_above_the_largest_penalty_all_is_zero(norm):
    X, y, _ = regression()
    Y = np.column_stack([y, 2.0 * y])
    model = ConstrainedRegressor(alpha=1e4, **norm).fit(X, Y)
    assert not model.coef_.any()
    assert model.verify(X, Y).ok
    labels = ConstrainedClassifier(p=1, C=1e-6).fit(X, y > 140)
    assert not labels.coef_.any()
    assert labels.verify(X, y > 140).ok
    np.testing.assert_allclose(labels.intercept_, np.log(np.mean(y > 140) / np.mean(y <= 140)), rtol=1e-6)


WRONG = [
    ({"alpha": 1.0, "radius": 2.0}, "`alpha` is another way to say `radius`, got 1.0 and 2.0; leave one out."),
    ({"alpha": 0.0}, "`alpha` must be positive and finite, got 0.0."),
    ({"alpha": 1.0, "loss": "huber"}, "`alpha` needs `loss` to be 'squared' or 'poisson' or 'gamma', "),
    ({"alpha": 1.0, "loss": "poisson", "p": 1}, "`alpha` needs p=2 with loss='poisson', got norm='lp', p=1,"),
    ({"alpha": 1.0, "p": 1.5}, "`alpha` needs p=2, p=1, or `norm='group'`"),
    ({"alpha": 1.0, "positive": True}, "`alpha` does not go together with `positive`; use `radius`."),
    ({"alpha": 1.0, "free": [0]}, "`alpha` does not go together with `free`; use `radius`."),
]


@pytest.mark.parametrize(("settings", "sentence"), WRONG)
def test_elsewhere_a_penalty_is_refused(settings, sentence):
    X, y, _ = regression()
    with pytest.raises(ValueError, match=re.escape(sentence)):
        ConstrainedRegressor(**settings).fit(X, y)


def test_a_penalty_of_a_classifier_is_refused_with_other_losses():
    X, y, _ = regression()
    with pytest.raises(ValueError, match="`C` needs `loss` to be 'logistic' or 'softmax'"):
        ConstrainedClassifier("squared_sigmoid", C=1.0).fit(X, y > 140)


@pytest.mark.parametrize("model", [ConstrainedRegressor(alpha=2.0), ConstrainedClassifier(C=2.0)], ids=repr)
def test_a_penalty_is_explained_as_a_radius_is(model):
    X, y, _ = regression()
    y = y if isinstance(model, ConstrainedRegressor) else y > 140
    other = type(model)(radius=1.0, standardize=False)
    assert repr(model.explain(X, y)) == repr(other.explain(X, y))


def test_other_solvers_begin_at_the_answer():
    X, y, _ = regression()
    agrees(ConstrainedRegressor(alpha=10.0, solver=PrimalAveraging()), Ridge(alpha=10.0), X, y)


@pytest.mark.parametrize("seed", range(4))
def test_small_penalties_of_wide_tables_meet_the_conditions_for_a_minimum(seed):
    # More features than rows: a step that lets all of them in at once has a singular face.
    rng = np.random.default_rng(seed)
    X, Y, alpha = rng.standard_normal((30, 60)), rng.standard_normal((30, 2)), 1.2e-4
    Y[:, 0] = np.clip(X @ rng.standard_normal(60), -3.0, 3.0)
    model = ConstrainedRegressor(norm="group", alpha=alpha).fit(X, Y)
    W = model.coef_.T
    slope, sizes = X.T @ (X @ W + model.intercept_ - Y) / len(Y), np.linalg.norm(W, axis=1)
    used = sizes > 1e-9
    assert 0 < used.sum() < 60
    on = np.linalg.norm(slope[used] + alpha * W[used] / sizes[used, None], axis=1)
    assert on.max() < 1e-5 * alpha
    assert np.linalg.norm(slope[~used], axis=1).max() < (1.0 + 1e-5) * alpha
