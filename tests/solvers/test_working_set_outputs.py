"""`WorkingSet` with several outputs: rows of a matrix as groups, and losses that couple them."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.few_features import ACCELERATED

from projfree import (
    GroupBall,
    LpBall,
    Objective,
    Softmax,
    Squared,
    WorkingSet,
    as_data,
    minimize,
)

RNG = np.random.default_rng(4)


def test_several_outputs_share_their_products():
    X, W = RNG.standard_normal((50, 40)), np.zeros((40, 3))
    W[:4] = RNG.standard_normal((4, 3))
    y = X @ W + 0.1 * RNG.standard_normal((50, 3))
    f = Objective(Squared(), as_data(X, y), fit_intercept=True)
    for ball in (GroupBall(2, 1, 3.0), LpBall(1, 4.0)):
        result = minimize(f, ball, WorkingSet(10), tol=1e-9)
        other = minimize(f, ball, ACCELERATED, tol=1e-7)
        assert result.status.converged
        assert result.value == pytest.approx(other.value, rel=1e-6)


@pytest.mark.parametrize("ball", [LpBall(1, 3.0), GroupBall(2, 1, 2.0)])
def test_coupled_outputs(ball):
    X = RNG.standard_normal((80, 30))
    y = np.argmax(X[:, :3] + 0.5 * RNG.standard_normal((80, 3)), axis=1)
    f = Objective(Softmax(), as_data(X, y), fit_intercept=True)
    result = minimize(f, ball, WorkingSet(8), tol=1e-8)
    other = minimize(f, ball, ACCELERATED, tol=1e-6, max_iter=3000)
    assert result.status.converged
    assert max(result.bound, other.bound) <= min(result.value, other.value)
