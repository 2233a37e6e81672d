"""The choice of a radius takes its time from the limit of the fit."""

from contextlib import nullcontext

import numpy as np
import pytest

from projfree import ConstrainedRegressor
from projfree.deadline import Expired
from projfree.estimators import around, auto

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 12))
Y = X[:, 0] - X[:, 1] + RNG.standard_normal(80)


@pytest.fixture
def tries(monkeypatch):
    """The radii that are tried."""
    radii, fitted = [], around._fitted

    def counted(f, ball, *rest):
        radii.append(ball.radius)
        return fitted(f, ball, *rest)

    monkeypatch.setattr(around, "_fitted", counted)
    return radii


def test_no_radius_is_tried_after_the_deadline(tries, monkeypatch):
    ConstrainedRegressor(p=1.5).fit(X, Y)
    assert len(tries) > 1
    tries.clear()
    monkeypatch.setattr(around, "expired", lambda: True)
    model = ConstrainedRegressor(p=1.5).fit(X, Y)
    assert len(tries) == 1
    assert 0.5 < model.radius_ < 3.0  # close to the norm of the ridge regression that the trials begin with


def test_half_of_the_limit_is_for_the_choice(monkeypatch):
    given = []
    monkeypatch.setattr(auto, "deadline", lambda seconds: given.append(seconds) or nullcontext())
    ConstrainedRegressor(p=1.5, time_limit=60.0).fit(X, Y)
    assert given == [30.0]


def test_a_choice_that_has_not_begun_is_said_to_be_none(monkeypatch, caplog):
    def expires(*_):
        raise Expired

    monkeypatch.setattr(auto, "choose_radius", expires)
    assert ConstrainedRegressor(p=1.5, time_limit=60.0).fit(X, Y).radius_ == 1.0
    assert "found no radius in half of `time_limit`, and takes 1; raise it, or give a radius" in caplog.text
