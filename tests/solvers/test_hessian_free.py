"""Newton from products: the answers of Newton's method, in few reads, never uphill and never without proof."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from solvers.catalogue import BENT, CONVEX, X, Y, problem

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    BlackBox,
    Box,
    Checkpoint,
    ConstrainedNewton,
    HessianFreeNewton,
    Huber,
    Logistic,
    LpBall,
    Objective,
    SchattenBall,
    Squared,
    as_data,
    minimize,
    path,
)
from projfree.solvers.hessian_free import sphere_step

SMOOTH = tuple(name for name in CONVEX if name not in ("calls", "perturbed"))
BALLS = [LpBall(p, r) for p in (1.1, 1.5, 2.0, 3.0) for r in (1e-3, 0.3, 3.0, 50.0)]


def wide(n=150, d=400, k=1, seed=0):
    """A sparse table with more columns than rows, and predictions of a linear model with noise."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, d), density=0.05, rng=rng, data_sampler=rng.standard_normal).tocsr()
    return A, A @ rng.standard_normal((d, k)) + 0.5 * rng.standard_normal((n, k))


@pytest.mark.parametrize("case", SMOOTH)
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_the_answers_of_newton(case, ball):
    f = problem(case)
    found = minimize(f, ball, HessianFreeNewton(), tol=1e-8, max_iter=200)
    other = minimize(f, ball, ConstrainedNewton(), tol=1e-9, max_iter=40)
    assert found.status.converged or found.status.name == "PRECISION", found
    assert found.bound <= other.value + 1e-14 * abs(other.value)
    assert other.bound <= found.value + 1e-14 * abs(other.value)
    assert (np.diff(found.trace["value"]) <= 8e-16 * abs(found.value)).all()


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    p=st.sampled_from([1.3, 1.5, 2.0, 2.5]),
    radius=st.floats(1e-3, 30.0),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
    intercept=st.booleans(),
)
def test_random_problems_are_solved_and_proved(seed, p, radius, scale, intercept):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 5)) * 10.0 ** rng.uniform(-1.0, 1.0, 5)
    y = np.where(A @ rng.standard_normal(5) + rng.standard_normal(30) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    f, ball = Objective(Logistic(), as_data(scale * A, y), intercept), LpBall(p, radius / scale)
    found = minimize(f, ball, HessianFreeNewton(), tol=1e-6, max_iter=300)
    other = minimize(f, ball, ConstrainedNewton(), tol=1e-7, max_iter=40)
    assert found.bound <= other.value * (1.0 + 1e-14)
    assert other.bound <= found.value * (1.0 + 1e-14)
    assert found.status.converged
    assert found.certificate.verify(objective=f).ok


@pytest.mark.parametrize("case", BENT)
@pytest.mark.parametrize("ball", [LpBall(1.5, 1.0), LpBall(2.0, 0.3)], ids=repr)
def test_values_fall_where_the_loss_is_not_convex(case, ball):
    result = minimize(problem(case), ball, HessianFreeNewton(), tol=1e-6, max_iter=500)
    assert (np.diff(result.trace["value"]) <= 1e-15).all()
    assert result.relative_gap <= 1e-6


@pytest.mark.parametrize("p", [1.5, 2.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_few_reads_on_wide_tables(p, intercept):
    A, u = wide()
    f = Objective(Logistic(), as_data(A, np.sign(u[:, 0])), intercept)
    ball = LpBall(p, 5.0)
    found = minimize(f, ball, HessianFreeNewton(), tol=1e-7)
    other = minimize(f, ball, AcceleratedProjectedGradient(BacktrackingGradient()), tol=1e-7)
    assert found.status.converged
    assert other.status.converged
    assert found.n_passes <= (0.9 if intercept else 0.6) * other.n_passes
    assert found.value == pytest.approx(other.value, rel=2e-7)


@pytest.mark.parametrize("intercept", [False, True])
def test_scikit_learn_agrees(intercept):
    A, u = wide()
    y = np.sign(u[:, 0])
    found = minimize(Objective(Logistic(), as_data(A, y), intercept), LpBall(2, 4.0), HessianFreeNewton(), tol=1e-12)
    C = 4.0 / (len(y) * found.multiplier)
    model = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-10, max_iter=10_000).fit(A, y)
    np.testing.assert_allclose(found.w, model.coef_[0], atol=1e-5 * np.abs(found.w).max())


def test_a_path_begins_where_the_last_radius_ended():
    A, u = wide()
    f, radii = Objective(Logistic(), as_data(A, np.sign(u[:, 0])), True), np.geomspace(2.0, 6.0, 6)
    found = path(f, LpBall(2, 1.0), radii, solver=HessianFreeNewton(), tol=1e-7)
    alone = [minimize(f, LpBall(2, r), HessianFreeNewton(), tol=1e-7) for r in radii]
    np.testing.assert_allclose(found.values, [each.value for each in alone], rtol=2e-7)
    assert all(each.status.converged for each in found.results)
    assert found.n_passes < 0.8 * sum(each.n_passes for each in alone)


@pytest.mark.parametrize("p", [1.5, 2.0])
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path, p):
    A, u = wide()

    def run(folder, end, **settings):
        f = Objective(Logistic(), as_data(A, np.sign(u[:, 0])), True)
        callbacks = [Checkpoint(folder, 2)]
        return minimize(f, LpBall(p, 5.0), HessianFreeNewton(), tol=0.0, max_iter=end, callbacks=callbacks, **settings)

    whole = run(tmp_path / "a", 5)
    run(tmp_path / "b", 3)
    resumed = run(tmp_path / "b", 5, state=tmp_path / "b")
    np.testing.assert_array_equal(whole.w, resumed.w)
    assert (whole.value, whole.bound, whole.n_passes) == (resumed.value, resumed.bound, resumed.n_passes)


def test_a_deadline_ends_a_step_early():
    A, u = wide(600, 2000)
    f = Objective(Logistic(), as_data(A, np.sign(u[:, 0])))
    result = minimize(f, LpBall(2, 1e4), HessianFreeNewton(), tol=0.0, time_limit=1e-3)
    assert result.status.name == "TIME_LIMIT"
    assert result.n_passes <= 12.0
    assert result.certificate.verify(objective=f).ok


@pytest.mark.parametrize(
    ("f", "ball", "words"),
    [
        (
            BlackBox(lambda w: (w @ w, 2 * w), 4, smoothness=2.0, name="bowl", convex=True),
            LpBall(2, 1.0),
            "BlackBox.*FrankWolfe",
        ),
        (Objective(Squared(), as_data(X, Y)), LpBall(1, 1.0), "1 < p < inf.*Accelerated"),
        (Objective(Squared(), as_data(X, Y)), LpBall(np.inf, 1.0), "1 < p < inf.*Accelerated"),
        (Objective(Squared(), as_data(X, Y)), Box(-1.0, 1.0), "1 < p < inf.*Accelerated"),
        (Objective(Squared(), as_data(X, np.stack([Y, Y], axis=1))), SchattenBall(1.5, 1.0), "1 < p < inf"),
    ],
)
def test_refusals(f, ball, words):
    with pytest.raises((TypeError, ValueError), match=words):
        minimize(f, ball, HessianFreeNewton())


@pytest.mark.parametrize(("seed", "radius"), [(5, 3.0), (9, 3.0), (10, 0.3), (11, 0.3), (18, 0.03), (29, 0.3)])
def test_jumps_of_the_curvature_do_not_hold_it_up(seed, radius):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 30)) * 10.0 ** rng.integers(-2, 3, 30) * (rng.random((40, 30)) < 0.4)
    data = as_data(x, rng.standard_normal(40), sample_weight=rng.random(40) + 0.01)
    result = minimize(Objective(Huber(0.5), data), LpBall(1.5, radius), HessianFreeNewton(), tol=1e-5, max_iter=100)
    assert result.status.converged


def test_a_step_on_the_sphere_without_slope_or_curvature_stays_a_point_of_it():
    x = np.array([1.0, 0.0])
    found = sphere_step(lambda d: 0.0 * d, -1e-320 * x, x, 3.0, np.zeros(2))
    assert np.allclose(np.abs(found), x)
