"""Agreement with scikit-learn and skglm at matched multipliers: the same coefficients to 1e-6."""

import numpy as np
import pytest
from estimators.problems import L1_PENALTY
from sklearn.linear_model import Lasso, LogisticRegression

from projfree import ConstrainedClassifier, ConstrainedRegressor

CLOSE = {"rtol": 0.0, "atol": 1e-6}
TOL = 1e-11


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 8)) @ np.diag([1, 1, 2, 1, 0.5, 1, 1, 3]) + 0.3
    w = np.array([1.0, -2.0, 0.0, 0.5, 0.0, 0.0, 3.0, 0.2])
    return X, X @ w + 2.0 + rng.standard_normal(80), rng.uniform(0.5, 2.0, size=80)


@pytest.mark.parametrize(("radius", "positive"), [(2.0, False), (2.0, True), (0.5, True)])
def test_lasso(table, radius, positive):
    X, y, _ = table
    ours = ConstrainedRegressor(p=1, radius=radius, tol=TOL, positive=positive).fit(X, y)
    theirs = Lasso(alpha=ours.multiplier_ / 2, tol=1e-14, max_iter=100_000, positive=positive).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, **CLOSE)
    np.testing.assert_array_equal(np.abs(ours.coef_) > 1e-9, theirs.coef_ != 0)
    if positive:
        assert ours.coef_.min() >= 0.0


@pytest.mark.parametrize(
    ("p", "radius", "weighted"), [(2, 0.7, True), (2, 2.0, False), (1, 0.7, True), (1, 2.0, False)]
)
def test_logistic_regression(table, p, radius, weighted):
    X, y, s = table
    s, labels = s if weighted else np.ones(len(y)), np.where(y > 2.0, "above", "below")
    ours = ConstrainedClassifier(p=p, radius=radius, tol=TOL).fit(X, labels, s)
    C = (radius if p == 2 else 1.0) / (s.sum() * ours.multiplier_)
    if p == 2:
        theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-14).fit(X, labels, s)
    else:  # the one solver with an l_1 penalty that leaves the intercept alone
        theirs = LogisticRegression(C=C, solver="saga", **L1_PENALTY, tol=1e-12, max_iter=100_000, random_state=0)
        theirs.fit(X, labels, s)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, **CLOSE)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, **CLOSE)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.slow  # skglm compiles for some 15 seconds
def test_group_lasso_of_skglm(table):
    skglm = pytest.importorskip("skglm", reason="skglm, an optional peer, is not installed: pip install --group peers")
    X, y, _ = table
    groups = [[0, 1], [2, 3, 4], [5], [6, 7]]
    ours = ConstrainedRegressor(norm="group", feature_groups=groups, radius=2.0, tol=TOL, max_iter=50_000).fit(X, y)
    theirs = skglm.GroupLasso(groups=groups, alpha=ours.multiplier_ / 2, tol=1e-12, max_iter=1000)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, **CLOSE)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_free_columns_of_squares_are_ordinary_regressors(table, standardize):
    """Frisch and Waugh: the free coefficients are those of a regression of what the ball leaves."""
    X, y, s = table
    ours = ConstrainedRegressor(radius=0.8, free=[1, 6], standardize=standardize, tol=TOL).fit(X, y, s)
    left = y - X[:, [0, 2, 3, 4, 5, 7]] @ ours.coef_[[0, 2, 3, 4, 5, 7]]
    F, root = np.column_stack([X[:, [1, 6]], np.ones(80)]), np.sqrt(s)
    expected = np.linalg.lstsq(F * root[:, None], left * root, rcond=None)[0]
    np.testing.assert_allclose([ours.coef_[1], ours.coef_[6], ours.intercept_], expected, atol=1e-9)
    assert ours.radius_ == 0.8
    assert ours.verify(X, y, s).ok


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_free_columns_of_other_losses(table, loss):
    """Against a referee that knows nothing of balls with room."""
    cvxpy = pytest.importorskip("cvxpy")
    X, y, _ = table
    kept, free = [0, 2, 3, 4, 5, 7], [1, 6]
    w, c, b = cvxpy.Variable(6), cvxpy.Variable(2), cvxpy.Variable()
    u = X[:, kept] @ w + X[:, free] @ c + b
    noisy = y + 8 * np.random.default_rng(1).standard_normal(80)
    if loss == "huber":
        ours = ConstrainedRegressor("huber", p=1.5, radius=0.8, free=free, tol=1e-7).fit(X, noisy)
        value = cvxpy.sum(cvxpy.huber(u - noisy, ours.loss_.delta)) / 80
    else:
        ours = ConstrainedClassifier(p=1.5, radius=0.8, free=free, tol=1e-7).fit(X, noisy > 0)
        value = cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(np.where(noisy > 0, 1.0, -1.0), u))) / 80
    problem = cvxpy.Problem(cvxpy.Minimize(value), [cvxpy.pnorm(w, 1.5) <= 0.8])
    least = problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert ours.result_.value == pytest.approx(least, rel=1e-6)
    assert ours.result_.bound <= least * (1 + 1e-8)
    np.testing.assert_allclose(np.ravel(ours.coef_)[free], c.value, atol=1e-3)
    assert ours.multiplier_ > 0
