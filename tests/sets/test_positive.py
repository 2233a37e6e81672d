"""Balls cut by the positive orthant against a general convex solver."""

import numpy as np
import pytest

from projfree import AcceleratedProjectedGradient, Huber, Logistic, Objective, Squared, as_data, minimize
from projfree.sets import GroupBall, LpBall, Positive, SchattenBall

cvxpy = pytest.importorskip("cvxpy")


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
