"""Sums of many like terms, coarse functions and foreign states: where a careless allowance would break a bound."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    BiWeight,
    BlackBox,
    Checkpoint,
    ConstrainedNewton,
    Entries,
    FrankWolfe,
    GroupBall,
    HessianFreeNewton,
    LpBall,
    Objective,
    OpenLoop,
    OracleSet,
    PrimalAveraging,
    QuadraticForm,
    SchattenBall,
    Squared,
    as_data,
    iterate,
    minimize,
)
from projfree.algebra import Minorant


def test_a_place_that_occurs_very_often():
    n, y, radius = 1_000_000, 2.3, 1.3
    f = Objective(Squared(), as_data(Entries(np.zeros(n, int), np.zeros(n, int), (1, 1)), np.full(n, y)))
    result = minimize(f, LpBall(2, radius=radius), tol=0.0, max_iter=20)
    assert Fraction(result.bound) <= (Fraction(y) - Fraction(radius)) ** 2


@pytest.mark.parametrize(
    "ball",
    [LpBall(2, 1.0), LpBall(1.5, 1.0), SchattenBall(2, 1.0), GroupBall(2, 2, 1.0), LpBall(math.inf, 1.0)],
    ids=repr,
)
@pytest.mark.parametrize("entry", [0.1, 1.0 / 3.0, 1.7])
def test_supports_of_long_constant_vectors_are_within_their_stated_error(ball, entry):
    shape = (1000, 1000)
    g = np.full(shape, entry)
    dual = {2: 2.0, 1.5: 3.0, math.inf: 1.0}[ball.p]
    exact = Fraction(entry) * (1000**2 if dual == 1.0 else Fraction(1))
    true = float(exact) * (1.0 if dual == 1.0 else (10.0**6) ** (1.0 / dual))
    assert abs(ball.support(g) - true) <= ball.support_error(g, true) + 4e-16 * true


def test_a_quadratic_form_with_very_many_columns():
    h, entry, k = 0.3, 0.7, 200_000
    f = QuadraticForm(np.array([[h]]), np.full((1, k), entry))
    bound = minimize(f, LpBall(math.inf, radius=1.0), FrankWolfe(), tol=0.0, max_iter=5).bound
    assert Fraction(bound) <= k * (Fraction(h) / 2 - Fraction(entry))


@pytest.mark.parametrize("seed", range(10))
def test_functions_in_single_precision(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(5).astype(np.float32)

    def fun(w):
        r = w.astype(np.float32) - a
        return r @ r, np.float32(2.0) * r

    ball = LpBall(2, radius=0.5 * float(np.linalg.norm(a)))
    result = minimize(BlackBox(fun, shape=5, convex=True), ball, PrimalAveraging(), tol=1e-8, max_iter=200)
    exact = (float(np.linalg.norm(a.astype(float))) - ball.radius) ** 2
    assert result.bound <= exact


def test_a_support_in_single_precision():
    ball = LpBall(2, radius=1.0)
    coarse = OracleSet(ball.lmo, lambda g: np.float32(ball.support(g)), contains=ball.contains, diameter=2.0)
    for seed in range(10):
        b = np.random.default_rng(seed).standard_normal(4) * 3.0
        result = minimize(QuadraticForm(np.eye(4), b), coarse, PrimalAveraging(), tol=1e-9, max_iter=100)
        assert result.bound <= minimize(QuadraticForm(np.eye(4), b), ball, tol=1e-12).value


def test_a_run_does_not_go_on_when_any_row_has_changed(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5000, 3)), rng.standard_normal(5000)
    ball, solver, path = LpBall(2, radius=0.5), FrankWolfe(OpenLoop()), tmp_path / "run"
    minimize(
        Objective(Squared(), as_data(X, y)), ball, solver, max_iter=10, tol=0.0, callbacks=Checkpoint(path, every=5)
    )
    X[1234] *= 0.98
    with pytest.raises(ValueError, match="is of another problem: its objective"):
        minimize(Objective(Squared(), as_data(X, y)), ball, solver, state=path)


def test_no_bound_is_claimed_where_the_function_is_not_convex():
    f = Objective(BiWeight(), as_data(np.eye(3), np.full(3, 4.0)))
    for solver in (FrankWolfe(), PrimalAveraging(), ConstrainedNewton(), HessianFreeNewton()):
        bound = next(iterate(f, LpBall(2, radius=1.0), solver)).bound
        assert bound is None or bound.bound == -math.inf
        result = minimize(f, LpBall(2, radius=1.0), solver, max_iter=3)
        assert result.bound is None
        assert np.isnan(result.trace["bound"]).all()


def test_minorants_are_not_multiplied_by_negative_numbers():
    with pytest.raises(ValueError, match=r"a minorant times -0\.5 lies above f; weights .* between 0 and 1"):
        -0.5 * Minorant(1.0, np.ones(2))


@pytest.mark.parametrize("kind", ["dense", "sparse", "scaled"])
def test_rows_whose_squares_underflow_are_still_charged(kind):
    X, scale = np.full((3, 2), 1e-170), np.ones(2)
    data = as_data(sp.csr_array(X) if kind == "sparse" else X, np.ones(3), scale=scale if kind == "scaled" else False)
    assert data.column_stats.row_norm >= math.hypot(1e-170, 1e-170)
    assert math.sqrt(data.column_stats.mean_square) >= math.hypot(1e-170, 1e-170)
