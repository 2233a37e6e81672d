"""Estimators with the losses of generalised linear models, support vectors and quantiles, against their peers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import GammaRegressor, PoissonRegressor, QuantileRegressor
from sklearn.svm import LinearSVC

from projfree import (
    ConstrainedClassifier,
    ConstrainedRegressor,
    Objective,
    Poisson,
    Simplex,
    as_data,
    minimize,
)
from projfree.testing import SealedData

RNG = np.random.default_rng(5)
X = RNG.standard_normal((240, 6))
W = np.array([0.5, -0.4, 0.0, 0.3, 0.0, -0.2])
MEAN = np.exp(X @ W + 0.3)
COUNTS, AMOUNTS = RNG.poisson(MEAN).astype(float), RNG.gamma(3.0, MEAN / 3.0)
WEIGHT = RNG.uniform(0.5, 2.0, len(X))
GLMS = {"poisson": (COUNTS, PoissonRegressor), "gamma": (AMOUNTS, GammaRegressor)}


def fitted(loss, y, weight=None, p=2.0, radius=0.5, **settings):
    model = ConstrainedRegressor(loss=loss, p=p, radius=radius, tol=1e-9, **settings).fit(X, y, sample_weight=weight)
    assert model.result_.status.converged
    assert model.verify(X, y, sample_weight=weight).ok
    return model


@pytest.mark.parametrize("name", GLMS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_generalised_linear_models(name, intercept, weight):
    y, peer = GLMS[name]
    model = fitted(name, y, weight, fit_intercept=intercept)
    # mu |w| and alpha |w|^2 / 2 have the same gradient at a solution if alpha is mu over the norm.
    alpha = model.multiplier_ / np.linalg.norm(model.coef_)
    other = peer(alpha=alpha, fit_intercept=intercept, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    other.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-5)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-4)
    assert model.score(X, y, weight) == pytest.approx(other.score(X, y, weight), abs=1e-6)


@pytest.mark.parametrize("name", GLMS)
def test_storages_and_outputs_agree(name):
    y = GLMS[name][0]
    one = fitted(name, y)
    thin = ConstrainedRegressor(loss=name, radius=0.5, tol=1e-9).fit(sp.csr_array(X), y)
    sealed = ConstrainedRegressor(loss=name, radius=0.5, tol=1e-9).fit(SealedData(X, y))
    for other in (thin, sealed):
        np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-5)
    both = ConstrainedRegressor(loss=name, radius=0.7, tol=1e-9).fit(X, np.column_stack([y, y[::-1]]))
    assert both.coef_.shape == (2, 6)
    assert both.result_.status.converged
    np.testing.assert_allclose(both.predict(X), np.exp(X @ both.coef_.T + both.intercept_))


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("intercept", [False, True])
def test_quantiles(quantile, intercept):
    """The peer's solution is also one of the ball whose radius is the norm of its coefficients."""
    y = X @ W + np.random.default_rng(1).standard_t(3, len(X))
    other = QuantileRegressor(quantile=quantile, alpha=0.03, fit_intercept=intercept).fit(X, y)
    radius = np.abs(other.coef_).sum()
    assert radius > 0.1
    model = ConstrainedRegressor(
        loss="quantile", quantile=quantile, p=1, radius=radius, tol=1e-6, fit_intercept=intercept
    ).fit(X, y)
    assert model.result_.status.converged
    assert model.verify(X, y).ok
    values = []
    for each in (model, other):
        r = y - each.predict(X)
        values.append(np.maximum(quantile * r, (quantile - 1) * r).mean())
    assert model.result_.value == pytest.approx(values[0], rel=1e-12)
    assert values[0] == pytest.approx(values[1], rel=1.1e-6)
    assert model.result_.bound <= values[1] * (1 + 1e-9)  # the peer's tolerance


@pytest.mark.parametrize("penalty", [1.0, 2.0])
def test_squared_hinge(penalty):
    y = np.where(X @ W + np.random.default_rng(2).standard_normal(len(X)) > 0, "yes", "no")
    model = ConstrainedClassifier(loss="squared_hinge", p=penalty, radius=0.4, tol=1e-10, fit_intercept=False).fit(X, y)
    assert model.result_.status.converged
    assert model.verify(X, y).ok
    norm = np.linalg.norm(model.coef_) if penalty == 2.0 else 1.0
    C = norm / (model.multiplier_ * len(X))
    kind = "l2" if penalty == 2.0 else "l1"
    other = LinearSVC(
        loss="squared_hinge", penalty=kind, dual=False, C=C, fit_intercept=False, tol=1e-8, max_iter=50_000
    )
    other.fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0])
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize(
    ("loss", "y", "sentence"),
    [
        ("poisson", np.r_[-1.0, COUNTS[1:]], r"`y` must lie between 0 and 1e\+30, got -1.0 at index 0: a Poisson loss"),
        ("gamma", np.r_[0.0, AMOUNTS[1:]], r"`y` must lie between 1e-15 and 1e\+15, got 0.0 at index 0: a Gamma loss"),
        ("poisson", np.zeros(len(X)), "needs a positive target in each output, got zeros only"),
    ],
)
def test_targets_are_refused(loss, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        ConstrainedRegressor(loss=loss).fit(X, y)


def test_an_exponential_at_the_centre_is_no_scale():
    f = Objective(Poisson(), as_data(np.array([[1000.0, 1.0, -1.0]]), np.array([2.0])))
    result = minimize(f, Simplex(2.3), tol=1e-8, max_iter=1, start=np.array([0.05, 1.1, 1.15]))
    assert result.value > 1e6  # the minimum is zero: some mixture of the columns predicts log 2
    assert not result.status.converged
    assert result.relative_gap == pytest.approx(1.0)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", GLMS)
@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize("mean", [3.0, 7e-5, 2e7])
def test_targets_that_are_all_equal_leave_nothing_to_explain(name, p, rows, mean):
    """Values and their scale are rounding alone there, of which a run made a relative gap of 1 and a warning."""
    for radius in (None, 1.0):
        model = ConstrainedRegressor(name, p=p, radius=radius).fit(X[:rows], np.full(rows, mean))
        assert model.result_.status.converged
        assert model.result_.relative_gap <= 1e-6
        assert model.radius_ == (1.0 if radius else pytest.approx(0.0, abs=1e-9))
        np.testing.assert_allclose(X[:rows] @ model.coef_, 0.0, atol=1e-9)
        assert model.intercept_ == pytest.approx(np.log(mean), rel=1e-9)
