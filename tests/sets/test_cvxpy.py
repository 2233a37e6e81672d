"""Projections against a general convex solver, on small sizes."""

import math
import warnings

import numpy as np
import pytest

from projfree.sets import Box, GroupBall, LpBall, Positive, SchattenBall, Simplex, Weighted

cvxpy = pytest.importorskip("cvxpy")
INF, WEIGHTS, UPPER, LABELS = (
    math.inf,
    np.array([0.5, 1.0, 3.0, 2.0, 0.2, 1.0]),
    np.linspace(0, 1, 6),
    (0, 1, 0, 2, 1, 0),
)
LP = [1, 1.1, 1.5, 2, 3, INF]
PAIRS = [(2, 1), (INF, 1), (1, INF), (1.5, 1), (2, 1.5), (1.5, 2), (1, 3), (INF, 2), (3, 1.5), (1, 1)]


def mixed(parts, p, q):
    """The norm of the vector of norms."""
    return cvxpy.norm(cvxpy.hstack([cvxpy.norm(part, p) for part in parts]), q)


def labelled(x):
    return [x[[i for i, label in enumerate(LABELS) if label == group]] for group in range(3)]


VECTORS = [
    *((LpBall(p, r), lambda x, p=p, r=r: [cvxpy.norm(x, p) <= r]) for p in LP for r in (0.3, 1.5)),
    *((Positive(LpBall(p, r)), lambda x, p=p, r=r: [cvxpy.norm(x, p) <= r, x >= 0]) for p in LP for r in (0.3, 10.0)),
    *(
        (Weighted(LpBall(p, 0.7), WEIGHTS), lambda x, p=p: [cvxpy.norm(cvxpy.multiply(WEIGHTS, x), p) <= 0.7])
        for p in LP
    ),
    *(
        (
            Positive(Weighted(LpBall(p, 0.6), WEIGHTS)),
            lambda x, p=p: [cvxpy.norm(cvxpy.multiply(WEIGHTS, x), p) <= 0.6, x >= 0],
        )
        for p in (1, 1.5, 2)
    ),
    *((GroupBall(p, q, 0.9, LABELS), lambda x, p=p, q=q: [mixed(labelled(x), p, q) <= 0.9]) for p, q in PAIRS),
    (Simplex(1.5), lambda x: [x >= 0, cvxpy.sum(x) == 1.5]),
    (Box(-0.5, UPPER), lambda x: [x >= -0.5, x <= UPPER]),
]
MATRICES = [
    *((GroupBall(p, q, 0.9), lambda x, p=p, q=q: [mixed([x[i, :] for i in range(4)], p, q) <= 0.9]) for p, q in PAIRS),
    *(
        (SchattenBall(p, 0.9), lambda x, norm=norm: [cvxpy.norm(x, norm) <= 0.9])
        for p, norm in ((1, "nuc"), (2, "fro"), (INF, 2))
    ),
]


@pytest.mark.parametrize(
    ("C", "constraints"), VECTORS + MATRICES, ids=lambda each: "" if callable(each) else repr(each)
)
def test_the_nearest_point(C, constraints):
    w = 2.0 * np.random.default_rng(3).standard_normal(6 if (C, constraints) in VECTORS else (4, 3))
    w[2] = 0.0
    x = cvxpy.Variable(w.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": it is compared all the same
        cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - w)), constraints(x)).solve(
            solver=cvxpy.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
    found, expected = C.project(w), x.value
    assert C.contains(found)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    # Both are nearly feasible; ours must not be further away than the referee's point, pulled into the set.
    if hasattr(C, "norm"):
        expected = expected * min(1.0, C.radius / C.norm(expected))
        assert np.linalg.norm(found - w) <= np.linalg.norm(expected - w) * (1 + 1e-12)


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
