"""Sums of norms of groups with a weight for each group, such as the root of its size: they go to working sets too."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from projfree import (
    CorrectivePrimalAveraging,
    GroupBall,
    Logistic,
    LpBall,
    Objective,
    Softmax,
    Squared,
    Weighted,
    WorkingSet,
    as_data,
    minimize,
)
from projfree.sets import WithUnpenalized

RNG = np.random.default_rng(8)
N, D = 80, 60
LABELS = RNG.permutation(np.repeat(np.arange(12), [1, 2, 3, 4, 5, 6, 7, 8, 9, 5, 5, 5]))
SIZES = np.sqrt(np.bincount(LABELS))
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.4)
SIGNAL = X @ np.where(LABELS < 4, 1.0, 0.0)[:, None] * [1.0, -1.0, 0.5] + RNG.standard_normal((N, 3))
Y = SIGNAL[:, 0]
#: What the referee's own minimum may be wrong by.
REFEREE = 1e-6


def weighted(p, radius):
    return Weighted(GroupBall(p, 1, radius, tuple(LABELS.tolist())), SIZES[LABELS])


def sum_of_norms(w, p):
    places = [np.flatnonzero(np.equal(LABELS, g)) for g in range(len(SIZES))]
    return sum(size * cp.pnorm(w[on], p) for size, on in zip(SIZES, places, strict=True))


@pytest.mark.parametrize("solver", [WorkingSet(), WorkingSet(4), "auto"], ids=repr)
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_a_referee_finds_the_same_minimum(loss, solver):
    w = cp.Variable(D)
    mean = cp.sum_squares(X @ w - Y) / N
    if isinstance(loss, Logistic):
        mean = cp.sum(cp.logistic(-cp.multiply(np.sign(Y), X @ w))) / N
    least = cp.Problem(cp.Minimize(mean), [sum_of_norms(w, 2.0) <= 3.0]).solve(solver=cp.CLARABEL)
    y = Y if isinstance(loss, Squared) else np.sign(Y)
    result = minimize(Objective(loss, as_data(X, y)), weighted(2.0, 3.0), solver, tol=1e-8, max_iter=100)
    assert result.status.converged
    assert result.bound <= least * (1.0 + REFEREE)
    assert result.value == pytest.approx(least, rel=REFEREE)
    assert result.certificate.verify(X, y).ok


@pytest.mark.parametrize("loss", [Squared(), Softmax()], ids=repr)
def test_rows_of_several_outputs(loss):
    """Weights of rows, judged by averages of vertices, which know nothing of working sets."""
    ball = Weighted(GroupBall(2, 1, 2.0), np.linspace(0.5, 2.0, D)[:, None])
    y = SIGNAL if isinstance(loss, Squared) else SIGNAL.argmax(axis=1)
    f = Objective(loss, as_data(X, y), fit_intercept=True)
    result = minimize(f, ball, WorkingSet(), tol=1e-8, max_iter=100)
    other = minimize(f, ball, CorrectivePrimalAveraging(), tol=1e-3, max_iter=2_000)
    assert result.status.converged
    assert other.bound <= result.value <= other.value
    assert result.bound <= other.value


def test_features_outside():
    """Two free features beside the groups."""
    ball = WithUnpenalized(Weighted(GroupBall(2, 1, 2.0, tuple(LABELS.tolist())), SIZES[LABELS]), (0, 7), 5.0)
    wide = np.insert(np.insert(X, 0, RNG.standard_normal(N), axis=1), 7, RNG.standard_normal(N), axis=1)
    w, kept = cp.Variable(D + 2), np.delete(np.arange(D + 2), (0, 7))
    limits = [sum_of_norms(w[kept], 2.0) <= 2.0, cp.abs(w[[0, 7]]) <= 5.0]
    least = cp.Problem(cp.Minimize(cp.sum_squares(wide @ w - Y) / N), limits).solve(solver=cp.CLARABEL)
    result = minimize(Objective(Squared(), as_data(wide, Y)), ball, tol=1e-8, max_iter=100)
    assert result.status.converged
    assert result.value == pytest.approx(least, rel=REFEREE)
    assert result.bound <= least * (1.0 + REFEREE)


def test_weights_that_differ_within_a_group_are_another_norm():
    weights = SIZES[LABELS].copy()
    weights[np.flatnonzero(LABELS == 5)[0]] *= 2.0
    ball = Weighted(GroupBall(2, 1, 1.0, tuple(LABELS.tolist())), weights)
    assert ball.structure((D,)).group_l1 is None
    assert Weighted(GroupBall(2, 1, 1.0), np.ones(3) * [1.0, 1.0, 2.0]).structure((D, 3)).group_l1 is None
    assert Weighted(LpBall(1, 1.0), weights).structure((D,)).group_l1 is not None
