"""Projections against a general convex solver, on small sizes."""

import math

import numpy as np
import pytest

from projfree.sets import Box, GroupBall, LpBall, SchattenBall, Simplex, Weighted

cvxpy = pytest.importorskip("cvxpy")
WEIGHTS = np.array([0.5, 1.0, 3.0, 2.0, 0.2])


def referee(w, constraints):
    """The nearest point to ``w``, to the solver's 1e-7 or so."""
    x = cvxpy.Variable(w.shape)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - w)), constraints(x))
    problem.solve(solver=cvxpy.CLARABEL)
    return x.value


def mixed(x, p, q):
    """The norm of the vector of row norms."""
    return cvxpy.norm(cvxpy.hstack([cvxpy.norm(x[i, :], p) for i in range(x.shape[0])]), q)


def agree(C, w, constraints):
    found, expected = C.project(w), referee(w, constraints)
    assert C.contains(found)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    # Both are nearly feasible; ours must not be further away than the referee's point, pulled into the set.
    if hasattr(C, "norm"):
        expected = expected * min(1.0, C.radius / C.norm(expected))
        assert np.linalg.norm(found - w) <= np.linalg.norm(expected - w) * (1 + 1e-12)


@pytest.mark.parametrize("p", [1, 1.1, 1.5, 2, 3, math.inf])
@pytest.mark.parametrize("share", [0.05, 0.6])
def test_lp(p, share):
    w = np.random.default_rng(3).standard_normal(6) * 2
    C = LpBall(p, share * LpBall(p, 1).norm(w))
    agree(C, w, lambda x: [cvxpy.norm(x, p) <= C.radius])


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, math.inf])
def test_weighted(p):
    w = np.random.default_rng(4).standard_normal(5)
    C = Weighted(LpBall(p, 0.7), WEIGHTS)
    agree(C, w, lambda x: [cvxpy.norm(cvxpy.multiply(WEIGHTS, x), p) <= C.radius])


GROUPS = [(2, 1), (math.inf, 1), (1, math.inf), (1.5, 1), (2, 1.5), (1.5, 2), (1, 3), (math.inf, 2), (3, 1.5), (1, 1)]


@pytest.mark.parametrize(("p", "q"), GROUPS)
def test_group(p, q):
    w = np.random.default_rng(5).standard_normal((4, 3))
    w[2] = 0.0
    C = GroupBall(p, q, 0.5 * GroupBall(p, q, 1).norm(w))
    agree(C, w, lambda x: [mixed(x, p, q) <= C.radius])


@pytest.mark.parametrize(("p", "norm"), [(1, "nuc"), (2, "fro"), (math.inf, 2)])
def test_schatten(p, norm):
    w = np.random.default_rng(6).standard_normal((4, 3))
    C = SchattenBall(p, 0.5 * SchattenBall(p, 1).norm(w))
    agree(C, w, lambda x: [cvxpy.norm(x, norm) <= C.radius])


@pytest.mark.parametrize("p", [1.001, 1.1, 1.5, 3, 500])
def test_schatten_follows_the_singular_values(p):
    """A diagonal matrix projects like its diagonal, and turning a matrix turns its projection (von Neumann)."""
    rng = np.random.default_rng(7)
    diagonal = rng.standard_normal(4) * 3
    C, line = SchattenBall(p, 1.3), LpBall(p, 1.3)
    expected = np.diag(line.project(diagonal))
    np.testing.assert_allclose(C.project(np.diag(diagonal)), expected, atol=1e-14)
    u, v = (np.linalg.qr(rng.standard_normal((k, 4)))[0] for k in (6, 5))
    np.testing.assert_allclose(C.project(u @ np.diag(diagonal) @ v.T), u @ expected @ v.T, atol=1e-13)


def test_simplex_and_box():
    w = np.random.default_rng(8).standard_normal(6)
    agree(Simplex(1.5), w, lambda x: [x >= 0, cvxpy.sum(x) == 1.5])
    agree(Box(-0.5, np.linspace(0, 1, 6)), w, lambda x: [x >= -0.5, x <= np.linspace(0, 1, 6)])
