"""Balls cut by linear constraints: random problems against CVXPY, exact fractions, proofs of conflicts, and bad input.

A bound is never above the minimum, a point satisfies every inequality in computed arithmetic, and its value is not
below the minimum.
"""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction
from math import inf

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    BiWeight,
    Box,
    Constrained,
    ConstrainedNewton,
    GroupBall,
    Huber,
    InfeasibleError,
    Logistic,
    LpBall,
    Objective,
    PairwiseFrankWolfe,
    Poisson,
    QuadraticForm,
    Quantile,
    SchattenBall,
    Simplex,
    Squared,
    SquaredHinge,
    Weighted,
    as_data,
    minimize,
    plan,
)
from projfree.sets import Positive, bounds, covariance, order, shifted, sums_to
from projfree.sets.rows import joined

BALLS = ("l_1", "l_1.2", "l_1.5", "l_2", "l_3", "l_inf", "simplex", "box", "weighted", "groups", "shifted")
LOSSES = (Squared(), Logistic(), Poisson(), SquaredHinge(), Huber(1.0))
#: Accuracy of the referee, relative to the value.
REFEREE = 1e-5


def ball_of(kind, d, r, rng):
    """A ball of a kind, and the constraints that say the same to CVXPY."""
    weights, offset = rng.uniform(0.5, 2.0, d), 0.3 * rng.standard_normal(d)
    groups = np.arange(d) // 2
    if kind.startswith("l_"):
        p = float(kind[2:])
        return LpBall(p, r), lambda w: [cp.norm(w, p if p < inf else "inf") <= r]
    return {
        "simplex": (Simplex(r), lambda w: [w >= 0, cp.sum(w) == r]),
        "box": (Box(-r * weights, r), lambda w: [w >= -r * weights, w <= r]),
        "weighted": (Weighted(LpBall(1.5, r), weights), lambda w: [cp.norm(cp.multiply(weights, w), 1.5) <= r]),
        "groups": (
            GroupBall(2, 1, r, tuple(groups.tolist())),
            lambda w: [sum(cp.norm(w[np.flatnonzero(groups == k)], 2) for k in set(groups.tolist())) <= r],
        ),
        "shifted": (shifted(LpBall(2, r), offset), lambda w: [cp.norm(w - offset, 2) <= r]),
    }[kind]


def rows_of(d, r, rng):
    """Random rows: redundant, dependent, zero and conflicting ones among them."""
    m = int(rng.integers(1, 13))
    A = rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.6)
    inside = r * rng.choice([0.0, 0.2, 0.6]) * rng.standard_normal(d) / d
    kind, gap = rng.integers(0, 4, m), r * np.abs(rng.standard_normal(m)) * rng.choice([0.0, 0.1, 1.0], m)
    at = A @ inside + (rng.random() < 0.1) * r * rng.standard_normal(m)
    lower = np.where(kind == 1, -inf, np.where(kind == 3, at, at - gap))
    upper = np.where(kind == 0, inf, np.where(kind == 3, at, at + gap))
    return Constrained(LpBall(2, r), A=A, lower=lower, upper=upper).rows[0]


def problem(seed):
    rng = np.random.default_rng(seed)
    kind, loss = BALLS[seed % len(BALLS)], LOSSES[seed // 2 % len(LOSSES)]
    d, n, r = int(rng.integers(2, 12)), int(rng.integers(3, 60)), float(10 ** rng.uniform(-1, 1))
    ball, says = ball_of(kind, d, r, rng)
    X = rng.standard_normal((n, d)) * np.exp(rng.uniform(-1, 1, d)) / (1.0 if loss is not LOSSES[2] else 3.0 * r)
    u = X @ rng.standard_normal(d) + rng.standard_normal(n)
    y = rng.poisson(np.exp(np.clip(u, -3, 2))) if loss is LOSSES[2] else np.where(u > 0, 1, -1) if loss.labels else u
    if loss is LOSSES[2]:
        y[0] += 1
    if loss.labels:
        y[:2] = -1, 1
    return loss, Constrained(ball, rows_of(d, r, rng)), X, y.astype(float), says, bool(rng.integers(2))


def referee(loss, C, X, y, says, intercept):
    """CVXPY's status and value."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    A, lower, upper, _ = joined(C.rows, X.shape[1])
    A, low, high = A.toarray(), np.isfinite(lower), np.isfinite(upper)
    rows = ([A[low] @ w >= lower[low]] if low.any() else []) + ([A[high] @ w <= upper[high]] if high.any() else [])
    u = X @ w + (b if intercept else 0.0)
    total = {
        "Squared": lambda: cp.sum_squares(u - y),
        "Logistic": lambda: cp.sum(cp.logistic(-cp.multiply(y, u))),
        "Poisson": lambda: cp.sum(cp.exp(u) - cp.multiply(y, u)),
        "SquaredHinge": lambda: cp.sum_squares(cp.pos(1 - cp.multiply(y, u))),
        "Huber": lambda: cp.sum(cp.huber(u - y, 1.0)),
    }[type(loss).__name__]()
    found = cp.Problem(cp.Minimize(total / len(y)), says(w) + rows)
    try:
        with warnings.catch_warnings():  # what CVXPY calls inaccurate is no referee
            warnings.simplefilter("ignore", UserWarning)
            found.solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return "unknown", None
    shift = 0.0 if type(loss).__name__ != "Poisson" else None
    return found.status, found.value if shift is not None else found.value + poisson_constant(loss, y)


def poisson_constant(loss, y):
    """What our Poisson loss adds to exp(u) - y u."""
    u = np.zeros_like(y)
    return float(np.mean(loss.value(u, y) - 1.0))


def check(seed):
    loss, C, X, y, says, intercept = problem(seed)
    f = Objective(loss, as_data(X, y), fit_intercept=intercept)
    status, value = referee(loss, C, X, y, says, intercept)
    try:
        result = minimize(f, C, tol=1e-7)
    except InfeasibleError as error:
        proof = error.multipliers
    else:
        proof = None
    if proof is not None:
        assert status in ("infeasible", "infeasible_inaccurate", "unknown"), (seed, status)
        assert proves(C, proof, X.shape[1]), seed
        return
    scale = max(abs(result.value), 1e-6 * abs(f(f.point(C.centre(f.shape)))), 1e-12)
    assert result.relative_gap <= 1e-6, (seed, result.status, result.relative_gap)
    assert feasible(C, result.w), seed
    assert result.certificate.verify(X, y).ok, seed
    if status == "optimal":
        slack = REFEREE * (scale + abs(f(f.point(C.centre(f.shape)))))
        assert result.bound <= value + slack, (seed, result.bound, value)
        assert result.value >= value - slack, (seed, result.value, value)


def proves(C, y, d):
    """Whether multipliers prove that no point of the ball satisfies the rows, in exact arithmetic for the rows."""
    A, lower, upper, _ = joined(C.rows, d)
    side = [Fraction(b if t > 0 else a) * Fraction(t) for t, a, b in zip(y, lower, upper, strict=True) if t]
    return float(sum(side)) + C.ball.support(-(A.T @ y)) < 0.0


def feasible(C, w):
    """Whether all inequalities and the ball hold as computed, and equalities to rounding."""
    A, lower, upper, _ = joined(C.rows, w.size)
    t, size, tied = A @ w, abs(A) @ np.abs(w), forced(C, w)
    inside = np.all((t <= upper) & (t >= lower) | tied)
    close = np.all(np.abs(np.clip(t, lower, upper) - t)[tied] <= (1e-12 * size + 1e-15 * C.reach(w.shape))[tied])
    return inside and close and C.ball.contains(w, 1e-15)


def forced(C, w):
    """The rows that hold with equality at every point of the set."""
    cut = C._cut(w.shape)
    return cut.equal | (cut.rows.lower == cut.rows.upper)


@pytest.mark.parametrize("first", range(0, 66, 11))
def test_random_problems_agree_with_cvxpy(first):
    for seed in range(first, first + 11):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(66, 666, 50))
def test_more_random_problems_agree_with_cvxpy(first):
    for seed in range(first, first + 50):
        check(seed)


def test_any_multipliers_bound_the_support_in_exact_arithmetic():
    """The bound of random multipliers is above the product with any point of the set, in fractions."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        d, r = int(rng.integers(1, 8)), float(10 ** rng.uniform(-3, 3))
        C = Constrained(LpBall(inf, r), A=rng.standard_normal((4, d)), lower=-r, upper=r)
        g, y, w = (
            rng.standard_normal(d),
            rng.standard_normal(4) * 10 ** rng.uniform(-8, 8, 4),
            C.lmo(rng.standard_normal(d)),
        )
        product = sum(Fraction(a) * Fraction(b) for a, b in zip(g, w, strict=True))
        assert Fraction(C.with_multipliers(y).support(g)) >= product
        exact = sum(abs(Fraction(t)) * Fraction(r) for t in y)
        for j in range(d):
            column = C.rows[0].A.toarray()[:, j]
            slope = Fraction(g[j]) - sum(Fraction(a) * Fraction(t) for a, t in zip(column, y, strict=True))
            exact += abs(slope) * Fraction(r)
        assert Fraction(C.with_multipliers(y).support(g)) >= exact


@pytest.mark.parametrize("kind", [kind for kind in BALLS if kind != "groups"])  # of groups it takes long
def test_oracle(kind):
    """The vertex is feasible, its multipliers prove that it is nearly the minimiser, and zero gives the centre."""
    rng = np.random.default_rng(1)
    ball, _ = ball_of(kind, 6, 2.0, rng)
    C = Constrained(ball, [order([0, 1, 2]), bounds([3], -0.25, 0.125)])
    for scale in (1e-300, 1e100, 1.0):
        g = scale * rng.standard_normal(6)
        v, support, y = C.oracle(g)
        np.testing.assert_array_equal(v, C.lmo(g))
        assert feasible(C, v)
        assert -1e-15 <= (g @ v + support) / (scale * C.reach((6,))) <= 1e-8
        assert C.with_multipliers(y).support(-g) == pytest.approx(support, rel=1e-12)
    np.testing.assert_array_equal(C.lmo(np.zeros(6)), C.centre((6,)))
    assert C.lmo(g.astype(np.float32)).dtype == np.float32
    assert pickle.loads(pickle.dumps(C)).lmo(g).tolist() == C.lmo(g).tolist()
    assert pickle.loads(pickle.dumps(C)) == C


def test_conflict_is_proved_before_any_read():
    X = np.ones((5, 3))
    f = Objective(Squared(), as_data(X, np.ones(5)))
    for ball in (LpBall(1, 1.0), LpBall(2, 1.0), LpBall(1.5, 1.0), Simplex(1.0), Box(-1, 1)):
        C = Constrained(ball, [bounds([0], 0.8), bounds([1], 0.9), order([1, 2])])
        if isinstance(ball, Box):
            C = Constrained(ball, [bounds([0], 0.8), sums_to(-2.0, [0, 1, 2])])
        with pytest.raises(InfeasibleError, match=r"w\[0\] >= 0.8.*relax or drop") as error:
            minimize(f, C)
        assert f.passes == 0.0
        assert proves(C, error.value.multipliers, 3)
        assert "w[0] >= 0.8" in error.value.names
        assert pickle.loads(pickle.dumps(error.value)).names == error.value.names


def test_conflict_of_a_row_with_zeros():
    with pytest.raises(InfeasibleError, match="row 0"):
        Constrained(LpBall(2, 1.0), A=np.zeros((1, 3)), lower=1.0).lmo(np.ones(3))


QUADRATIC = QuadraticForm(np.diag([1.0, 2.0, 3.0, 4.0]), np.array([1.0, -2.0, 3.0, 0.5]))
SPECIAL = {
    "equalities only": (LpBall(2, 1.0), {"A": np.eye(4)[:2], "lower": 0.25, "upper": 0.25}),
    "one row": (LpBall(1.5, 1.0), {"A": np.ones((1, 4)), "upper": 0.1}),
    "zero rows": (LpBall(2, 1.0), {"A": np.vstack([np.zeros((2, 4)), np.eye(4)]), "lower": -0.1, "upper": 0.1}),
    "dependent equalities": (LpBall(2, 1.0), {"A": np.ones((3, 4)) * [[1], [2], [-1]], "lower": 0, "upper": 0}),
    "empty interior": (LpBall(2, 1.0), {"A": np.vstack([np.eye(4), -np.eye(4)[:1]]), "lower": [0, -1, -1, -1, 0]}),
    "only one point": (LpBall(2, 1.0), {"A": np.vstack([np.eye(4), -np.ones((1, 4))]), "lower": 0}),
    "the ball is not active": (LpBall(3, 100.0), {"A": np.eye(4), "lower": -0.1, "upper": 0.1}),
    "two thousand rows": (LpBall(2, 1.0), {"A": np.cos(np.arange(8000.0)).reshape(2000, 4), "upper": 0.3}),
    "sparse": (LpBall(1, 1.0), {"A": sp.csr_array(np.eye(4)), "lower": 0.0}),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_rows(name):
    ball, rows = SPECIAL[name]
    C = Constrained(ball, **rows)
    result = minimize(QUADRATIC, C, tol=1e-7)
    w = cp.Variable(4)
    A, lower, upper, _ = joined(C.rows, 4)
    A, low, high = A.toarray(), np.isfinite(lower), np.isfinite(upper)
    says = [cp.norm(w, ball.p) <= ball.radius]
    says += ([A[low] @ w >= lower[low]] if low.any() else []) + ([A[high] @ w <= upper[high]] if high.any() else [])
    found = cp.Problem(cp.Minimize(0.5 * cp.quad_form(w, QUADRATIC.H) - QUADRATIC.b @ w), says)
    found.solve(solver=cp.CLARABEL)
    assert feasible(C, result.w)
    assert result.gap <= 2e-6
    assert result.bound <= found.value + 1e-5
    assert result.value >= found.value - 1e-5


def test_a_ball_that_touches_a_plane_leaves_one_point():
    """Multipliers grow without end there, so that rounding hides half of the digits of the gap."""
    result = minimize(QUADRATIC, Constrained(LpBall(2, 1.0), A=np.ones((1, 4)), lower=2.0, upper=2.0), tol=1e-7)
    np.testing.assert_allclose(result.w, 0.5, atol=1e-9)
    assert 0.0 <= result.gap <= 1e-5


SCALES = {
    "rows of 1e200": {"A": 1e200 * np.eye(4), "upper": 1e199},
    "rows of 1e-300": {"A": 1e-300 * np.eye(4), "upper": 1e-301},
    "bounds of 1e300": {"A": np.vstack([np.eye(4), np.eye(4)]), "upper": [0.1] * 4 + [1e300] * 4},
    "scales of 1e8": {"A": np.eye(4) * [[1e8], [1e-8], [1e4], [1.0]], "upper": [1e7, 1e-9, 1e3, 0.1]},
}


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("ball", [LpBall(2, 1.0), LpBall(1, 1.0)])
def test_scales_of_rows_do_not_matter(name, ball):
    expected = minimize(QUADRATIC, Constrained(ball, bounds(range(4), None, 0.1)), tol=1e-9)
    result = minimize(QUADRATIC, Constrained(ball, **SCALES[name]), tol=1e-9)
    np.testing.assert_allclose(result.w, expected.w, atol=1e-7)
    assert result.certificate.verify(objective=QUADRATIC).ok


@pytest.mark.parametrize("ball", [LpBall(2, 1.0), LpBall(1, 1.0), Box(-1.0, 1.0)])
def test_bounds_far_beyond_the_ball_are_a_conflict(ball):
    for rows in ({"A": np.eye(3), "lower": 1e300}, {"A": 1e-200 * np.eye(3), "upper": -1e200}):
        C = Constrained(ball, **rows)
        with pytest.raises(InfeasibleError, match="row 0") as error:
            C.centre((3,))
        assert proves(C, np.clip(error.value.multipliers, -1.0, 1.0), 3)


@pytest.mark.parametrize("width", [1e-7, 1e-9, 1e-12])
def test_thin_rows(width):
    row = np.arange(1.0, 5.0)[None] / 7
    for ball in (LpBall(1, 1.0), Box(-1.0, 1.0), Simplex(1.0), LpBall(1.5, 1.0), LpBall(2, 1.0), LpBall(3, 1.0)):
        result = minimize(QUADRATIC, Constrained(ball, A=row, lower=0.3, upper=0.3 + width), tol=1e-7)
        near = minimize(QUADRATIC, Constrained(ball, A=row, lower=0.3, upper=0.3), tol=1e-7)
        assert result.status.converged
        assert result.value == pytest.approx(near.value, abs=1e-6)
        assert 0.3 <= (row @ result.w)[0] <= 0.3 + width


@pytest.mark.parametrize("p", [1, 2])
def test_inequalities_hold_after_a_large_shift(p):
    centre = np.array([1e6, -2e6, 3e5, 1e6]) / 3
    A = np.vstack([np.ones(4) / 3, np.arange(4.0) / 7])
    C = Constrained(shifted(LpBall(p, 1.0), centre), A=A, lower=[-inf, (A @ centre)[1]], upper=[(A @ centre)[0], inf])
    for g in np.vstack([np.eye(4), -np.eye(4)]):
        t = C.rows[0].A @ C.lmo(g)
        assert t[0] <= C.rows[0].upper[0]
        assert t[1] >= C.rows[0].lower[1]


def test_zeros_that_equalities_ask_for_verify():
    """Rounding is all that is left of such a row, and bounds on one column from both sides hold exactly."""
    X, y = np.cos(np.arange(120.0)).reshape(20, 6), np.sin(np.arange(20.0))
    rng = np.random.default_rng(0)
    for p in (1, 1.5, 2, 3):
        tied = [bounds([0], 0.0), bounds([0], None, 0.0)]
        C = Constrained(LpBall(p, 1.0), tied, A=rng.standard_normal((2, 6)) * [1, 1, 1, 0, 0, 0], lower=0.0, upper=0.0)
        result = minimize(Objective(Squared(), as_data(X, y)), C, tol=1e-7)
        assert result.w[0] == 0.0
        assert result.certificate.verify(X, y).ok
        assert not C.contains(result.w + 1e-6)


def test_polytopes_take_vertices_and_balls_take_newton():
    f = Objective(Logistic(), as_data(np.eye(3), [1.0, -1.0, 1.0]))
    rows = bounds([0], 0.0)
    assert plan(f, Constrained(LpBall(1, 1.0), rows)).solver.__class__ is PairwiseFrankWolfe
    assert plan(f, Constrained(LpBall(2, 1.0), rows)).solver.__class__ is ConstrainedNewton


def test_multipliers_are_the_slopes_of_the_minimum():
    """Moving a bound by a little moves the minimum by the multiplier times as much."""
    value = {}
    for high in (0.1, 0.1 + 1e-4):
        value[high] = minimize(QUADRATIC, Constrained(LpBall(2, 1.0), bounds([2], None, high)), tol=1e-10)
    slope = (value[0.1 + 1e-4].value - value[0.1].value) / 1e-4
    assert value[0.1].multipliers[0] == pytest.approx(-slope, rel=1e-2)
    assert value[0.1].certificate.multipliers.shape == (1,)
    assert minimize(QUADRATIC, LpBall(2, 1.0)).multipliers is None


def test_forged_multipliers_fail():
    from dataclasses import replace

    X, y = np.eye(4), np.arange(4.0)
    result = minimize(
        Objective(Squared(), as_data(X, y)), Constrained(LpBall(2, 1.0), bounds([3], None, 0.2)), tol=1e-8
    )
    claim = result.certificate
    assert claim.verify(X, y).ok
    assert not replace(claim, ball=claim.ball.with_multipliers(claim.multipliers + 0.1)).verify(X, y).ok
    assert not replace(claim, bound=claim.bound + 1e-3, gap=claim.gap - 1e-3).verify(X, y).ok
    assert not replace(claim, w=claim.w + np.array([0, 0, 0, 0.01])).verify(X, y).ok


def test_quantiles_matrices_and_files(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 4)), rng.standard_normal((80, 2))
    C = Constrained(LpBall(2, 1.0), sums_to(0.0, range(8)))
    result = minimize(Objective(Squared(), as_data(X, y)), C, tol=1e-8)
    assert result.status.converged
    assert abs(result.w.sum()) <= 1e-12 * np.abs(result.w).sum()
    f = Objective(Quantile(0.5, delta=1e-3), as_data(X, y[:, 0]), fit_intercept=True)
    result = minimize(f, Constrained(LpBall(2, 1.0), order([0, 1, 2, 3])), tol=1e-3)
    assert np.all(np.diff(result.w) >= 0.0)
    np.save(tmp_path / "X.npy", X)
    mapped = as_data(np.load(tmp_path / "X.npy", mmap_mode="r"), y[:, 0])
    dense, sparse = as_data(X, y[:, 0]), as_data(sp.csr_array(X), y[:, 0])
    C = Constrained(LpBall(2, 1.0), order([0, 1, 2, 3]))
    found = [minimize(Objective(Huber(1.0), data), C, tol=1e-9).w for data in (dense, mapped, sparse)]
    np.testing.assert_allclose(found[1], found[0], atol=1e-7)
    np.testing.assert_allclose(found[2], found[0], atol=1e-7)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", ["l_1", "l_2", "l_inf", "simplex", "weighted l_1", "shifted l_1", "groups of rows"])
def test_several_outputs(kind, outputs):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((40, 4)), rng.uniform(0.5, 2.0, (4, 1))
    y = X @ rng.standard_normal((4, outputs)) + rng.standard_normal((40, outputs))
    ball, norm = {
        "l_1": (LpBall(1, 1.0), lambda W: cp.sum(cp.abs(W))),
        "l_2": (LpBall(2, 1.0), lambda W: cp.norm(W, "fro")),
        "l_inf": (LpBall(inf, 1.0), lambda W: cp.max(cp.abs(W))),
        "simplex": (Simplex(1.0), lambda W: cp.sum(cp.abs(W))),
        "weighted l_1": (Weighted(LpBall(1, 1.0), weights), lambda W: cp.sum(weights.T @ cp.abs(W))),
        "shifted l_1": (
            shifted(LpBall(1, 1.0), 0.2 * weights),
            lambda W: cp.sum(cp.abs(W - 0.2 * np.tile(weights, outputs))),
        ),
        "groups of rows": (GroupBall(2, 1, 1.0), lambda W: cp.sum(cp.norm(W, 2, axis=1))),
    }[kind]
    result = minimize(
        Objective(Squared(), as_data(X, y)), Constrained(ball, order([0, outputs, 2 * outputs])), tol=1e-7
    )
    W = cp.Variable((4, outputs))
    says = [
        norm(W) <= 1.0,
        W[0, 0] <= W[1, 0],
        W[1, 0] <= W[2, 0],
        *([W >= 0, cp.sum(W) == 1] if kind == "simplex" else []),
    ]
    value = cp.Problem(cp.Minimize(cp.sum_squares(X @ W - y) / 40), says).solve(solver=cp.CLARABEL)
    assert result.status.converged
    assert result.certificate.verify(X, y).ok
    assert np.all(np.diff(result.w[:3, 0]) >= 0.0)
    assert result.bound <= value + 1e-6
    assert result.value >= value - 1e-6


def test_losses_that_are_not_convex_have_multipliers_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X @ np.array([0.0, 0.2, 0.3, 0.4]) + 0.1 * rng.standard_normal(60)
    C = Constrained(LpBall(2, 1.0), bounds([2], None, 0.1))
    result = minimize(Objective(BiWeight(1.0), as_data(X, y)), C, ConstrainedNewton(), max_iter=20)
    assert result.bound is None
    assert result.w[2] == pytest.approx(0.1)
    assert result.multipliers[0] > 0.01
    assert result.certificate.verify(X, y).ok


def test_helpers_say_what_they_ask():
    assert order(["a", "b", "c"]).names == ("a <= b", "b <= c")
    assert order([1, 0], increasing=False).names == ("w[1] >= w[0]",)
    assert bounds([0, 1, 2, 3], [-inf, 0, 1, 1], [0, inf, 2, 1]).names == (
        "w[0] <= 0",
        "w[1] >= 0",
        "1 <= w[2] <= 2",
        "w[3] = 1",
    )
    assert sums_to(1, ["a", "b"]).names == ("a + b = 1",)
    X, z = np.array([[1.0, 2.0], [3.0, 2.0]]), np.array([0.0, 1.0])
    np.testing.assert_allclose(covariance(X, z, 0.1).A.toarray(), [[0.5, 0.0]])
    assert order(["a", "b"]).at(["b", "a"].index).columns == (1, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constrained(LpBall(2, 1)), "needs `rows=` or `A=`"),
        (lambda: Constrained(LpBall(2, 1), [3]), r"rows=...\)` must be a Rows"),
        (lambda: Constrained(LpBall(2, 1), None), r"rows=...\)` must be a Rows"),
        (lambda: Constrained(LpBall(2, 1), bounds([0], 0), lower=1), "got no `A`"),
        (lambda: Constrained(LpBall(2, 1), A=sp.csr_array(1j * np.eye(2)), upper=0), "must hold real numbers"),
        (lambda: sums_to([1, 2], [0, 1]), "must be one number"),
        (lambda: order([0, 1], increasing="no"), "must be True or False"),
        (lambda: Constrained(LpBall(2, 1), A=np.ones(3)), "must be a matrix"),
        (lambda: Constrained(LpBall(2, 1), A=[[np.nan]]), "must be finite"),
        (lambda: Constrained(LpBall(2, 1), A=[[1.0]], lower=2, upper=1), "must not exceed"),
        (lambda: Constrained(LpBall(2, 1), A=[[1.0]], lower=[1, 2]), "one for each of 1 rows"),
        (lambda: Constrained(LpBall(2, 1), A=np.ones((1, 2)), upper=0).lmo(np.ones(3)), "a column for each of the 3"),
        (lambda: Constrained(LpBall(2, 1), bounds([5], 0)).lmo(np.ones(3)), "from 0 to 2"),
        (lambda: Constrained(LpBall(2, 1), bounds(["age"], 0)).lmo(np.ones(3)), "got 'age'"),
        (lambda: Constrained(SchattenBall(1, 1), bounds([0], 0)).lmo(np.ones((2, 2))), "does not have"),
        (lambda: Constrained(Positive(LpBall(2, 1)), bounds([0], 0)).lmo(np.ones(2)), "`bounds` for signs"),
        (lambda: order([1]), "at least 2"),
        (lambda: order([1, 1]), "each once"),
        (lambda: bounds("age", 0), "must be a list"),
        (lambda: order([[0], [1]]), "must be a list"),
        (lambda: covariance(np.ones((2, 2)), np.ones(3), 1), "a number for each row"),
        (lambda: covariance(np.ones((2, 2)), np.ones(2), 0), "must be positive"),
        (lambda: sums_to(np.nan, [0]), "must be finite"),
    ],
)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()
