"""One time limit for a fit and for those before it that find the scale of its loss."""

import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from projfree import ConstrainedRegressor, PrimalAveraging, Status

RNG = np.random.default_rng(3)
X = RNG.standard_normal((80, 4))
Y = X @ np.array([1.0, -2.0, 0.5, 0.0]) + RNG.standard_t(3, len(X))


@pytest.mark.parametrize("radius", [1.5, None])
@pytest.mark.parametrize("loss", ["squared", "huber", "biweight", "quantile"])
def test_fits_keep_to_the_limit(loss, radius):
    """Without one they would take all iterations, several times for losses with a scale."""
    slow = {"solver": PrimalAveraging(), "tol": 1e-15, "max_iter": 10**7, "time_limit": 0.3}
    model = ConstrainedRegressor(loss, p=1.5, radius=radius, **slow)
    begun = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="time_limit|rounding|gap"):
        model.fit(X, Y)
    assert time.monotonic() - begun < 5.0
    assert not model.result_.status.converged
    assert model.verify(X, Y).ok


@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_a_fit_without_time_still_predicts(loss):
    with pytest.warns(ConvergenceWarning, match="`time_limit`"):
        model = ConstrainedRegressor(loss, p=1.5, radius=1.5, time_limit=1e-9).fit(X, Y)
    assert model.result_.status is Status.TIME_LIMIT
    assert np.isfinite(model.predict(X)).all()
    assert model.verify(X, Y).ok
