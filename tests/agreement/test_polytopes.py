"""Least squares over polytopes and the k-support ball against a general convex solver."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import (
    Birkhoff,
    Box,
    KSupportBall,
    LpBall,
    Objective,
    OwlBall,
    PairwiseFrankWolfe,
    QuadraticForm,
    Simplex,
    Squared,
    as_data,
    minimize,
)

cvxpy = pytest.importorskip("cvxpy")

RNG = np.random.default_rng(2)
X = RNG.standard_normal((40, 6)) * np.array([2.0, 1.0, 1.0, 0.5, 0.5, 0.2])
Y = X @ np.array([1.0, 0.9, -0.8, 0.0, 0.0, 2.0]) + 0.3 * RNG.standard_normal(40)
WEIGHTS = np.array([2.0, 1.5, 1.0, 0.6, 0.3, 0.0])


def sorted_norm(w):
    steps = WEIGHTS - np.append(WEIGHTS[1:], 0.0)
    return sum(c * cvxpy.sum_largest(cvxpy.abs(w), j) for j, c in enumerate(steps, start=1) if c > 0.0)


def k_support(w, k, radius):
    """Shares of the entries, at most one each and k together, make the square of the norm a sum of quotients."""
    shares = cvxpy.Variable(w.shape)
    quotients = cvxpy.sum(cvxpy.hstack([cvxpy.quad_over_lin(w[i], shares[i]) for i in range(w.shape[0])]))
    return [quotients <= radius**2, shares >= 0, shares <= 1, cvxpy.sum(shares) <= k]


CASES = {
    "l_1": (LpBall(1, 1.5), lambda w: [cvxpy.norm(w, 1) <= 1.5]),
    "simplex": (Simplex(1.2), lambda w: [w >= 0, cvxpy.sum(w) == 1.2]),
    "box": (Box(-0.5, 0.6), lambda w: [w >= -0.5, w <= 0.6]),
    "owl": (OwlBall(WEIGHTS, 2.0), lambda w: [sorted_norm(w) <= 2.0]),
    "2-support": (KSupportBall(2, 1.0), lambda w: k_support(w, 2, 1.0)),
    "4-support": (KSupportBall(4, 1.5), lambda w: k_support(w, 4, 1.5)),
}
SOLVERS = [PairwiseFrankWolfe(), PairwiseFrankWolfe(corrections=0), "auto"]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("name", CASES)
def test_least_squares(name, solver):
    ball, constraints = CASES[name]
    if solver == SOLVERS[1] and not ball.structure((6,)).polytope:
        pytest.skip("without corrections the rate is linear on polytopes alone")
    w = cvxpy.Variable(6)
    best = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(X @ w - Y) / 40), constraints(w)).solve(cvxpy.CLARABEL)
    result = minimize(Objective(Squared(), as_data(X, Y)), ball, solver, tol=1e-6, max_iter=3_000)
    assert result.status.converged
    assert result.value == pytest.approx(best, rel=3e-6)
    assert result.bound <= best * (1 + 1e-7)
    np.testing.assert_allclose(result.w, w.value, atol=2e-2)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_the_nearest_doubly_stochastic_matrix(solver):
    n = 5
    target = np.random.default_rng(3).standard_normal((n, n))
    f = QuadraticForm(np.eye(n), target, 0.5 * float(np.sum(target**2)))
    W = cvxpy.Variable((n, n))
    sums = [W >= 0, cvxpy.sum(W, axis=0) == 1, cvxpy.sum(W, axis=1) == 1]
    best = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(W - target)), sums).solve(cvxpy.CLARABEL)
    result = minimize(f, Birkhoff(), solver, tol=1e-7, max_iter=3_000)
    assert result.status.converged
    assert result.value == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(result.w, W.value, atol=5e-3)
    for v in minimize(f, Birkhoff(), PairwiseFrankWolfe(), tol=1e-9).active_set.vertices:
        assert set(np.unique(v)) == {0.0, 1.0}


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_the_k_support_norm(k):
    x = np.random.default_rng(k).standard_normal(6)
    shares = cvxpy.Variable(6)
    sums = cvxpy.sum(cvxpy.multiply(x**2, cvxpy.inv_pos(shares)))
    square = cvxpy.Problem(cvxpy.Minimize(sums), [shares <= 1, cvxpy.sum(shares) <= k]).solve(cvxpy.CLARABEL)
    assert KSupportBall(k, 1.0).norm(x) == pytest.approx(np.sqrt(square), rel=1e-6)
