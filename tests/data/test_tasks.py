"""Rows with tasks: the map, its adjoint, and runs against a referee."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from projfree import AcceleratedProjectedGradient, GroupBall, Huber, Objective, Squared, minimize
from projfree.data.gram import largest_eigenvalue
from projfree.data.sparse import TaskData, expand_tasks


@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_the_map_and_its_adjoint(n, d, tasks, seed, sparse):
    rng = np.random.default_rng(seed)
    X, task = rng.standard_normal((n, d)), rng.integers(0, tasks, size=n)
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    weight = rng.uniform(0.1, 1.0, size=n)
    data = TaskData(sp.csr_array(X) if sparse else X, np.zeros(n), task, weight, tasks)
    W, r = rng.standard_normal((d, tasks)), rng.standard_normal(n)
    u = np.array([X[i] @ W[:, task[i]] for i in range(n)])
    np.testing.assert_allclose(data.apply(W), u, atol=1e-12)
    assert data.shape(()) == (d, tasks)
    np.testing.assert_allclose(np.vdot(data.adjoint(r), W), u @ r, atol=1e-10)
    s = weight / weight.sum()
    np.testing.assert_allclose(np.vdot(data.column_stats.mean, W), s @ u, atol=1e-10)
    A = np.stack([np.ravel(X[i][:, None] * (np.arange(tasks) == task[i])) for i in range(n)])
    np.testing.assert_allclose(expand_tasks(X, task, tasks).toarray(), A)
    largest = np.linalg.eigvalsh(A.T @ (A * s[:, None]))[-1]
    assert largest <= largest_eigenvalue(data, centred=False) * (1 + 1e-9)
    rows = np.flatnonzero(rng.uniform(size=n) < 0.5)
    if len(rows):
        np.testing.assert_allclose(data.representative(rows).apply(W), u[rows], atol=1e-12)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5)], ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
def test_runs_against_a_referee(loss, intercept):
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((60, 4)), rng.integers(0, 3, size=60)
    y = X[:, 0] * (1 + task) + rng.standard_normal(60) + 1
    f = Objective(loss, TaskData(X, y, task), fit_intercept=intercept)
    result = minimize(f, GroupBall(2, 1, 2.0), AcceleratedProjectedGradient(), tol=1e-9)
    W, b = cvxpy.Variable((4, 3)), cvxpy.Variable()
    u = cvxpy.hstack([X[i] @ W[:, int(task[i])] for i in range(60)]) + (b if intercept else 0.0)
    losses = cvxpy.square(u - y) if isinstance(loss, Squared) else cvxpy.huber(u - y, 0.5)
    norm = cvxpy.sum(cvxpy.norm(W, 2, axis=1))
    least = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(losses) / 60), [norm <= 2]).solve(solver=cvxpy.CLARABEL)
    assert result.value == pytest.approx(least, rel=1e-6)
    assert result.bound <= least * (1 + 1e-7)


def test_sentences():
    with pytest.raises(ValueError, match=r"^`task` must be a whole number from 0 for each of the 2 rows"):
        TaskData(np.eye(2), [0.0, 1.0], ["a", "b"])
    with pytest.raises(ValueError, match=r"^Rows with a task have one target each; the loss asks for 2\.$"):
        Objective(Squared(), TaskData(np.eye(2), np.zeros((2, 2)), [0, 1]))
    with pytest.raises(ValueError, match=r"^`tasks` must be a whole number of at least 2, got 1\.$"):
        TaskData(np.eye(2), [0.0, 1.0], [0, 1], tasks=1)


def test_converted_targets_stay_when_rows_are_weighed_or_left_out():
    rng = np.random.default_rng(0)
    X, y, task = rng.standard_normal((40, 3)), np.arange(40) % 2, np.arange(40) % 4
    data = TaskData(X, y, task, rng.uniform(1.0, 2.0, 40)).with_targets(signs, lambda y: 2.0 + y)
    rows = np.arange(5, 25)
    part = data.subset(rows)
    np.testing.assert_array_equal(data.y, signs(y))
    np.testing.assert_array_equal(part.y, signs(y)[rows])
    np.testing.assert_array_equal(data.representative(rows).y, signs(y)[rows])
    assert data.column_stats.weight == pytest.approx(1.0)
    assert data.total_weight is not None
    assert part.total_weight == pytest.approx(data.total_weight * data.weight[rows].sum())


def signs(y):
    return 2.0 * y - 1.0
