"""Radii and penalties: what scikit-learn finds at the penalty is what we find at the radius."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from projfree import Logistic, LpBall, Objective, Squared, as_data, minimize
from projfree.run.penalty import PENALTIES, penalty_of, radius_of

RNG = np.random.default_rng(2)
X = RNG.standard_normal((80, 5)) * [3.0, 1.0, 1.0, 0.5, 0.2]
Y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + RNG.standard_normal(80) + 3.0
WEIGHTS = 1.0 + np.arange(80) % 3

CASES = {
    "Ridge": (Squared(), Y, 2.0, lambda v: Ridge(alpha=v)),
    "Lasso": (Squared(), Y, 1.0, lambda v: Lasso(alpha=v, tol=1e-12, max_iter=100_000)),
    "LogisticRegression l2": (
        Logistic(),
        np.sign(Y - 3),
        2.0,
        lambda v: LogisticRegression(C=v, tol=1e-12, solver="newton-cholesky"),
    ),
    "LogisticRegression l1": (
        Logistic(),
        np.sign(Y - 3),
        1.0,
        lambda v: LogisticRegression(C=v, l1_ratio=1.0, tol=1e-12, solver="saga", max_iter=100_000),
    ),
}


@pytest.mark.parametrize("value", [0.03, 0.4, 5.0])
@pytest.mark.parametrize("name", PENALTIES)
def test_there_and_back(name, value):
    loss, y, p, model = CASES[name]
    if name == "Lasso" and value == 5.0:
        pytest.skip("at this penalty no coefficient is left")
    f = Objective(loss, as_data(X, y, WEIGHTS), fit_intercept=True)
    radius = radius_of(f, LpBall(p, 1.0), name, value)
    theirs = model(value).fit(X, y, sample_weight=WEIGHTS).coef_.ravel()
    ours = minimize(f, LpBall(p, radius), tol=1e-11)
    np.testing.assert_allclose(ours.w, theirs, atol=2e-5)
    assert penalty_of(ours, f, name) == pytest.approx(value, rel=1e-5)


def test_refusals():
    f = Objective(Squared(), as_data(X, Y))
    with pytest.raises(ValueError, match="`estimator` must be one of 'Ridge'"):
        radius_of(f, LpBall(2, 1.0), "ElasticNet", 1.0)
    with pytest.raises(ValueError, match="`value` must be positive"):
        radius_of(f, LpBall(2, 1.0), "Ridge", 0.0)
