"""How much the rounding allowance takes from a bound on real data: the figure that the documentation quotes."""

import pytest

from projfree import AcceleratedProjectedGradient, LpBall, Objective, Squared, Status, as_data, minimize
from projfree.datasets import load_year_sample


def test_the_allowance_on_the_year_sample():
    data, ball = load_year_sample(), LpBall(2, radius=4.0)
    f = Objective(Squared(), as_data(data.X, data.y), fit_intercept=True)
    result = minimize(f, ball, AcceleratedProjectedGradient(), tol=0.0, max_iter=2000)
    assert result.status is Status.PRECISION
    allowance = f.evaluate(f.point(result.w)).slope.minimum(ball)[1]
    assert allowance / result.value == pytest.approx(1.3e-11, rel=0.1)
    assert result.gap <= 2.0 * allowance
