"""`alpha` and `C`: without a radius the estimators are scikit-learn's penalised models."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from estimators.problems import L1_PENALTY
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_regression,
)
from sklearn.linear_model import (
    GammaRegressor,
    Lasso,
    LogisticRegression,
    MultiTaskLasso,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from sklearn.preprocessing import scale

from projfree import (
    BiWeight,
    ConstrainedClassifier,
    ConstrainedRegressor,
    Huber,
)
from projfree.estimators.penalty import norm_power

EXACT = {"tol": 1e-12, "max_iter": 200_000}
NEWTON = {"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 1_000}


def weights(n):
    return np.random.default_rng(0).integers(0, 4, n).astype(float)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y


def outputs():
    X, y = diabetes()
    return X, np.column_stack([y, 30.0 * X[:, 0] + 0.1 * y, X[:, 1]])


def linear(model, X):
    """Predictions on the scale of the coefficients, softmax scores about their mean."""
    u = X @ model.coef_.T + model.intercept_
    return u - u.mean(axis=1, keepdims=True) if u.ndim == 2 and u.shape[1] > 2 else u.reshape(len(u), -1)


def agrees(ours, theirs, X, y, s=None):
    given = {} if s is None else {"sample_weight": s}
    ours.fit(X, y, **given)
    theirs.fit(X, y, **given)
    expected = linear(theirs, X)
    np.testing.assert_allclose(linear(ours, X), expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert ours.verify(X, y, **given).ok
    assert ours.result_.status.converged
    assert ours.standardize_ is False


# ---------------------------------------------------------------------- scikit-learn's models

REGRESSION = {
    "diabetes": diabetes(),
    "outputs": outputs(),
    "sparse": (sp.random(300, 40, density=0.1, random_state=0, format="csr"), None),
    "wide": make_regression(80, 600, n_informative=10, noise=3.0, random_state=0),
    "other scales": make_regression(200, 8, noise=10.0, random_state=1),
}
REGRESSION["sparse"] = (REGRESSION["sparse"][0], REGRESSION["sparse"][0] @ np.arange(40.0) + weights(300))
REGRESSION["other scales"] = (REGRESSION["other scales"][0] * 10.0 ** np.arange(-3, 5), REGRESSION["other scales"][1])


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("name", REGRESSION)
def test_ridge(name, alpha):
    X, y = REGRESSION[name]
    agrees(
        ConstrainedRegressor(alpha=alpha), Ridge(alpha=alpha, solver="sag" if sp.issparse(X) else "auto", **EXACT), X, y
    )


@pytest.mark.parametrize("alpha", [10.0, 1e3])
@pytest.mark.parametrize("name", REGRESSION)
def test_lasso(name, alpha):
    X, y = REGRESSION[name]
    agrees(ConstrainedRegressor(p=1, alpha=alpha), Lasso(alpha=alpha / X.shape[0], **EXACT), X, y)


@pytest.mark.parametrize("alpha", [1.0, 1e3])
def test_multi_task_lasso(alpha):
    X, Y = outputs()
    agrees(ConstrainedRegressor(norm="group", alpha=alpha), MultiTaskLasso(alpha=alpha / len(Y), **EXACT), X, Y)


@pytest.mark.parametrize("alpha", [0.1, 100.0])
@pytest.mark.parametrize(("loss", "theirs"), [("poisson", PoissonRegressor), ("gamma", GammaRegressor)])
def test_means_on_a_logarithmic_scale(loss, theirs, alpha):
    X, y = diabetes()
    s = weights(len(y))
    agrees(ConstrainedRegressor(loss, alpha=alpha), theirs(alpha=2.0 * alpha / s.sum(), **NEWTON), X, y / 100.0, s)


CLASSES = {
    "cancer": (scale(load_breast_cancer().data), load_breast_cancer().target),
    "raw cancer": (load_breast_cancer().data[:, :8], load_breast_cancer().target),
    "iris": load_iris(return_X_y=True),
    "wine": (scale(load_wine().data), load_wine().target),
    "digits": (load_digits().data[:500] / 16.0, load_digits().target[:500]),
    "many features": make_classification(200, 300, n_informative=20, random_state=0),
    "sparse": (sp.csr_array(np.maximum(scale(load_breast_cancer().data) - 0.5, 0.0)), load_breast_cancer().target),
}


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("name", CLASSES)
def test_logistic_regression(name, C):
    X, y = CLASSES[name]
    agrees(ConstrainedClassifier(C=C), LogisticRegression(C=C, **NEWTON), X, y)


def test_l1_penalised_logistic_regression():
    X, y = CLASSES["cancer"]
    theirs = LogisticRegression(C=0.05, **L1_PENALTY, solver="saga", tol=1e-9, max_iter=50_000)
    agrees(ConstrainedClassifier(p=1, C=0.05), theirs, X[:, :8], y)
    theirs = LogisticRegression(**L1_PENALTY, solver="liblinear", fit_intercept=False, tol=1e-9, max_iter=10_000)
    agrees(ConstrainedClassifier(p=1, fit_intercept=False), theirs, X, y)


def test_l1_penalised_softmax():
    X, y = CLASSES["iris"]
    theirs = LogisticRegression(C=0.5, **L1_PENALTY, solver="saga", tol=1e-10, max_iter=200_000)
    agrees(ConstrainedClassifier(p=1, C=0.5), theirs, scale(X), y)


@pytest.mark.parametrize("p", [1, 2])
def test_positive_coefficients(p):
    X, y = diabetes()
    theirs = Lasso(alpha=100.0 / len(y), positive=True, **EXACT) if p == 1 else Ridge(100.0, positive=True, tol=1e-12)
    agrees(ConstrainedRegressor(p=p, alpha=100.0, positive=True), theirs, X, y)


def test_quantile_regression():
    X, y = diabetes()
    ours = ConstrainedRegressor("quantile", quantile=0.7, p=1, alpha=2.0).fit(X, y)
    theirs = QuantileRegressor(quantile=0.7, alpha=4.0 / len(y)).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=2e-4)
    assert ours.radius_ == pytest.approx(np.abs(theirs.coef_).sum(), rel=1e-3)


# ---------------------------------------------------------------------- other norms and losses


def optimal(model, weight, rel=1e-4):
    """The norm is the radius, and its multiplier the slope of the penalty there."""
    k = norm_power(model.ball_)
    assert model.multiplier_ == pytest.approx(weight * model.radius_ ** (k - 1.0), rel=rel)
    assert model.result_.status.converged


NORMS = [
    {"p": 1.2},
    {"p": 1.5},
    {"p": 3.0},
    {"p": np.inf},
    {"p": 1.5, "positive": True},
    {"norm": "group", "q": 1.5},
    {"norm": "group", "p": np.inf},
    {"norm": "schatten", "p": 1},
    {"norm": "schatten", "p": 1.5},
    {"norm": "schatten", "p": 3},
]


@pytest.mark.parametrize("given", NORMS, ids=repr)
def test_regression_over_other_norms(given):
    X, Y = outputs()
    model = ConstrainedRegressor(alpha=20.0, **given).fit(X, Y)
    optimal(model, 40.0 / len(Y))
    assert model.verify(X, Y).ok
    assert norm_power(model.ball_) == min(
        given["q"] if "q" in given else 1.0 if "group" in given.values() else given["p"], 2
    )


@pytest.mark.parametrize("given", [*NORMS, {"norm": "group"}], ids=repr)
def test_classification_over_other_norms(given):
    X, y = CLASSES["wine"]
    model = ConstrainedClassifier(C=0.1, **given).fit(X, y)
    optimal(model, 10.0 / len(y))
    assert model.verify(X, y).ok


@pytest.mark.parametrize(
    ("loss", "given"),
    [
        *(("squared", {"p": p}) for p in (1, 1.5, 2)),
        ("huber", {"p": 1}),
        (Huber(20.0), {"p": 2}),
        ("gamma", {"p": 1.5}),
    ],
    ids=repr,
)
def test_free_columns_are_not_penalised(loss, given):
    X, y = diabetes()
    y = y / 100.0 if loss == "gamma" else y
    alpha = 2.0 if loss == "gamma" else 50.0
    model = ConstrainedRegressor(loss, alpha=alpha, free=[2], **given).fit(X, y)
    optimal(model, 2.0 * alpha / len(y))
    assert model.verify(X, y).ok
    other = np.linalg.norm(np.delete(model.coef_, 2), given["p"])
    assert other == pytest.approx(model.radius_, rel=1e-6)
    assert abs(model.coef_[2]) > 0.1 * np.abs(model.coef_).max()


@pytest.mark.parametrize("given", [{"p": 1}, {"p": 2}, {"norm": "group"}, {"norm": "schatten", "p": 1}], ids=repr)
def test_tasks(given):
    X, y = diabetes()
    task = np.arange(len(y)) % 3
    model = ConstrainedRegressor(task=10, alpha=200.0, **given).fit(np.column_stack([X, task]), y)
    optimal(model, 400.0 / len(y))
    assert model.verify(np.column_stack([X, task]), y).ok


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_tasks_of_other_losses_are_certified_at_once(loss):
    """The slopes along their intercepts, which no ball holds, vanish; else they cost thousands of steps."""
    X, y = diabetes()
    table = np.column_stack([X, np.arange(len(y)) % 3])
    model = ConstrainedRegressor(loss, task=10) if loss == "huber" else ConstrainedClassifier(task=10)
    model.fit(table, y if loss == "huber" else y > 140)
    assert model.result_.n_iter < 10
    assert model.result_.relative_gap <= 1e-6
    model.set_params(task=None)  # models read the rows as their fit has done
    assert len(model.predict(table)) == len(y)


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_losses_that_are_not_convex(p):
    X, y = CLASSES["cancer"]
    model = ConstrainedClassifier("squared_sigmoid", p=p).fit(X, y)
    optimal(model, 1.0 / len(y), rel=1e-3)
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("p", [1, 2])
def test_the_bi_weight_takes_the_radius_of_the_huber_fit(p):
    X, y = diabetes()
    huber, model = (ConstrainedRegressor(loss, p=p, alpha=10.0).fit(X, y) for loss in ("huber", "biweight"))
    optimal(huber, 20.0 / len(y))
    assert model.radius_ == pytest.approx(huber.radius_, rel=1e-9)
    assert model.loss_.scale == pytest.approx(3.787 / 1.345 * huber.loss_.delta, rel=1e-9)
    given = ConstrainedRegressor(BiWeight(model.loss_.scale), p=p, alpha=10.0).fit(X, y)
    assert given.radius_ == pytest.approx(huber.radius_, rel=1e-9)


@pytest.mark.parametrize(
    ("loss", "p", "free_of_units"),
    [
        ("squared", 2, True),
        ("squared", 1, False),
        ("huber", 2, True),
        ("huber", 1, False),
        ("biweight", 2, True),
        ("gamma", 1, True),
        ("gamma", 2, True),
        ("poisson", 2, False),
    ],
)
def test_whether_a_penalty_depends_on_the_unit_of_the_target(loss, p, free_of_units):
    X, y = diabetes()
    one, other = (ConstrainedRegressor(loss, p=p, alpha=10.0).fit(X, unit * y) for unit in (1.0, 1e3))
    expected = one.coef_ if loss in ("gamma", "poisson") else 1e3 * one.coef_
    assert np.allclose(other.coef_, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()) == free_of_units


# ---------------------------------------------------------------------- strong penalties


@pytest.mark.parametrize(
    "given",
    [
        {"p": 1},
        {"norm": "group", "feature_groups": [0] * 5 + [1] * 5},
        {"p": 1, "loss": "huber"},
        {"p": 1, "loss": "biweight"},
        {"p": 1, "loss": "quantile"},
        {"p": 1, "positive": True},
    ],
    ids=repr,
)
def test_above_the_largest_penalty_all_coefficients_are_zero(given):
    X, y = diabetes()
    model = ConstrainedRegressor(alpha=1e7, **given).fit(X, y)
    assert not model.coef_.any()
    assert model.radius_ == 0.0
    assert model.result_.n_iter == 0
    assert model.result_.status.converged
    assert model.verify(X, y).ok


@pytest.mark.parametrize("loss", ["squared", "huber", "biweight", "quantile", "poisson", "gamma"])
def test_a_constant_target_has_the_null_model(loss):
    X, y = diabetes()
    y = np.full(len(y), 3.0)
    model = ConstrainedRegressor(loss).fit(X, y)
    assert not model.coef_.any()
    assert model.radius_ == 0.0
    assert model.verify(X, y).ok


@pytest.mark.parametrize("alpha", [1e3, 1e6, 1e9])
def test_the_largest_penalty_is_where_the_slope_at_zero_is(alpha):
    X, y = diabetes()
    model = ConstrainedRegressor(p=1.5, alpha=alpha).fit(X, y)
    optimal(model, 2.0 * alpha / len(y))


def test_many_rows():
    """The multiplier is a tiny part of the loss there, and a gap of 1e-6 of the loss says nothing about it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 4))
    y = X @ [1.0, -0.5, 0.2, 0.0] + rng.standard_normal(len(X))
    model = ConstrainedRegressor(p=1.5).fit(X, y)
    optimal(model, 2.0 / len(y), rel=1e-2)
    agrees(ConstrainedClassifier(), LogisticRegression(**NEWTON), X, y > 0)


# ---------------------------------------------------------------------- the interface


def test_a_radius_is_used_in_place_of_the_penalty():
    X, y = diabetes()
    one, other = (ConstrainedRegressor(radius=5.0, alpha=alpha).fit(X, y) for alpha in (1e-3, 1e3))
    assert one.radius_ == other.radius_ == 5.0
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.inf])
def test_a_penalty_must_be_positive(alpha):
    X, y = diabetes()
    with pytest.raises(ValueError, match=re.escape(f"`alpha` must be positive and finite, got {alpha}.")):
        ConstrainedRegressor(alpha=alpha).fit(X, y)
    with pytest.raises(ValueError, match="`C` must be positive and finite"):
        ConstrainedClassifier(C=alpha).fit(X, y > 140)


def test_a_radius_may_be_known_where_its_multiplier_is_not():
    """A penalty far below the rounding of the loss is no failure: the coefficients are those of the limit."""
    X, y = diabetes()
    model, limit = (ConstrainedRegressor(p=1.5, alpha=alpha).fit(X[:4, :2], y[:4]) for alpha in (1e-12, 1e-6))
    np.testing.assert_allclose(model.coef_, limit.coef_, rtol=1e-5)


@pytest.mark.parametrize("alpha", [1e-12, 1e-2, 1.0, 1e2, 1e12])
@pytest.mark.parametrize("p", [1.0001, 1.01])
def test_exponents_just_above_one(p, alpha):
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = 3.0 * X[:, 0] + X[:, 1]
    model = ConstrainedRegressor(p=p, alpha=alpha).fit(X, y)
    if 1e-12 < alpha < 1e12:
        assert model.multiplier_ == pytest.approx(2.0 * alpha / 40 * model.radius_ ** (p - 1.0), rel=5e-3)
    assert (model.radius_ == 0.0) == (alpha == 1e12)
