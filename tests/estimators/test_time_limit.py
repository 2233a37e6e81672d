"""One time limit for a fit and for those before it that find the scale of its loss.

A clock of their own moves by ten seconds whenever such a fit ends, and by a millionth whenever it is read.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import projfree.deadline
from projfree import ConstrainedRegressor, Loss, Status
from projfree.estimators import robust, sharpening

RNG = np.random.default_rng(3)
X = RNG.standard_normal((80, 4))
Y = X @ np.array([1.0, -2.0, 0.5, 0.0]) + RNG.standard_t(3, len(X))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1e-6
        return self.now


@pytest.fixture
def before(monkeypatch) -> tuple[list[float | None], list[Loss]]:
    """The time limits and the losses of the fits before the last."""
    clock, limits, losses = Clock(), [], []
    monkeypatch.setattr(projfree.deadline, "time", clock)
    for module in (robust, sharpening):

        def counted(f, *arguments, own=module.minimize, **settings):
            result = own(f, *arguments, **settings)
            clock.now += 10.0
            limits.append(settings["time_limit"])
            losses.append(f.loss)
            return result

        monkeypatch.setattr(module, "minimize", counted)
    return limits, losses


def model(loss, **settings):
    return ConstrainedRegressor(loss=loss, p=1.5, radius=1.5, **settings)


def test_fits_of_quantiles_share_the_limit(before):
    limits, losses = before
    free = model("quantile").fit(X, Y)
    assert free.result_.status.converged
    assert len(limits) > 4
    assert set(limits) == {None}
    limits.clear()
    with pytest.warns(ConvergenceWarning, match=r"raise `time_limit`, or loosen `tol`\.$"):
        short = model("quantile", time_limit=25.0).fit(X, Y)
    assert limits == pytest.approx([25.0, 15.0, 5.0, projfree.deadline.LEAST_LEFT], abs=0.1)
    assert short.result_.status is Status.TIME_LIMIT
    assert short.loss_ == losses[-1]  # the last one that there was time for
    assert short.verify(X, Y).ok
    assert short.result_.bound <= free.result_.value
    assert short.result_.relative_gap < 0.01


@pytest.mark.parametrize("loss", ["huber", "biweight"])
def test_fits_of_robust_losses_share_the_limit(before, loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short = model(loss, time_limit=5.0).fit(X, Y)
    assert before[0] == pytest.approx([5.0], abs=0.1)
    assert short.result_.status is Status.TIME_LIMIT
    assert short.result_.n_iter == 0
    assert model(loss, time_limit=1e3).fit(X, Y).result_.status.converged
