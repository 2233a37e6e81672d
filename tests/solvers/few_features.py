"""Problems whose minima have few features, for the tests of `WorkingSet`."""

from __future__ import annotations

import numpy as np

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    Objective,
    Positive,
    Simplex,
    Squared,
    Weighted,
    as_data,
)

N, D = 60, 150
RNG = np.random.default_rng(4)
DENSE = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.2)
TRUE = np.where(np.arange(D) < 5, 2.0, 0.0)
Y = DENSE @ TRUE + 0.3 * RNG.standard_normal(N)
WEIGHT = RNG.uniform(0.0, 2.0, N)
COSTS = RNG.uniform(0.5, 2.0, D)
LABELS = tuple(np.arange(D) // 5)
BALLS = {
    "l_1": LpBall(1, 3.0),
    "weighted": Weighted(LpBall(1, 3.0), COSTS),
    "positive": Positive(LpBall(1, 3.0)),
    "simplex": Simplex(4.0),
    "groups": GroupBall(2, 1, 2.0, LABELS),
}
LOSSES = {"squared": (Squared(), Y), "logistic": (Logistic(), np.sign(Y)), "huber": (Huber(0.5), Y)}
ACCELERATED = AcceleratedProjectedGradient(BacktrackingGradient())


def objective(loss, X=DENSE, *, intercept=False, weight=None):
    kind, y = LOSSES[loss]
    return Objective(kind, as_data(X, y, weight), fit_intercept=intercept)
