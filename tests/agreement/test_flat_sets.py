"""Certificates of `WorkingSet` over every kind of flat set, on random small problems, against CVXPY."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree import GroupBall, LpBall, Objective, Positive, Simplex, Squared, Weighted, WorkingSet, as_data, minimize
from projfree.numerics import group_l1_qp
from projfree.numerics.flat_ball import GroupL1Ball
from projfree.sets import WithUnpenalized

KINDS = ("l_1", "weighted", "positive", "simplex", "groups", "free", "bounded")


def flat_set(kind, d, radius, rng):
    """The set, and its constraints on a variable."""
    w, costs, labels = cp.Variable(d), rng.uniform(0.3, 3.0, d), np.arange(d) // 2
    if kind == "groups":
        sizes = [cp.norm2(w[labels == g]) for g in np.unique(labels)]
        return w, (GroupBall(2, 1, radius, tuple(labels)), [sum(sizes) <= radius])
    return w, {
        "l_1": (LpBall(1, radius), [cp.norm1(w) <= radius]),
        "weighted": (Weighted(LpBall(1, radius), costs), [costs @ cp.abs(w) <= radius]),
        "positive": (Positive(LpBall(1, radius)), [w >= 0, cp.sum(w) <= radius]),
        "simplex": (Simplex(radius), [w >= 0, cp.sum(w) == radius]),
        "free": (
            WithUnpenalized(LpBall(1, radius), free=(1,), bound=30.0),
            [cp.norm1(w[0]) + cp.norm1(w[2:]) <= radius, cp.abs(w[1]) <= 30.0],
        ),
        "bounded": (
            WithUnpenalized(LpBall(1, radius), free=tuple(range(d // 2)), bound=0.1),
            [cp.norm1(w[d // 2 :]) <= radius, cp.abs(w[: d // 2]) <= 0.1],
        ),
    }[kind]


def shuffled(X, rng):
    """The same table with indices in any order and some entries cut in two."""
    rows, columns = X.nonzero()
    values, turn = X[rows, columns], rng.permutation(2 * len(rows))
    rows, columns = np.tile(rows, 2)[turn], np.tile(columns, 2)[turn]
    values, order = np.concatenate([0.3 * values, 0.7 * values])[turn], np.argsort(rows, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    return sp.csr_array((values[order], columns[order], ends), shape=X.shape)


@pytest.mark.parametrize("sizes", [{}, {"FEW": 0}, {"FEW": 0, "MOST_FORMED": 0}])
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.1, 1.0, 5.0]), n=st.integers(3, 25), d=st.integers(3, 20))
@settings(max_examples=12, deadline=None)
def test_no_bound_exceeds_the_minimum(kind, sizes, seed, radius, n, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    y = rng.standard_normal(n)
    w, (ball, inside) = flat_set(kind, d, radius, rng)
    least = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) / n), inside).solve(solver=cp.CLARABEL)
    f = Objective(Squared(), as_data(shuffled(X, rng), y))
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(group_l1_qp, name, size)
        result = minimize(f, ball, WorkingSet(3), tol=1e-7, max_iter=100)
    slack = 1e-6 * float(np.mean(y * y))
    assert ball.contains(result.w)
    assert result.bound <= least + slack
    assert result.value >= least - slack
    assert result.status.converged or kind not in ("free", "bounded")
    if result.status.converged:
        assert result.value <= least + slack


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(4), 3)])
@pytest.mark.parametrize("free", [0, 2])
@pytest.mark.parametrize("formed", [True, False])
def test_compiled_descent_agrees_with_numpy(outputs, groups, free, formed, monkeypatch):
    rng, m = np.random.default_rng(0), 12
    A, b = rng.standard_normal((50, m + free)), rng.standard_normal((m + free, outputs))
    of_table = group_l1_qp.Columns.of_table(A, rng.random((50, outputs)), outputs, intercept=True)
    columns = group_l1_qp.Columns.of_matrix(A.T @ A, outputs) if formed else of_table
    ball = GroupL1Ball(1.0, np.ones((m, outputs)) if groups is None else np.ones(4), groups)
    found = []
    for few in (0, b.size):
        monkeypatch.setattr(group_l1_qp, "FEW", few)
        search = group_l1_qp._Search(columns, b, ball, np.zeros_like(b), free, 3.0)
        for _ in range(3):
            search._sweep(0.1, np.arange(len(search.first) - 1))
        found.append(np.concatenate([search.v, search.z, search.shift[None]]))
    np.testing.assert_allclose(*found, atol=1e-13)
