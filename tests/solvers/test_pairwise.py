"""Pairwise Frank-Wolfe: its active sets, what corrections and laziness save, and that it minimises."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree import (
    Backtracking,
    BlackBox,
    Box,
    ExactLineSearch,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    OpenLoop,
    OracleSet,
    OwlBall,
    PairwiseFrankWolfe,
    Positive,
    QuadraticForm,
    Simplex,
    Softmax,
    Squared,
    Weighted,
    as_data,
    minimize,
)
from projfree.sets import WithUnpenalized
from projfree.solvers import ActiveSet

RNG = np.random.default_rng(5)
D = 12
X = RNG.standard_normal((80, D)) * np.linspace(2.0, 0.5, D)
Y = X @ np.where(np.arange(D) < 4, 1.5, 0.0) + RNG.standard_normal(80)
LABELS = np.sign(Y)
CLASSES = np.arange(80) % 3
WAYS = [PairwiseFrankWolfe(), PairwiseFrankWolfe(corrections=3), PairwiseFrankWolfe(corrections=0)]
EAGER = [replace(solver, lazy=False) for solver in WAYS]
POLYTOPES = [
    LpBall(1, 2.0),
    LpBall(math.inf, 0.3),
    Simplex(1.5),
    Box(-0.2, np.linspace(0.1, 1.0, D)),
    Weighted(LpBall(1, 2.0), np.linspace(0.5, 2.0, D)),
    Positive(LpBall(1, 2.0)),
    WithUnpenalized(LpBall(1, 2.0), (1, 5), 10.0),
    OwlBall(np.linspace(1.5, 0.5, D), 2.0),
    OracleSet(LpBall(1, 2.0).lmo, polytope=True, name="l_1 by its oracle"),
]


def squares(**kwargs):
    return Objective(Squared(), as_data(X, Y), **kwargs)


def logistic(**kwargs):
    return Objective(Logistic(), as_data(X, LABELS), **kwargs)


def sound(result, ball):
    """The active set is one: weights of a mixture that is the iterate, and each vertex in the set, none twice."""
    active = result.state.active_set
    assert isinstance(active, ActiveSet)
    assert active.weights.sum() == pytest.approx(1.0, abs=1e-13)
    assert np.all(active.weights > 0.0)
    np.testing.assert_allclose(active.mixture(), result.state.x.w, rtol=0.0, atol=1e-12 * ball.reach(result.w.shape))
    assert len({v.tobytes() for v in active.vertices}) == len(active)
    if not isinstance(ball, OracleSet):
        assert all(ball.contains(v) for v in active.vertices)


@pytest.mark.parametrize("f", [squares, logistic], ids=["squares", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ball", POLYTOPES, ids=repr)
def test_every_way_reaches_the_same_minimum(f, intercept, ball):
    best = minimize(f(fit_intercept=intercept), ball, tol=1e-9, max_iter=100_000, time_limit=20)
    for solver in (WAYS[0], WAYS[1], EAGER[0]):
        result = minimize(f(fit_intercept=intercept), ball, solver, tol=1e-7, max_iter=3_000)
        assert result.status.converged, solver
        assert result.bound <= best.value + 1e-12 * abs(best.value)
        assert result.value >= best.bound - 1e-12 * abs(best.value)
        sound(result, ball)
        if not isinstance(ball, OracleSet):
            assert result.certificate.verify(objective=f(fit_intercept=intercept)).ok


@pytest.mark.parametrize("ball", POLYTOPES[:4], ids=repr)
@pytest.mark.parametrize("lazy", [True, False])
def test_plain_steps_reach_it_too(ball, lazy):
    result = minimize(squares(), ball, PairwiseFrankWolfe(corrections=0, lazy=lazy), tol=1e-6)
    assert result.status.converged
    assert result.value == pytest.approx(minimize(squares(), ball, PairwiseFrankWolfe(), tol=1e-9).value, rel=1e-6)
    sound(result, ball)


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("ball", POLYTOPES, ids=repr)
def test_away_steps_reach_it_too(ball, lazy):
    result = minimize(squares(), ball, PairwiseFrankWolfe(corrections=0, lazy=lazy, away=True), tol=1e-6)
    best = minimize(squares(), ball, PairwiseFrankWolfe(), tol=1e-9)
    assert result.status.converged
    assert best.bound <= result.value <= best.value * (1.0 + 1e-6)
    assert result.bound <= best.value
    sound(result, ball)


def test_away_steps_converge_linearly_where_frank_wolfe_does_not():
    """The minimum lies inside a face: plain steps zigzag, those away from bad vertices do not."""
    f, ball = squares(), LpBall(1, 2.0)
    plain = minimize(f, ball, FrankWolfe(ExactLineSearch()), tol=1e-9, max_iter=400)
    away = minimize(f, ball, PairwiseFrankWolfe(corrections=0, away=True), tol=1e-9, max_iter=400)
    assert away.status.converged
    assert not plain.status.converged
    assert plain.gap > 1e3 * away.gap


def test_squares_need_few_reads():
    """A correction is exact, so that reads count the rounds in which vertices are taken in."""
    result = minimize(squares(), LpBall(1, 2.0), PairwiseFrankWolfe(), tol=1e-9)
    assert result.n_passes <= 12
    assert minimize(squares(), LpBall(1, 2.0), FrankWolfe(), tol=1e-9, max_iter=300).relative_gap > 1e-6


def test_several_outputs():
    f = Objective(Softmax(), as_data(X, CLASSES), fit_intercept=True)
    best = minimize(f, LpBall(1, 1.5), tol=1e-8)
    for solver in (*WAYS[:2], EAGER[0]):
        result = minimize(f, LpBall(1, 1.5), solver, tol=1e-6)
        assert result.status.converged
        assert result.value == pytest.approx(best.value, rel=1e-6)
        sound(result, LpBall(1, 1.5))
        assert result.state.active_set.vertices.shape[1:] == (D, 3)


def test_a_black_box():
    f = BlackBox(
        lambda w: (np.mean((X @ w - Y) ** 2), 2 * X.T @ (X @ w - Y) / 80), D, name="squares by calls", convex=True
    )
    solver = PairwiseFrankWolfe(Backtracking())
    result = minimize(f, LpBall(1, 2.0), solver, tol=1e-6)
    assert result.status.converged
    assert result.value == pytest.approx(minimize(squares(), LpBall(1, 2.0), tol=1e-9).value, rel=1e-6)


def test_zero_gradient():
    """The centre minimises, and the run ends there."""
    result = minimize(QuadraticForm(np.eye(3), np.zeros(3)), LpBall(1, 1.0), PairwiseFrankWolfe(), tol=1e-9)
    np.testing.assert_array_equal(result.w, 0.0)
    assert result.n_iter == 1
    assert len(result.state.active_set) == 1


@pytest.mark.parametrize("solver", [*WAYS, *EAGER], ids=repr)
def test_ties(solver):
    """All vertices of the simplex are alike, and the minimum is the mean of all."""
    corner = np.array([1.0, 0.0, 0.0, 0.0])
    result = minimize(QuadraticForm(np.eye(4), np.ones(4)), Simplex(), solver, tol=1e-9, start=corner, max_iter=500)
    np.testing.assert_allclose(result.w, 0.25, atol=1e-4)
    sound(result, Simplex())


def test_a_minimum_inside():
    f = QuadraticForm(np.diag([1.0, 2.0, 3.0]), np.array([0.1, 0.1, -0.1]))
    result = minimize(f, LpBall(1, 1.0), PairwiseFrankWolfe(), tol=1e-10)
    np.testing.assert_allclose(result.w, [0.1, 0.05, -1 / 30], atol=1e-6)


def test_what_it_refuses():
    with pytest.raises(ValueError, match=r"PairwiseFrankWolfe needs a step that looks along the segment, got OpenLoop"):
        PairwiseFrankWolfe(OpenLoop())
    with pytest.raises(ValueError, match=r"`PairwiseFrankWolfe\(corrections=\.\.\.\)`"):
        PairwiseFrankWolfe(corrections=-1)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 7),
    rank=st.integers(0, 7),
    kind=st.sampled_from(("l_1", "l_inf", "simplex", "box")),
    solver=st.sampled_from((*WAYS, *EAGER)),
)
def test_certificates_hold_on_random_quadratics(seed, d, rank, kind, solver):
    """Singular and tied ones among them: the bound is below, the value above what another solver finds."""
    rng = np.random.default_rng(seed)
    A, b = rng.integers(-2, 3, (rank, d)).astype(float), rng.integers(-3, 4, d).astype(float)
    ball = {"l_1": LpBall(1, 1.0), "l_inf": LpBall(math.inf, 1.0), "simplex": Simplex(), "box": Box(-1.0, 2.0)}[kind]
    f = QuadraticForm(A.T @ A, b)
    best = minimize(f, ball, tol=1e-10)
    result = minimize(f, ball, solver, tol=1e-7, max_iter=400)
    slack = 1e-12 * (1.0 + abs(best.value))
    assert result.bound <= best.value + slack
    assert result.value >= best.bound - slack
    assert ball.contains(result.w)
    assert result.gap <= (1e-6 if solver.corrections == 1 else 1e-2) * (1.0 + abs(best.value))
    sound(result, ball)
