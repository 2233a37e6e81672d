"""Quantile losses: their radius and their smoothing."""

import numpy as np
import pytest

from projfree import (
    ConstrainedRegressor,
    minimize,
)
from projfree.estimators import sharpening


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_quantiles_have_a_radius_in_every_unit_of_the_targets(p, quantile, unit):
    """A radius that does not go with the targets, such as 1, loses half of the loss here and more in other units."""
    rng = np.random.default_rng(0)
    X, test = rng.standard_normal((120, 8)), rng.standard_normal((2_000, 8))
    y, there = (Z[:, 0] + 2.0 * Z[:, 1] + rng.standard_normal(len(Z)) for Z in (X, test))

    def lost(radius):
        model = ConstrainedRegressor("quantile", quantile=quantile, p=p, radius=radius, tol=1e-3).fit(X, unit * y)
        r = there - model.predict(test) / unit
        return np.mean(np.maximum(quantile * r, (quantile - 1.0) * r)), model.radius_ / unit

    own, radius = lost("auto")
    assert own < 1.15 * min(lost(unit * r)[0] for r in (1.5, 2.0, 2.5, 3.0, 4.0))
    assert radius == pytest.approx(ConstrainedRegressor(p=p).fit(X, y).radius_, rel=0.5)


def test_a_quantile_fit_ends_at_the_first_smoothing_that_meets_the_tolerance(monkeypatch):
    found = []
    monkeypatch.setattr(sharpening, "minimize", lambda *a, **k: found.append(minimize(*a, **k)) or found[-1])
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    y = X[:, 0] + 0.1 * rng.standard_normal(40)
    ConstrainedRegressor("quantile", radius=10.0, time_limit=5.0).fit(X[:3], y[:3])  # met exactly: all else is rounding
    assert [result.status.name for result in found] == ["CONVERGED"]


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_radii_of_wide_tables_go_with_the_targets(p):
    """The first penalty that comes to mind leaves nothing to tell about rows left out there."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 200))
    y = X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(30)
    one, other = (ConstrainedRegressor("quantile", p=p, tol=1e-2).fit(X, unit * y).radius_ for unit in (1.0, 1e3))
    assert other == pytest.approx(1e3 * one, rel=1e-2)
