"""What a checkpoint keeps of states: active sets are looked at, fields of users' own solvers are taken as they are."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import (
    Checkpoint,
    Logistic,
    LpBall,
    Objective,
    PairwiseFrankWolfe,
    as_data,
    minimize,
    persist,
)
from projfree.run.checkpoint import KIND

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 30))
Y = np.sign(X[:, 0] + RNG.standard_normal(60))


def problem():
    return Objective(Logistic(), as_data(X, Y), fit_intercept=True)


@pytest.mark.parametrize("name", ["places", "starts", "weights"])
def test_an_active_set_that_is_none_is_refused(name, tmp_path):
    f, ball = problem(), LpBall(1, radius=8.0)
    minimize(f, ball, PairwiseFrankWolfe(), tol=0.0, max_iter=3, callbacks=[Checkpoint(tmp_path / "c", 1)])
    tree = persist.load(tmp_path / "c", kind=KIND)
    active = tree["state"]["active_set"]
    active[name] = -1 - active[name]
    persist.save(tmp_path / "c", tree, kind=KIND)
    with pytest.raises(ValueError, match="is damaged"):
        minimize(f, ball, state=tmp_path / "c", tol=0.0, max_iter=6)
