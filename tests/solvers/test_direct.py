"""`Direct`: exact in a handful of reads, on every kind of data and every ball they take."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from solvers.catalogue import problem

from projfree import (
    Entries,
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    Objective,
    QuadraticForm,
    SchattenBall,
    Squared,
    Status,
    Weighted,
    as_data,
    minimize,
    path,
)
from projfree.solvers import Direct

RNG = np.random.default_rng(3)
N, D = 200, 7
X = RNG.standard_normal((N, D)) * np.logspace(0, -2, D) + 0.3
Y = X @ RNG.standard_normal(D) * 3.0 + RNG.standard_normal(N)
TABLES = {
    "dense": lambda **kw: as_data(X, Y, **kw),
    "float32": lambda **kw: as_data(X.astype(np.float32), Y, **kw),
    "sparse": lambda **kw: as_data(sp.csr_array(X * (np.abs(X) > 0.3)), Y, **kw),
    "weights": lambda **kw: as_data(X, Y, np.arange(N) % 3, **kw),
    "outputs": lambda **kw: as_data(X, np.column_stack([Y, -2.0 * Y[::-1]]), **kw),
    "collinear": lambda **kw: as_data(np.column_stack([X, X[:, :3], np.ones(N), np.zeros(N)]), Y, **kw),
    "few rows": lambda **kw: as_data(X[:4], Y[:4], **kw),
}
BALLS = [LpBall(p, 0.6) for p in (1.0, 1.05, 1.5, 2.0, 4.0, np.inf)]


@pytest.mark.parametrize("ball", BALLS, ids=repr)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("intercept", [False, True])
def test_the_first_step_is_the_last(table, ball, intercept):
    f = Objective(Squared(), TABLES[table](), fit_intercept=intercept)
    result = minimize(f, ball, Direct(), tol=1e-11)
    assert result.status in (Status.CONVERGED, Status.PRECISION)
    assert result.n_iter == 1
    assert result.n_passes <= 4.0  # Gram, tangent, perhaps a refinement, and the check at exit
    assert result.relative_gap <= 1e-10
    assert ball.contains(result.w)
    assert result.certificate.verify(objective=f).ok


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_rows_that_are_met_exactly_take_few_steps(p):
    # All that is left is rounding: of two points one may have the lower gap and the other the lower value.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        data = as_data(rng.standard_normal((3, 5)), rng.random(3))
        for radius in (100.0, 1000.0):
            f = Objective(Squared(), data, fit_intercept=True)
            result = minimize(f, LpBall(p, radius=radius), Direct(), max_iter=30)
            assert result.status is Status.CONVERGED
            assert result.n_iter <= 6
            assert result.n_passes <= 12.0


@pytest.mark.parametrize("radius", [1e-9, 1e9])
@pytest.mark.parametrize("p", [1.0, 1.1, 2.0])
def test_radii_far_from_one(p, radius):
    f = Objective(Squared(), as_data(X, Y), fit_intercept=True)
    result = minimize(f, LpBall(p, radius), Direct(), tol=1e-11)
    assert result.status in (Status.CONVERGED, Status.PRECISION)
    if radius > 1.0:
        w = np.linalg.lstsq(X - X.mean(axis=0), Y - Y.mean(), rcond=None)[0]
        np.testing.assert_allclose(result.w, w, rtol=1e-8)


def test_balls_that_coincide_with_an_l_p_ball():
    f = Objective(Squared(), TABLES["outputs"]())
    expected = minimize(f, LpBall(2, 0.6), Direct(), tol=1e-11).w
    for ball in (SchattenBall(2, 0.6), GroupBall(2, 2, 0.6), Weighted(LpBall(2, 1.2), 2.0)):
        np.testing.assert_allclose(minimize(f, ball, Direct(), tol=1e-11).w, expected, atol=1e-9)


@pytest.mark.parametrize("p", [1.0, 1.3, 2.0])
def test_weighted_balls(p):
    weights = np.linspace(0.5, 2.0, D)
    result = minimize(Objective(Squared(), as_data(X, Y)), Weighted(LpBall(p, 0.6), weights), Direct(), tol=1e-11)
    scaled = minimize(Objective(Squared(), as_data(X / weights, Y)), LpBall(p, 0.6), Direct(), tol=1e-11)
    np.testing.assert_allclose(result.w, scaled.w / weights, atol=1e-9)


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
@pytest.mark.parametrize("case", ["squares, intercept", "form"])
def test_a_path_costs_two_reads_a_radius(p, case):
    radii = np.geomspace(0.01, 10.0, 12)
    found = path(problem(case), LpBall(p, 1.0), radii, solver=Direct(), tol=1e-10)
    assert found.n_passes <= 3.0 * len(radii) + 2.0
    assert np.all(np.diff(found.multipliers) <= 1e-9 * found.multipliers[0])
    for radius, result in zip(radii, found.results, strict=True):
        cold = minimize(problem(case), LpBall(p, radius), Direct(), tol=1e-10)
        assert result.value == pytest.approx(cold.value, rel=1e-9)
        assert result.relative_gap <= 1e-8


ENTRIES = as_data(Entries([0, 1], [1, 0], shape=(2, 3)), [1.0, 2.0])


@pytest.mark.parametrize(
    ("solver", "f", "ball", "words"),
    [
        (Direct(), Objective(Logistic(), as_data(X, np.sign(Y))), LpBall(2, 1.0), "Logistic.*ConstrainedNewton"),
        (Direct(), Objective(Huber(1.0), as_data(X, Y)), LpBall(2, 1.0), "Huber.*CorrectivePrimalAveraging"),
        (Direct(), Objective(Squared(), ENTRIES), SchattenBall(1, 1.0), "of shape .*CorrectivePrimalAveraging"),
        (Direct(), QuadraticForm(np.diag([1.0, -1.0]), np.ones(2)), LpBall(2, 1.0), "convex.*FrankWolfe"),
    ],
)
def test_refusals(solver, f, ball, words):
    with pytest.raises((TypeError, ValueError), match=words):
        minimize(f, ball, solver)
