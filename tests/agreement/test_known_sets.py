"""Answers known in closed form: the simplex, distances to every set, completion in the Frobenius norm."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from agreement.exact import Array, Quadratic
from agreement.inside import pulled
from agreement.referee import nearest
from sets.examples import examples

from projfree import (
    AcceleratedProjectedGradient,
    ConstraintSet,
    CorrectivePrimalAveraging,
    Entries,
    FrankWolfe,
    Huber,
    Objective,
    PrimalAveraging,
    ProjectedGradient,
    QuadraticForm,
    SchattenBall,
    ShortStep,
    Simplex,
    Squared,
    Status,
    as_data,
    minimize,
)
from projfree.sets import SETS, OracleSet
from projfree.solvers import SOLVERS, HessianFreeNewton, Solver, WorkingSet

ANY_SET = [kind() for kind in SOLVERS if kind not in (HessianFreeNewton, WorkingSet)]
BALLS = [ball for kind in SETS if kind is not OracleSet for ball in examples(kind)]


@pytest.mark.parametrize("n", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("solver", [s() for s in SOLVERS if s is not HessianFreeNewton], ids=lambda s: type(s).__name__)
def test_the_shortest_vector_of_the_simplex(n: int, solver: Solver) -> None:
    corner = np.eye(n)[0]
    result = minimize(QuadraticForm(2.0 * np.eye(n), np.zeros(n)), Simplex(), solver, tol=1e-2, start=corner)
    assert result.status.converged
    assert result.bound is not None
    assert Fraction(result.bound) <= Fraction(1, n)
    assert result.value == pytest.approx(1.0 / n, rel=1e-2)


def shape_of(ball: ConstraintSet) -> tuple[int, ...]:
    """A shape that the set takes: three entries where it carries some, a matrix where it needs one."""
    for shape in ((3,), (3, 2), (3, 3), (4, 3), (7,), (1,)):
        try:
            ball.check_shape(shape)
        except ValueError:
            continue
        return shape
    raise AssertionError(f"{ball!r} takes none of the shapes")


@pytest.mark.parametrize("outside", [0.5, 30.0])
@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_the_distance_to_a_set(ball: ConstraintSet, outside: float) -> None:
    shape = shape_of(ball)
    rng = np.random.default_rng(3)
    a = ball.centre(shape) + outside * rng.standard_normal(shape)
    f, exact = distance(a)
    projects = ball.structure(shape).projection != "none"
    solver = AcceleratedProjectedGradient() if projects else CorrectivePrimalAveraging()
    result = minimize(f, ball, solver, tol=1e-9, max_iter=200)
    free = minimize(f, ball, FrankWolfe(), tol=1e-3, max_iter=100)
    referee = nearest(ball, a)
    points = [
        result.w,
        free.w,
        *([ball.project(a)] if projects else []),
        *([] if referee is None else [referee]),
    ]
    least = min(exact(pulled(ball, w)) for w in points)
    for run in (result, free):
        assert run.bound is not None
        assert run.bound <= least
        assert ball.contains(run.w)
    if projects:
        assert result.status in (Status.CONVERGED, Status.PRECISION)
        # Nearest points are unique: half a squared distance to the minimum bounds that to the minimiser.
        assert np.sum((result.w - ball.project(a)) ** 2) <= 2.0 * result.gap + 1e-14 * np.sum(a**2)
    if referee is not None:
        assert float(exact(pulled(ball, referee)) - least) <= 1e-6 * max(float(np.sum(a**2)), 1.0)


def distance(a: Array) -> tuple[QuadraticForm, Quadratic]:
    """Half the squared distance to ``a``."""
    eye, half = np.eye(len(a)), float(np.sum(a**2)) / 2.0
    return QuadraticForm(eye, a, half), Quadratic(eye, a, half)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.999, 1.0, 1.5])
@pytest.mark.parametrize(
    "solver",
    [FrankWolfe(), FrankWolfe(ShortStep()), CorrectivePrimalAveraging(), PrimalAveraging(), ProjectedGradient()],
    ids=lambda s: type(s).__name__,
)
def test_completion_in_the_frobenius_norm(solver: Solver, share: float) -> None:
    rng = np.random.default_rng(5)
    places = rng.permutation(30)[:17]
    rows, cols, y = places // 6, places % 6, rng.standard_normal(17) + 2.0
    size = math.sqrt(float(y @ y))
    ball = SchattenBall(2, share * size)
    result = minimize(
        Objective(Squared(), as_data(Entries(rows, cols, (5, 6)), y)), ball, solver, tol=1e-3, max_iter=1000
    )
    best = max(size - ball.radius, 0.0) ** 2 / 17
    observed = np.zeros((5, 6))
    observed[rows, cols] = y
    if share <= 1.0 or type(solver) is not PrimalAveraging:  # a minimum of zero is out of reach of 1 / t^2
        assert result.status.converged
    assert result.bound is not None
    assert result.bound <= best * (1.0 + 1e-14)
    assert result.value - best <= result.gap * (1.0 + 1e-9)
    distance_to_best = np.sum((result.w - min(1.0, share) * observed)[rows, cols] ** 2)
    assert distance_to_best <= 17 * result.gap * (1.0 + 1e-9) + 1e-25


def test_completion_with_outliers_leaves_unobserved_entries_alone() -> None:
    y = np.array([1.0, 1.0, 100.0])
    data = as_data(Entries(np.array([0, 1, 2]), np.array([0, 1, 2]), (3, 3)), y)
    result = minimize(Objective(Huber(1.0), data), SchattenBall(2, 1.0), FrankWolfe(), tol=1e-8)
    off = result.w[~np.eye(3, dtype=bool)]
    assert result.status.converged
    assert not off.any()
