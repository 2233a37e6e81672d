"""Every solver on matrices in factors: the answers of the dense problem, and bounds that a referee agrees with."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from completion.problems import both, entries

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    Checkpoint,
    CorrectivePrimalAveraging,
    Entries,
    FrankWolfe,
    Huber,
    Logistic,
    Objective,
    PrimalAveraging,
    ProjectedGradient,
    SchattenBall,
    Squared,
    minimize,
)
from projfree.algebra import LowRank, OnPattern

SHAPE = (12, 9)
SOLVERS = (
    FrankWolfe(),
    PrimalAveraging(),
    CorrectivePrimalAveraging(),
    AcceleratedProjectedGradient(),
    ProjectedGradient(BacktrackingGradient()),
)
PROBLEMS = {"squared": Squared(), "huber": Huber(0.5), "logistic": Logistic()}


def targets(loss, y):
    return np.where(y > 3.0, 1.0, -1.0) if loss.labels else y


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
def test_factors_do_what_dense_matrices_do(solver, name, p):
    loss = PROBLEMS[name]
    rows, cols, y = entries()
    dense, factored = (
        minimize(Objective(loss, data, fit_intercept=name == "squared"), SchattenBall(p, 4.0), solver, max_iter=25)
        for data in both(rows, cols, targets(loss, y), SHAPE)
    )
    assert isinstance(factored.w, OnPattern if p == 2.0 else LowRank)
    assert factored.value == pytest.approx(dense.value, rel=1e-8)
    assert factored.bound <= dense.value * (1 + 1e-9)
    np.testing.assert_allclose(factored.w.toarray(), dense.w, atol=1e-3)
    found = factored.certificate.verify(Entries(rows, cols, SHAPE, factored=True), targets(loss, y))
    assert found.ok


def optimum(loss, rows, cols, y, radius=4.0):
    """The minimum over the nuclear ball, by a conic solver."""
    import cvxpy as cp

    X = cp.Variable(SHAPE)
    u = cp.hstack([X[i, j] for i, j in zip(rows, cols, strict=True)])
    if loss.labels:
        each = cp.logistic(-cp.multiply(y, u))
    else:
        each = cp.huber(u - y, loss.delta) if isinstance(loss, Huber) else cp.square(u - y)
    return cp.Problem(cp.Minimize(cp.sum(each) / len(y)), [cp.normNuc(X) <= radius]).solve(solver="CLARABEL")


@cache
def plain(name):
    """Entries with targets for a loss, and the minimum that the referee finds, once for all ways to find spectra."""
    loss, (rows, cols, y) = PROBLEMS[name], entries()
    y = targets(loss, y)
    return loss, rows, cols, y, optimum(loss, rows, cols, y)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_referee_agrees(name, tier):
    loss, rows, cols, y, best = plain(name)
    f = Objective(loss, both(rows, cols, y, SHAPE)[1])
    for solver in SOLVERS:
        result = minimize(f, SchattenBall(1.0, 4.0), solver, tol=1e-3, max_iter=120)
        assert result.bound <= best + 1e-6
        assert result.value >= best - 1e-6
        assert tier == "subspace" or result.value <= best * 1.02


def test_starts_in_factors():
    rows, cols, y = entries()
    f, ball = Objective(Squared(), both(rows, cols, y, SHAPE)[1]), SchattenBall(1.2, 4.0)
    first = minimize(f, ball, tol=1e-4)
    again = minimize(f, ball, FrankWolfe(), tol=1e-3, start=first.w)
    assert again.n_iter <= 2
    with pytest.raises(ValueError, match="`start` must lie in"):
        minimize(f, ball, start=3.0 * first.w)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_a_resumed_run_takes_the_same_steps(solver, tmp_path, tier):
    rows, cols, y = entries()
    f, ball = Objective(Squared(), both(rows, cols, y, SHAPE)[1]), SchattenBall(1.1, 4.0)
    whole = minimize(f, ball, solver, tol=0.0, max_iter=11, callbacks=[Checkpoint(tmp_path / "a", 6)])
    minimize(f, ball, solver, tol=0.0, max_iter=6, callbacks=[Checkpoint(tmp_path / "b", 6)])
    resumed = minimize(f, ball, solver, tol=0.0, max_iter=11, state=tmp_path / "b")
    np.testing.assert_array_equal(resumed.w.toarray(), whole.w.toarray())
    assert resumed.bound == whole.bound
