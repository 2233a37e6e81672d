"""A wrong gradient is found and measured, a right one is not, and runs that go nowhere name the check."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import (
    Backtracking,
    BlackBox,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    Status,
    as_data,
    check_gradient,
    minimize,
)

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((30, 5)), RNG.standard_normal(30)


def squares(w, factor=1.0, dtype=np.float64):
    r = A.astype(dtype) @ w.astype(dtype) - B.astype(dtype)
    return 0.5 * r @ r, factor * (A.astype(dtype).T @ r)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
def test_right_gradients(dtype, size):
    w = size * RNG.standard_normal(5)
    assert check_gradient(lambda w: squares(w, dtype=dtype), w).ok
    f = Objective(Logistic(), as_data(A, np.sign(B)), fit_intercept=True)
    assert check_gradient(f, w).ok


@pytest.mark.parametrize("factor", [-1.0, 0.5, 1.001, 2.0])
def test_wrong_gradients_are_measured(factor):
    found = check_gradient(lambda w: squares(w, factor), RNG.standard_normal(5))
    assert not found.ok
    assert found.found == pytest.approx(factor * found.expected, rel=1e-5)
    assert str(found).startswith("the gradient is wrong: its entry (")


def test_one_wrong_entry_is_named():
    def fun(w):
        value, gradient = squares(w)
        gradient[3] += 0.1
        return value, gradient

    found = check_gradient(fun, np.ones(5))
    assert found.index == (3,)
    assert found.found - found.expected == pytest.approx(0.1, abs=1e-6)


def test_a_run_without_progress_names_the_check():
    f = BlackBox(lambda w: squares(w, -1.0), (5,), convex=False)
    result = minimize(f, LpBall(2, radius=1.0), FrankWolfe(Backtracking()), max_iter=20)
    assert result.status is Status.STALLED
    assert "check_gradient(f, w)" in str(result.status)
    assert (
        minimize(BlackBox(squares, (5,), convex=True), LpBall(2, radius=1.0), FrankWolfe(), max_iter=3).status
        is Status.MAX_ITER
    )


def test_single_precision_is_noticed_behind_doubles():
    def single(w):
        value, gradient = squares(w, dtype=np.float32)
        return float(value), gradient.astype(np.float64)

    f = BlackBox(single, (5,), convex=True)
    m = f.evaluate(f.point(RNG.standard_normal(5))).slope
    assert f.precision == np.finfo(np.float32).eps
    assert m.gradient_error >= 16 * np.finfo(np.float32).eps * np.linalg.norm(m.gradient) * (1 - 1e-12)
    result = minimize(f, LpBall(2, radius=0.5), FrankWolfe(), tol=1e-12, max_iter=500)
    assert result.status is Status.PRECISION
