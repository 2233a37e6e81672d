"""`WorkingSet` where some features stand outside the ball."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from solvers.few_features import ACCELERATED, COSTS, DENSE, LOSSES, WEIGHT, D, N, Y, objective

from projfree import (
    GroupBall,
    LpBall,
    Objective,
    Positive,
    Simplex,
    Softmax,
    Squared,
    Weighted,
    WorkingSet,
    as_data,
    minimize,
)
from projfree.sets import WithUnpenalized

RNG = np.random.default_rng(4)


FREE = (3, 70)
KEPT = np.delete(np.arange(D), FREE)
INNER = {
    "l_1": LpBall(1, 2.0),
    "weighted": Weighted(LpBall(1, 2.0), COSTS[KEPT]),
    "positive": Positive(LpBall(1, 2.0)),
    "groups": GroupBall(2, 1, 1.5, tuple(np.arange(len(KEPT)) // 4)),
}


@pytest.mark.parametrize("ball", INNER)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bound", [50.0, 0.05])
def test_free_features_stand_outside_the_ball(ball, loss, bound):
    f = objective(loss, sp.csr_array(DENSE), intercept=loss == "huber", weight=WEIGHT)
    whole = WithUnpenalized(INNER[ball], free=FREE, bound=bound)
    result = minimize(f, whole, WorkingSet(4), tol=1e-7, max_iter=100)
    other = minimize(f, whole, ACCELERATED, tol=1e-3, max_iter=200)
    assert result.status.converged, result
    assert whole.contains(result.w)
    at_end = np.abs(result.w[list(FREE)]).max() == bound
    assert at_end == (bound < 1.0)
    assert result.bound <= other.value
    assert other.bound <= result.value


def test_a_simplex_beside_free_features_is_left_to_other_solvers():
    f, whole = objective("squared"), WithUnpenalized(Simplex(2.0), free=FREE, bound=50.0)
    with pytest.raises(ValueError, match="CorrectivePrimalAveraging"):
        minimize(f, whole, WorkingSet())
    result, other = minimize(f, whole, tol=1e-7), minimize(f, whole, ACCELERATED, tol=1e-3, max_iter=200)
    assert result.status.converged, result
    assert result.bound <= other.value
    assert other.bound <= result.value


@pytest.mark.parametrize("bound", [50.0, 0.5])
def test_a_referee_agrees_about_free_features(bound):
    f, w = objective("squared"), cp.Variable(D)
    norms = [cp.norm1(w[KEPT]) <= 2.0, cp.abs(w[list(FREE)]) <= bound]
    least = cp.Problem(cp.Minimize(cp.sum_squares(DENSE @ w - Y) / N), norms).solve(solver=cp.CLARABEL)
    result = minimize(f, WithUnpenalized(LpBall(1, 2.0), free=FREE, bound=bound), WorkingSet(10), tol=1e-9, max_iter=50)
    assert result.status.converged
    assert result.value == pytest.approx(least, rel=1e-6)
    assert result.bound <= least * (1.0 + 1e-7)


@pytest.mark.parametrize("inner", [GroupBall(2, 1, 3.0), LpBall(1, 4.0)])
@pytest.mark.parametrize("loss", [Squared(), Softmax()])
@pytest.mark.parametrize("bound", [20.0, 0.1])
def test_free_features_of_several_outputs(inner, loss, bound):
    X = RNG.standard_normal((60, 25))
    y = X @ RNG.standard_normal((25, 3)) + 0.5 * RNG.standard_normal((60, 3))
    f = Objective(loss, as_data(X, y if isinstance(loss, Squared) else np.argmax(y, axis=1)), fit_intercept=True)
    whole = WithUnpenalized(inner, free=(0, 7), bound=bound)
    result = minimize(f, whole, WorkingSet(8), tol=1e-7, max_iter=200)
    other = minimize(f, whole, ACCELERATED, tol=1e-3, max_iter=200)
    assert result.status.converged
    assert max(result.bound, other.bound) <= min(result.value, other.value)
