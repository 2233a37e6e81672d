"""Least squares and logistic problems with known optima, at the edges of what data can be."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from agreement.corners import corners
from agreement.exact import Array, Mean
from agreement.inside import pulled
from agreement.planted import plant

from projfree import (
    AcceleratedProjectedGradient,
    CorrectivePrimalAveraging,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    ProjectedGradient,
    Result,
    Squared,
    Status,
    as_data,
    minimize,
)
from projfree.solvers import Solver

CORNERS = corners()
EXPONENTS = (1.0, 1.05, 1.2, 1.5, 2.0, 3.0, math.inf)
QUICK: tuple[Solver, ...] = (CorrectivePrimalAveraging(), AcceleratedProjectedGradient(), FrankWolfe())
by_name = {"ids": lambda s: type(s).__name__}


def squares(X: Array, y: Array, intercept: bool = False) -> Objective:
    return Objective(Squared(), as_data(X, y), fit_intercept=intercept)


def near(result: Result, best: float, tol: float) -> None:
    """The bound below, the value above, both within the tolerance."""
    assert result.bound is not None
    assert result.status in (Status.CONVERGED, Status.PRECISION)
    assert Decimal(result.bound) <= Decimal(best) * (1 + Decimal("1e-15"))
    assert result.value >= best * (1.0 - 1e-9)
    assert result.value - best <= tol * max(abs(result.value), 1e-300) * (1.0 + 1e-9)


@pytest.mark.parametrize("i", range(len(CORNERS)))
def test_a_planted_optimum_is_found(i: int) -> None:
    p = plant(CORNERS[i], "squares", i)
    for solver in QUICK[:2]:
        if p.ball.structure(p.f.shape).projection != "none" or isinstance(solver, CorrectivePrimalAveraging):
            result = minimize(p.f, p.ball, solver, tol=1e-5, max_iter=2000)
            assert result.bound is not None
            assert result.status.converged
            assert Fraction(result.bound) <= p.least
            assert result.value == pytest.approx(float(p.least), rel=1e-5)
            # A contains the identity: f grows by at least |w - w*|^2 / n.
            assert np.sum((result.w - p.w) ** 2) <= len(p.f.data.y) * result.gap * (1.0 + 1e-9)


@pytest.mark.parametrize("solver", QUICK, **by_name)
@pytest.mark.parametrize("p", EXPONENTS)
def test_an_optimum_inside_and_a_minimum_of_zero(solver: Solver, p: float) -> None:
    X, w = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0]]), np.array([0.5, -0.25])
    inside = minimize(squares(X, X @ w + np.array([1.0, -2.0, 2.0 / 3.0])), LpBall(p, 4.0), solver, tol=1e-6)
    near(inside, (1.0 + 4.0 + 4.0 / 9.0) / 3.0, 1e-6)
    zero = minimize(squares(X, X @ w), LpBall(p, 4.0), solver, tol=1e-3)
    assert zero.status.converged, "a minimum of zero must stop a run too"
    assert zero.bound is not None
    assert zero.bound <= 0.0
    assert zero.value <= 1e-9 * float(np.mean((X @ w) ** 2))


def test_zero_data_stops_at_once() -> None:
    result = minimize(squares(np.zeros((3, 2)), np.zeros(3)), LpBall(2, 1.0))
    assert result.n_iter == 1
    assert result.value == 0.0
    assert result.bound is not None
    assert -1e-280 <= result.bound <= 0.0


@pytest.mark.parametrize("solver", QUICK, **by_name)
@pytest.mark.parametrize("p", EXPONENTS)
def test_one_coefficient_and_one_row(solver: Solver, p: float) -> None:
    y = np.array([1.0, 2.0, 6.0])
    near(minimize(squares(np.ones((3, 1)), y), LpBall(p, 2.0), solver), 17.0 / 3.0, 1e-6)
    near(minimize(squares(np.ones((3, 1)), y), LpBall(p, 5.0), solver), 14.0 / 3.0, 1e-6)
    q = math.inf if p == 1.0 else p / (p - 1.0)
    reach = 0.5 * float(np.linalg.norm([3.0, 4.0], 1.0 if math.isinf(p) else q))
    near(minimize(squares(np.array([[3.0, 4.0]]), np.array([7.0])), LpBall(p, 0.5), solver), (7.0 - reach) ** 2, 1e-6)


@pytest.mark.parametrize("p", EXPONENTS)
def test_duplicated_rows_and_weights_are_one_and_the_same(p: float) -> None:
    rng = np.random.default_rng(2)
    X, y, times = rng.standard_normal((6, 3)), rng.standard_normal(6), np.array([1, 3, 0, 2, 1, 4])
    weighted = minimize(Objective(Squared(), as_data(X, y, times)), LpBall(p, 0.2), tol=1e-10)
    repeated = minimize(squares(np.repeat(X, times, axis=0), np.repeat(y, times)), LpBall(p, 0.2), tol=1e-10)
    assert weighted.value == pytest.approx(repeated.value, rel=1e-9)
    assert max(weighted.bound or 0, repeated.bound or 0) <= min(weighted.value, repeated.value) * (1.0 + 1e-14)


@pytest.mark.parametrize("scale", [1e-8, 1e8, 2.0**-40, 1e-100, 1e100])
@pytest.mark.parametrize("p", EXPONENTS)
def test_the_scale_of_the_columns_does_not_matter(p: float, scale: float) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((12, 4)), rng.standard_normal(12)
    plain = minimize(squares(X, y), LpBall(p, 0.3), tol=1e-9)
    scaled = minimize(squares(X * scale, y), LpBall(p, 0.3 / scale), tol=1e-9)
    assert scaled.status.converged
    assert scaled.value == pytest.approx(plain.value, rel=1e-9)
    exact = Mean(Squared(), X * scale, y)
    assert Decimal(scaled.bound or 0) <= exact(pulled(LpBall(p, 0.3 / scale), scaled.w))


@pytest.mark.parametrize("offset", [1e3, 1e6, -1e9])
@pytest.mark.parametrize("p", EXPONENTS)
def test_an_offset_of_the_targets_goes_into_the_intercept(p: float, offset: float) -> None:
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((15, 3)) + 2.0, np.round(rng.standard_normal(15) * 16.0) / 16.0
    plain, moved = (minimize(squares(X, t, True), LpBall(p, 0.3), tol=1e-9) for t in (y, y + offset))
    exact = Mean(Squared(), X, y + offset, intercept=True)
    assert Decimal(moved.bound or 0) <= exact(pulled(LpBall(p, 0.3), plain.w))
    assert float(exact(moved.w)) == pytest.approx(plain.value, rel=max(1e-9, 1e-15 * abs(offset)))
    assert moved.intercept == pytest.approx(float(plain.intercept or 0) + offset, rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("radius", [0.5, 50.0, 5000.0])
def test_separable_classes_have_a_minimum_on_every_sphere(radius: float, intercept: bool) -> None:
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1.0, 1.0, -1.0, -1.0])
    f = Objective(Logistic(), as_data(X, y), fit_intercept=intercept)
    best = (math.log1p(math.exp(-radius)) + math.log1p(math.exp(-2.0 * radius))) / 2.0
    for solver in (*QUICK, ProjectedGradient()):
        result = minimize(f, LpBall(2, radius), solver, tol=1e-6, max_iter=200)
        assert result.bound is not None
        assert result.bound <= best * (1.0 + 1e-13)
        assert LpBall(2, radius).contains(result.w)
        assert result.value >= best * (1.0 - 1e-9) - 1e-300
        assert result.value - best <= result.gap * (1.0 + 1e-9)
