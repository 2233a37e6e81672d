"""What a checkpoint keeps of states: active sets are looked at, fields of users' own solvers are taken as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from projfree.solvers import FrankWolfe
from projfree.solvers.base import State

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
    tree["state"][name] = -1 - tree["state"][name]
    persist.save(tmp_path / "c", tree, kind=KIND)
    with pytest.raises(ValueError, match="is damaged"):
        minimize(f, ball, state=tmp_path / "c", tol=0.0, max_iter=6)


@dataclass(frozen=True, kw_only=True)
class Mine(State):
    extra: Any = -1


@dataclass(frozen=True, repr=False)
class Own(FrankWolfe):
    """Frank-Wolfe with a field of its own in the state, which becomes what the test says."""

    def init(self, f, ball, start, seed):
        state = super().init(f, ball, start, seed)
        return Mine(t=state.t, x=state.x, seed=state.seed)

    def step(self, f, ball, state):
        given = {name: value for name, value in vars(state).items() if name != "extra"}
        moved = super().step(f, ball, type(super().init(f, ball, state.x, 0))(**given))
        return Mine(**(vars(moved) | {"extra": EXTRA[0]}))


EXTRA: list[Any] = [None]


@pytest.mark.parametrize("extra", [-3, 0.5, True, None, np.array([np.nan, 1.0])], ids=str)
def test_fields_of_a_users_state_are_kept(extra, tmp_path):
    EXTRA[0] = extra
    f, ball = problem(), LpBall(2, radius=2.0)
    given: dict[str, Any] = {"tol": 0.0, "callbacks": [Checkpoint(tmp_path / "c", 2)]}
    whole = minimize(f, ball, Own(), tol=0.0, max_iter=8, callbacks=[Checkpoint(tmp_path / "w", 2)])
    minimize(f, ball, Own(), max_iter=4, **given)
    resumed = minimize(f, ball, Own(), state=tmp_path / "c", max_iter=8, **given)
    np.testing.assert_array_equal(resumed.w, whole.w)
    np.testing.assert_array_equal(resumed.state.extra, extra)
