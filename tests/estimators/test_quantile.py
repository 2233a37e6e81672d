"""The smoothing of quantile losses."""

import numpy as np

from projfree import ConstrainedRegressor, minimize
from projfree.estimators import sharpening


def test_a_quantile_fit_ends_at_the_first_smoothing_that_meets_the_tolerance(monkeypatch):
    found = []
    monkeypatch.setattr(sharpening, "minimize", lambda *a, **k: found.append(minimize(*a, **k)) or found[-1])
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    y = X[:, 0] + 0.1 * rng.standard_normal(40)
    ConstrainedRegressor("quantile", radius=10.0, time_limit=5.0).fit(X[:3], y[:3])  # met exactly: all else is rounding
    assert [result.status.name for result in found] == ["CONVERGED"]
