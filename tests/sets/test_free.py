"""Balls with room for some coordinates, against a general convex solver."""

import numpy as np
import pytest

from projfree import AcceleratedProjectedGradient, BiWeight, Logistic, Objective, Squared, as_data, minimize
from projfree.sets import GroupBall, LpBall, SchattenBall, WithUnpenalized
from projfree.sets.base import resized

cvxpy = pytest.importorskip("cvxpy")
TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@pytest.mark.parametrize("bound", [0.5, 100.0])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_minima(loss, bound, p):
    """Both where the bound of the free coordinates binds and where it is out of sight."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) + 0.2
    y = X @ [1.0, -2.0, 0.5, 2.0, 0.0] + rng.standard_normal(60)
    y = np.sign(y) if isinstance(loss, Logistic) else y
    ball = WithUnpenalized(LpBall(p, 0.8), [1, 3], bound)
    w = cvxpy.Variable(5)
    u = X @ w
    losses = cvxpy.square(u - y) if isinstance(loss, Squared) else cvxpy.logistic(-cvxpy.multiply(y, u))
    within = [cvxpy.pnorm(w[[0, 2, 4]], p) <= 0.8, cvxpy.abs(w[[1, 3]]) <= bound]
    least = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(losses) / 60), within).solve(solver=cvxpy.CLARABEL, **TIGHT)
    result = minimize(Objective(loss, as_data(X, y)), ball, AcceleratedProjectedGradient(), tol=1e-7)
    assert result.status.converged
    assert ball.contains(result.w)
    assert result.value == pytest.approx(least, rel=1e-6)
    assert result.bound <= least * (1 + 1e-8)
    assert result.certificate.verify(X, y).ok


def test_rows_of_matrices_and_other_radii():
    rng = np.random.default_rng(1)
    W = rng.standard_normal((4, 3)) * 5
    for inner in (SchattenBall(1, 2.0), GroupBall(2, 1, 2.0)):
        ball = WithUnpenalized(inner, [2], 100.0)
        P = ball.project(W)
        np.testing.assert_array_equal(P[2], W[2])
        np.testing.assert_allclose(P[[0, 1, 3]], inner.project(W[[0, 1, 3]]), atol=1e-12)
        assert resized(ball, 0.5).ball.radius == 0.5
        assert resized(ball, 0.5).free == (2,)


@pytest.mark.parametrize("convex", [True, False])
def test_the_multiplier_is_the_slope_of_the_least_value(convex):
    """The derivative of the minimum in the radius, to which free coordinates do not belong."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 4))
    y = X @ [1.0, -2.0, 3.0, 0.5] + 0.1 * rng.standard_normal(80)
    f = Objective(Squared() if convex else BiWeight(10.0), as_data(X, y))
    runs = [minimize(f, WithUnpenalized(LpBall(2, r), [2], 100.0), tol=1e-9) for r in (1.0 - 1e-3, 1.0, 1.0 + 1e-3)]
    slope = (runs[0].value - runs[2].value) / 2e-3
    assert runs[1].multiplier == pytest.approx(slope, rel=1e-4)


def test_sentences():
    with pytest.raises(ValueError, match=r"^`WithUnpenalized\(free=\.\.\.\)` must be places from 0, got -1\.$"):
        WithUnpenalized(LpBall(2, 1.0), [-1], 1.0)
    with pytest.raises(
        ValueError, match=r"^`WithUnpenalized\(free=\.\.\.\)` names \(3,\), which do not fit points of shape"
    ):
        WithUnpenalized(LpBall(2, 1.0), [3], 1.0).lmo(np.ones(3))
    with pytest.raises(TypeError, match=r"^`WithUnpenalized\(ball=\.\.\.\)` must be a ConstraintSet"):
        WithUnpenalized(2.0, [0], 1.0)
