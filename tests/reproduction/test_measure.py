"""Slopes, the paper's rule of convergence, and the problems with their exact minima."""

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree import AcceleratedProjectedGradient, LpBall, PrimalAveraging, QuadraticForm, minimize, paper
from projfree.datasets import Ratings, movielens_stand_in
from reproduction.experiments.iteration_time import of_matrix, of_table
from reproduction.experiments.stochastic import Rows
from reproduction.experiments.stochastic_rate import Stream
from reproduction.measure import Count, count, curve_rows, slope, slope_rows, timings, trace_run
from reproduction.problems import (
    DROPPED,
    EXACT,
    OPTION_B,
    PA,
    SCALED,
    SEARCHED,
    Completion,
    LeastSquares,
    Table,
    adult,
    brent_line_search,
    l2_oracle,
    methods,
    random_point,
    rating_matrix,
)


@pytest.fixture(scope="module")
def squares() -> LeastSquares:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6)) * np.geomspace(1, 30, 6)
    return LeastSquares(Table(X, X @ rng.standard_normal(6) + rng.standard_normal(200), "drawn"))


@given(st.floats(-4, -0.2), st.floats(1e-6, 1e3))
def test_the_slope_of_a_power_is_the_power(power: float, scale: float) -> None:
    t = np.arange(1, 301)
    assert slope(t, scale * t**power, 10, 100) == pytest.approx(power, abs=1e-9)


def test_a_window_that_is_not_reached_or_meets_the_floor_has_no_slope() -> None:
    t = np.arange(1, 101)
    assert math.isnan(slope(t, 1.0 / t, 10, 200))
    assert math.isnan(slope(t, 1.0 / t, 10, 100, floor=0.05))
    rows = list(slope_rows(t, 1.0 / t, [(2, 20), (30, 300)], start=3))
    assert [row["window"] for row in rows] == ["[2, 20]", "[30, 300]"]
    assert rows[0]["value"] == pytest.approx(-1)
    assert math.isnan(rows[1]["value"])


def test_curves_are_thinned_but_keep_their_ends() -> None:
    rows = list(curve_rows("error", np.arange(1, 2001), np.ones(2000)))
    assert [row["t"] for row in rows[:30]] == list(range(1, 31))
    assert rows[-1]["t"] == 2000
    assert len(rows) < 200


def test_convergence_asks_for_both_halves_of_the_rule() -> None:
    # Within 2 % of the minimum at once, but only the third is within 2 % of the loss before it.
    assert count([1.019, 0.99, 0.985, 0.98], 1.0, 2.0, 10).at == 3
    # Still within 2 % of the loss before it, but far from the minimum.
    assert count([5.0, 5.0, 5.0], 1.0, 5.0, 10) == Count(pytest.approx(np.full(3, 5.0)), None)
    assert count([0.015, 0.01], 0.0, 1.0, 10, scale=1.0).at == 2
    assert count([3.0] * 5, 1.0, 3.0, 4).row(method="x")["measure"] == "iterations at least"


def test_following_a_solver_measures_its_states() -> None:
    f, ball = QuadraticForm(np.eye(3), np.array([3.0, 0.0, 4.0])), LpBall(2, 1.0)
    t, values, state = trace_run(f, ball, PrimalAveraging(), 50, lambda s: f(s.x), growth=1.5)
    assert t[0] == 1
    assert t[-1] == 50
    assert values[-1] == pytest.approx(f(state.x))


def test_rounds_time_every_action() -> None:
    called: list[str] = []
    spent = timings({"a": lambda: called.append("a"), "b": lambda: called.append("b")}, {"a": 2, "b": 1}, 3)
    assert called == ["a", "b"] + ["a", "a", "b"] * 3
    assert all(len(each) == 3 and (each >= 0).all() for each in spent.values())


@pytest.mark.parametrize("rho", [0.3, 0.9, 1.5])
def test_the_minimum_over_a_ball_agrees_with_projected_gradients(squares: LeastSquares, rho: float) -> None:
    ball = squares.ball(2, rho)
    best = squares.minimum(ball)
    form = QuadraticForm(squares.H, squares.b, squares.start)
    referee = minimize(form, ball, AcceleratedProjectedGradient(), tol=1e-10, max_iter=50_000)
    assert best.value == pytest.approx(referee.value, rel=1e-9)
    assert ball.norm(best.w) <= ball.radius * (1 + 1e-12)
    w = random_point(ball, squares.zero.shape, 0)
    assert squares.error(w, best) == pytest.approx(squares.value(w) - best.value, rel=1e-6)


def test_the_search_on_values_finds_steps_far_below_the_absolute_tolerance() -> None:
    # The minimum along the segment is at 3e-5, which a bounded search with the tolerance 1e-4 misses.
    w, v = np.array([0.0]), np.array([1.0])
    step = brent_line_search(lambda x: float((x[0] - 3e-5) ** 2))
    assert step(1, w, v, w) == pytest.approx(3e-5, rel=1e-3)
    assert brent_line_search(lambda x: float((x[0] + 7.0) ** 2))(1, w, v, w) == 0.0
    assert brent_line_search(lambda x: float((x[0] - 7.0) ** 2))(1, w, v, w) == 1.0


def test_counts_and_cost_use_the_same_search(squares: LeastSquares) -> None:
    """The searches of the timed steps give the steps of the counted ones."""
    ball, X = squares.ball(2, 0.5), squares.table.X
    f = of_table(X - X.mean(axis=0), squares.table.y - squares.table.y.mean(), squares.L * len(X))
    timed, full_gradient = methods(f, ball.radius, f.start), squares.methods(ball)
    for name in (PA, EXACT, SEARCHED, OPTION_B):
        for a, b in islice(zip(timed[name], full_gradient[name], strict=True), 5):
            assert np.allclose(a, b, rtol=1e-4, atol=1e-6 * ball.radius)


def small_ratings() -> Ratings:
    whole = movielens_stand_in("100k")
    kept = (whole.rows < 12) & (whole.cols < 40)
    rows, cols = whole.rows[kept], whole.cols[kept]
    return Ratings(rows, cols, whole.values[kept], (12, 40), np.arange(12), np.arange(40), "", "", "")


@pytest.mark.parametrize("share", [0.5, 1.2])
def test_completion_without_the_matrix_has_the_iterates_of_the_matrix(share: float) -> None:
    rated = small_ratings()
    radius = share * float(np.linalg.norm(rated.values))
    case, f = Completion(rated, radius, 0), of_matrix(rating_matrix(rated))
    rest = np.random.default_rng(1).standard_normal(rated.shape)
    rest[rated.rows, rated.cols] = 0.0
    start = rest * (case.w0[-1] / np.linalg.norm(rest))
    start[rated.rows, rated.cols] = case.w0[:-1]
    whole = paper.primal_averaging(f.gradient, l2_oracle(radius), start, paper.Averaged())
    for W, w in islice(zip(whole, case.methods()[PA], strict=True), 8):
        assert np.allclose(W[rated.rows, rated.cols], w[:-1])
        assert f.value(W) / len(case.y) == pytest.approx(case.value(w), rel=1e-10)
    assert case.minimum == pytest.approx(max(0.0, float(np.linalg.norm(rated.values)) - radius) ** 2 / len(case.y))


def test_the_gradient_of_fresh_rows_has_their_mean_and_covariance(squares: LeastSquares) -> None:
    rows, w, m = Stream(squares), np.linspace(-1, 1, 6), 5
    rng = np.random.default_rng(0)
    drawn = np.array([rows.gradient(w, m, rng) for _ in range(20_000)])
    delta = w - rows.w0
    q, a = float(delta @ rows.S @ delta), rows.S @ delta
    covariance = 4.0 / m * ((q + rows.noise**2) * rows.S + np.outer(a, a))
    scale = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(drawn.mean(axis=0) - squares.gradient(w)) < 5 * scale / math.sqrt(len(drawn)))
    assert np.cov(drawn.T) / np.outer(scale, scale) == pytest.approx(covariance / np.outer(scale, scale), abs=0.06)


def test_sampled_rows_sum_to_the_gradient(squares: LeastSquares) -> None:
    rows, w = Rows(squares), np.linspace(-1, 1, 6)
    each = sum(rows.one(w, i) for i in range(rows.n))
    assert each == pytest.approx(rows.n * squares.gradient(w))
    assert rows.sum_gradient(w, np.arange(rows.n)) == pytest.approx(rows.full_gradient(w, np.arange(rows.n)))


def test_encodings_of_adult() -> None:
    dense, dropped, scaled = (adult("quick", e).X for e in ("one-hot", DROPPED, SCALED))
    assert dense.shape == scaled.shape == (7_000, 108)
    assert dropped.shape == (7_000, 100)
    assert scaled.min() >= 0.0
    assert scaled.max() <= 1.0
    assert np.linalg.matrix_rank(dropped[:, 6:].toarray()) > dropped.shape[1] - 6 - 5
