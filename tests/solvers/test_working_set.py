"""`WorkingSet`: the minimum among few features, proved for all."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from solvers.few_features import ACCELERATED, BALLS, COSTS, DENSE, LOSSES, WEIGHT, D, N, Y, objective

from projfree import (
    AcceleratedProjectedGradient,
    Checkpoint,
    FrankWolfe,
    GroupBall,
    Huber,
    LpBall,
    Objective,
    Positive,
    Simplex,
    Squared,
    Weighted,
    WorkingSet,
    as_data,
    minimize,
)
from projfree.testing import SealedData

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("smallest", [4, 100])
def test_it_certifies_what_other_methods_find(ball, loss, intercept, smallest):
    f = objective(loss, sp.csr_array(DENSE), intercept=intercept, weight=WEIGHT)
    result = minimize(f, BALLS[ball], WorkingSet(smallest), tol=1e-9, max_iter=60)
    other = minimize(f, BALLS[ball], ACCELERATED, tol=1e-6, max_iter=3000)
    assert result.status.converged, result
    assert BALLS[ball].contains(result.w)
    assert result.bound <= other.value
    assert other.bound <= result.value
    assert result.certificate.verify(sp.csr_array(DENSE), LOSSES[loss][1], WEIGHT).ok


@pytest.mark.parametrize("ball", BALLS)
def test_a_referee_finds_the_same_minimum(ball):
    f, w = objective("squared"), cp.Variable(D)
    norms = {
        "l_1": [cp.norm1(w) <= 3.0],
        "weighted": [cp.norm1(cp.multiply(COSTS, w)) <= 3.0],
        "positive": [w >= 0, cp.sum(w) <= 3.0],
        "simplex": [w >= 0, cp.sum(w) == 4.0],
    }
    if isinstance(BALLS[ball], GroupBall):
        sizes = [cp.pnorm(w[5 * g : 5 * g + 5], BALLS[ball].p) for g in range(D // 5)]
        norms[ball] = [sum(sizes) <= BALLS[ball].radius]
    least = cp.Problem(cp.Minimize(cp.sum_squares(DENSE @ w - Y) / N), norms[ball]).solve(solver=cp.CLARABEL)
    result = minimize(f, BALLS[ball], WorkingSet(), tol=1e-10)
    assert result.value == pytest.approx(least, rel=1e-6)
    assert result.bound <= least * (1.0 + 1e-7)


@pytest.mark.parametrize("storage", ["dense", "fortran", "csr", "csc", "float32", "sealed", "standardized"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_storage_gives_the_same(storage, loss):
    kind, y = LOSSES[loss]
    tables = {
        "fortran": lambda: as_data(np.asfortranarray(DENSE), y),
        "csr": lambda: as_data(sp.csr_array(DENSE), y),
        "csc": lambda: as_data(sp.csc_array(DENSE), y),
        "float32": lambda: as_data(sp.csr_array(DENSE.astype(np.float32)), y),
        "sealed": lambda: SealedData(DENSE, y),
        "standardized": lambda: as_data(sp.csr_array(DENSE), y, centre=True, scale=True),
        "dense": lambda: as_data(DENSE, y),
    }
    f = Objective(kind, tables[storage](), fit_intercept=True)
    result = minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-8)
    assert result.status.converged
    if storage == "standardized":
        scaled = (DENSE - DENSE.mean(axis=0)) / np.where(DENSE.std(axis=0) > 0, DENSE.std(axis=0), 1.0)
        plain = Objective(kind, as_data(scaled, y), fit_intercept=True)
    else:
        plain = objective(loss, intercept=True)
    expected = minimize(plain, LpBall(1, 3.0), WorkingSet(), tol=1e-8)
    rel = 1e-5 if storage == "float32" else 1e-7
    assert result.value == pytest.approx(expected.value, rel=rel)


def test_few_reads_where_few_features_count():
    f = objective("squared", sp.csr_array(DENSE))
    assert minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-8).n_passes <= 12


@pytest.mark.parametrize("start", ["dense", "vertex", "far"])
def test_any_start_will_do(start):
    f = objective("squared")
    starts = {"dense": np.full(D, 3.0 / D), "vertex": 3.0 * np.eye(D)[7], "far": -3.0 * np.eye(D)[0]}
    result = minimize(f, LpBall(1, 3.0), WorkingSet(10), start=starts[start], tol=1e-9)
    assert result.value == pytest.approx(minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-9).value, rel=1e-8)


def test_a_start_without_zeros_gives_way_to_a_vertex():
    X = sp.random_array((20, 5_000), density=0.01, random_state=1, format="csr")
    f = Objective(Squared(), as_data(X, np.arange(20.0)))
    result = minimize(f, Simplex(2.0), WorkingSet(), tol=1e-6)
    assert result.status.converged
    assert np.count_nonzero(result.w) < 100


@pytest.mark.parametrize("loss", LOSSES)
def test_a_checkpoint_goes_on_bit_for_bit(loss, tmp_path):
    f, ball, settings = objective(loss, intercept=True), LpBall(1, 3.0), {"tol": 0.0}
    whole = minimize(f, ball, WorkingSet(4), max_iter=6, callbacks=[Checkpoint(tmp_path / "a", 2)], **settings)
    minimize(f, ball, WorkingSet(4), max_iter=4, callbacks=[Checkpoint(tmp_path / "b", 2)], **settings)
    rest = minimize(f, ball, state=tmp_path / "b", max_iter=6, callbacks=[Checkpoint(tmp_path / "b", 2)], **settings)
    np.testing.assert_array_equal(whole.w, rest.w)


def test_interpolated_data_end_without_an_error():
    X = RNG.standard_normal((10, 60))
    y = X[:, 0] * 2.0
    result = minimize(Objective(Squared(), as_data(X, y)), LpBall(1, 50.0), WorkingSet(), tol=1e-6)
    assert result.value <= 1e-8
    assert result.bound <= result.value


def test_what_it_cannot_do_is_said():
    with pytest.raises(ValueError, match=r"few features.*LpBall\(1.*CorrectivePrimalAveraging"):
        minimize(objective("squared"), LpBall(2, 1.0), WorkingSet())
    with pytest.raises(ValueError, match="smallest"):
        WorkingSet(smallest=0)


def test_frank_wolfe_is_where_it_leaves_off():
    f = objective("squared")
    slow = minimize(f, LpBall(1, 3.0), FrankWolfe(), tol=1e-9, max_iter=200)
    quick = minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-9, max_iter=200)
    assert quick.value <= slow.value
    assert slow.bound <= quick.value


@pytest.mark.parametrize("ball", [LpBall(1, 0.54), Positive(LpBall(1, 0.54)), Simplex(0.54)], ids=repr)
def test_a_model_without_curvature_is_no_end(ball):
    x = np.random.default_rng(5).standard_normal((20, 30)) * 10.0 ** np.arange(-1, 2).repeat(10)
    f = Objective(Huber(1e-3), as_data(x, 100.0 + np.arange(20.0)))  # all rows are on the straight part
    result = minimize(f, ball, WorkingSet(3), tol=1e-7, max_iter=300)
    other = minimize(f, ball, AcceleratedProjectedGradient(), tol=1e-7)
    assert result.status.converged
    assert result.value <= other.value * (1.0 + 1e-6)


def test_a_minimum_of_zero_among_many_features_is_certified():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3_000))
    f = Objective(Squared(), as_data(X, X[:, :100] @ rng.standard_normal(100)))
    result = minimize(f, LpBall(1, 1e3), WorkingSet(), tol=1e-4)
    assert result.status.converged, result


@pytest.mark.parametrize("seed", [0, 2, 3, 7])
def test_values_fall_while_costs_of_every_size_hide_the_gap(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 30)), int(rng.integers(2, 40))
    X, y, costs = rng.standard_normal((n, d)), rng.standard_normal(n), 10.0 ** rng.uniform(-8, 8, d)
    radius = float(np.abs(costs * np.linalg.lstsq(X, y, rcond=None)[0]).sum() * 10.0 ** rng.uniform(-4, 0.3))
    f, ball = Objective(Squared(), as_data(X, y)), Weighted(LpBall(1, radius), costs)
    result = minimize(f, ball, WorkingSet(), tol=1e-6)
    other = minimize(f, ball, AcceleratedProjectedGradient(), tol=1e-6, max_iter=300)
    assert result.value <= other.value * (1.0 + 1e-9)
    assert result.bound <= other.value
