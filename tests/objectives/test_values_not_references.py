"""Points are values and runs are apart: nobody else's points, callbacks or kernels change what an objective says."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    CorrectivePrimalAveraging,
    FrankWolfe,
    Huber,
    Logistic,
    LpBall,
    Objective,
    OpenLoop,
    PrimalAveraging,
    Squared,
    as_data,
    minimize,
)

BALL = LpBall(1.5, radius=1.0)


def tables(seed=0, n=150, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


def test_what_a_function_says_cannot_be_changed():
    X, y = tables()
    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    b = np.array(0.3)
    x = f.point(np.full(4, 0.1), b)
    b[...] = 9.0
    assert x.intercept == 0.3
    found = f.evaluate(x)
    for array in (found.slope.gradient, found.intercept):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    other = dataclasses.replace(x, w=0.0 * x.w)
    assert f(other) == pytest.approx(f(f.point(np.zeros(4))))


def test_threads_may_share_an_objective():
    X, y = tables()
    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    points = [f.point(np.full(4, 0.01 * k)) for k in range(8)]
    due = [f.open()(x) for x in points]

    def look(k):
        return [f(points[(k + j) % 8]) == due[(k + j) % 8] for j in range(200)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            assert all(all(found) for found in pool.map(look, range(6)))
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize(("loss", "offset"), [(Squared(), 1e15), (Huber(1.0), 1e15)], ids=repr)
def test_what_rounding_hides_has_not_converged(loss, offset):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    y = X @ rng.standard_normal(6) + offset
    result = minimize(Objective(loss, as_data(X, y), fit_intercept=True), LpBall(2, radius=1.0))
    assert not result.status.converged
    assert result.relative_gap == pytest.approx(result.gap / result.value, rel=1e-6)


def test_constant_targets_are_no_matter_of_rounding():
    X = np.random.default_rng(0).standard_normal((50, 5))
    for solver in ("auto", PrimalAveraging(), CorrectivePrimalAveraging()):
        f = Objective(Squared(), as_data(X, np.full(50, 0.1)), fit_intercept=True)
        assert minimize(f, BALL, solver).status.converged


def test_points_cannot_be_changed():
    X, y = tables()
    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    w = np.full(4, 0.1)
    x = f.point(w)
    w[:] = 7.0  # the point has a copy
    assert x.w.tolist() == [0.1] * 4
    with pytest.raises(ValueError, match="read-only"):
        x.w[0] = 1.0
    for name in ("w", "intercept", "of", "handle"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(x, name, None)
    found = f.evaluate(x)
    assert x.intercept is None
    assert found.intercept is not None
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.value = 0.0
    z = 0.5 * found.point + 0.5 * f.point(np.ones(4))
    with pytest.raises(ValueError, match="read-only"):
        z.w[0] = 1.0


def test_a_point_of_another_shape_is_refused():
    X, y = tables()
    f, g = Objective(Logistic(), as_data(X, y)), Objective(Logistic(), as_data(X[:, :2], y))
    with pytest.raises(ValueError, match="shape"):
        g.evaluate(f.point(np.ones(4)))


@pytest.mark.parametrize("solver", [PrimalAveraging(), FrankWolfe(), CorrectivePrimalAveraging()], ids=repr)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_callback_that_reads_the_data_changes_nothing(solver, kind):
    X, y = tables()
    f = Objective(Logistic(), as_data(kind(X), y), fit_intercept=True)

    def look(run):
        run.f.evaluate(run.f.point(np.ones(4)))
        run.f(run.state.x)

    plain = minimize(f, BALL, solver, tol=1e-6, max_iter=60)
    looked = minimize(f, BALL, solver, tol=1e-6, max_iter=60, callbacks=[look])
    assert (looked.n_iter, looked.n_passes) == (plain.n_iter, plain.n_passes)
    np.testing.assert_array_equal(looked.w, plain.w)
    np.testing.assert_array_equal(looked.trace["passes"], plain.trace["passes"])


@pytest.mark.parametrize("solver", [PrimalAveraging(), FrankWolfe(OpenLoop()), CorrectivePrimalAveraging()], ids=repr)
def test_results_hold_nothing_of_the_size_of_the_rows(solver):
    X, y = tables(n=20_000, d=2)
    for table in (X, sp.csr_array(X)):
        result = minimize(Objective(Logistic(), as_data(table, y), fit_intercept=True), BALL, solver, max_iter=20)
        text = pickle.dumps(result)
        assert len(text) < 20_000
        again = pickle.loads(text)
        np.testing.assert_array_equal(again.w, result.w)
        assert copy.deepcopy(result).value == result.value


def test_no_bound_is_below_what_the_loss_can_be():
    """Where predictions reproduce the targets, the tangent there is rounding, and the loss itself proves more."""
    X = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    y = np.repeat([1.0, 2.0, 1.0, 2.0], 4)
    result = minimize(Objective(Huber(1e-3), as_data(X, y), fit_intercept=True), LpBall(1.5, radius=2.0))
    assert result.bound >= 0.0
    assert result.status.converged
    assert result.certificate.verify(X, y).ok
    f = Objective(Squared(), as_data(X, y), fit_intercept=True)
    assert minimize(f, LpBall(2, radius=50.0), PrimalAveraging(), tol=0.0, max_iter=3).bound >= 0.0
