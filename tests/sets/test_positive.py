"""Balls cut by the positive orthant, and groups of vector entries, against a general convex solver."""

import math
import warnings

import numpy as np
import pytest

from projfree import AcceleratedProjectedGradient, Huber, Logistic, Objective, Squared, as_data, minimize
from projfree.sets import GroupBall, LpBall, Positive, SchattenBall, Weighted

cvxpy = pytest.importorskip("cvxpy")
LABELS = (0, 1, 0, 2, 1, 0)
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
WEIGHTS = np.array([0.5, 1.0, 3.0, 2.0, 0.2, 1.0])


def grouped(x, p, q):
    parts = [cvxpy.norm(x[[i for i, label in enumerate(LABELS) if label == g]], p) for g in range(3)]
    return cvxpy.norm(cvxpy.hstack(parts), q)


def nearest(w, *constraints):
    x = cvxpy.Variable(w.shape)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - w)), [c(x) for c in constraints])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": it is compared all the same
        problem.solve(solver=cvxpy.CLARABEL, **TIGHT)
    return x.value


@pytest.mark.parametrize("p", [1, 1.5, 2, 4, math.inf])
@pytest.mark.parametrize("radius", [0.3, 1.5, 50.0])
def test_projection_onto_the_positive_part(p, radius):
    w = np.random.default_rng(1).standard_normal(6) * 2
    expected = nearest(w, lambda x: cvxpy.norm(x, p) <= radius, lambda x: x >= 0)
    np.testing.assert_allclose(Positive(LpBall(p, radius)).project(w), expected, atol=2e-5)


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_projection_onto_the_positive_part_of_a_weighted_ball(p):
    w = np.random.default_rng(2).standard_normal(6)
    expected = nearest(w, lambda x: cvxpy.norm(cvxpy.multiply(WEIGHTS, x), p) <= 0.6, lambda x: x >= 0)
    np.testing.assert_allclose(Positive(Weighted(LpBall(p, 0.6), WEIGHTS)).project(w), expected, atol=2e-5)


@pytest.mark.parametrize(("p", "q"), [(2, 1), (math.inf, 1), (1.5, 1), (1.5, 2), (2, 2), (1, math.inf)])
def test_projection_onto_vector_groups(p, q):
    w = np.random.default_rng(3).standard_normal(6)
    expected = nearest(w, lambda x: grouped(x, p, q) <= 0.9)
    np.testing.assert_allclose(GroupBall(p, q, 0.9, LABELS).project(w), expected, atol=2e-5)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5), Logistic()], ids=repr)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_minima_over_the_positive_part(loss, p):
    """Value and proven bound lie on either side of the referee's minimum."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 6))
    y = X @ np.array([1.0, -1.0, 0.5, 0.0, 2.0, -0.3]) + rng.standard_normal(40)
    y = np.sign(y) if isinstance(loss, Logistic) else y
    ball = Positive(LpBall(p, 1.2))
    x = cvxpy.Variable(6)
    losses = {
        Squared: lambda u: cvxpy.square(u - y),
        Huber: lambda u: cvxpy.huber(u - y, 0.5),
        Logistic: lambda u: cvxpy.logistic(-cvxpy.multiply(y, u)),
    }[type(loss)](X @ x)
    minimum = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(losses) / 40), [cvxpy.norm(x, p) <= 1.2, x >= 0]).solve(
        solver=cvxpy.CLARABEL
    )
    f = Objective(loss, as_data(X, y))
    for solver in (None, AcceleratedProjectedGradient()):
        result = minimize(f, ball, solver, tol=1e-8, max_iter=20_000)
        assert ball.contains(result.w)
        assert result.bound <= minimum * (1 + 1e-6)
        assert result.value == pytest.approx(minimum, rel=1e-5)
        assert result.certificate.verify(X, y).ok


def test_sentences():
    with pytest.raises(TypeError, match=r"^`Positive\(ball=\.\.\.\)` must be an LpBall or a GroupBall"):
        Positive(SchattenBall(1, 1.0))
    with pytest.raises(ValueError, match=r"^`GroupBall\(groups=\.\.\.\)` has 2 labels, which do not fit points"):
        GroupBall(2, 1, 1.0, [0, 1]).lmo(np.ones(3))
    with pytest.raises(ValueError, match=r"^`GroupBall\(groups=\.\.\.\)` must be a whole number for each entry"):
        GroupBall(2, 1, 1.0, ["a", "b"])
    with pytest.raises(ValueError, match=r"split the largest group\.$"):
        GroupBall(2, 1, 1.0, np.concatenate([np.zeros(20_000, int), np.arange(20_000)]))
