"""`Direct` over flat sets with features outside them, against CVXPY."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree import Direct, GroupBall, LpBall, Objective, Positive, Squared, as_data, minimize
from projfree.sets import WithUnpenalized


@pytest.mark.parametrize("kind", ["l_1", "groups", "positive"])
@pytest.mark.parametrize("bound", [0.05, 30.0])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=6, deadline=None)
def test_features_outside_a_flat_set_are_solved_for_exactly(kind, bound, seed):
    """With scales far apart, where projected gradients would take thousands of steps and not arrive."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 9)) * 10.0 ** rng.integers(-2, 3, size=9), rng.standard_normal(30)
    flat = {
        "l_1": LpBall(1, 0.3),
        "groups": GroupBall(2, 1, 0.3, (1, 0, 0, 1, 2, 2, 2)),  # which are no neighbours
        "positive": Positive(LpBall(1, 0.3)),
    }[kind]
    ball, w = WithUnpenalized(flat, free=(2, 5), bound=bound), cp.Variable(9)
    inner = w[[0, 1, 3, 4, 6, 7, 8]]
    groups = [cp.norm2(inner[[1, 2]]), cp.norm2(inner[[0, 3]]), cp.norm2(inner[[4, 5, 6]])]
    inside = {
        "l_1": [cp.norm1(inner) <= 0.3],
        "groups": [sum(groups) <= 0.3],
        "positive": [inner >= 0, cp.sum(inner) <= 0.3],
    }[kind]
    referee = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) / 30), [*inside, cp.abs(w[[2, 5]]) <= bound])
    least = referee.solve(solver=cp.CLARABEL)
    result = minimize(Objective(Squared(), as_data(X, y)), ball, Direct(), tol=1e-9, max_iter=4)
    assert result.status.converged
    assert ball.contains(result.w)
    assert result.bound <= least * (1.0 + 1e-6)
    assert result.value <= least * (1.0 + 1e-6)
