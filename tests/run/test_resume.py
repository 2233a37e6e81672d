"""Resumed runs that reach their tolerance, and the solver that a checkpoint or a state goes on with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
from solvers.catalogue import problem

from projfree import (
    BacktrackingGradient,
    Checkpoint,
    ConstrainedNewton,
    CorrectivePrimalAveraging,
    Direct,
    FrankWolfe,
    Growing,
    HessianFreeNewton,
    LogAdaptive,
    LpBall,
    Minibatch,
    OpenLoop,
    PrimalAveraging,
    ProjectedGradient,
    ShortStep,
    iterate,
    minimize,
    persist,
)
from projfree.run.checkpoint import CLASSES

BALL = LpBall(1.5, 1.0)
KIND = "projfree checkpoint"


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


SETTINGS = [
    PrimalAveraging(LogAdaptive(), OpenLoop(3.5), None, Growing(1.5)),
    CorrectivePrimalAveraging(),
    FrankWolfe(ShortStep(L=np.float64(7.0))),
    FrankWolfe(OpenLoop(), Minibatch(8)),
    ProjectedGradient(BacktrackingGradient()),
    ConstrainedNewton(),
    HessianFreeNewton(),
    Direct(),
]


@pytest.mark.parametrize("chosen", SETTINGS, ids=repr)
def test_every_solver_has_a_record(chosen, tmp_path):
    persist.save(tmp_path / "a", {"solver": persist.pack(chosen, CLASSES)}, kind="test")
    again = persist.unpack(persist.load(tmp_path / "a", kind="test")["solver"], CLASSES)
    assert again == chosen
    assert repr(again) == repr(chosen)


@pytest.mark.parametrize("folder", [True, False], ids=["checkpoint", "state"])
def test_the_solver_is_that_of_the_earlier_run(folder, tmp_path):
    chosen, settings = FrankWolfe(OpenLoop(4.0)), {"tol": 0.0, "seed": 2}
    whole = minimize(problem("logistic"), BALL, chosen, max_iter=8, callbacks=[Checkpoint(tmp_path, 1)], **settings)
    f = problem("logistic")
    half = minimize(f, BALL, chosen, max_iter=5, callbacks=[Checkpoint(tmp_path, 1)], **settings)
    state = tmp_path if folder else half.state
    rest = minimize(problem("logistic") if folder else f, BALL, max_iter=8 if folder else 3, state=state, **settings)
    assert rest.solver == chosen
    assert rest.plan is None, "nothing was planned"
    np.testing.assert_allclose(rest.w, whole.w, atol=1e-13)


def test_iterate_takes_the_solver_of_a_state():
    f = problem("squares")
    *_, last = islice(iterate(f, BALL, FrankWolfe()), 3)
    assert last.solver == FrankWolfe()
    assert next(iterate(f, BALL, state=last)).t == 4


def test_another_problem_is_refused_in_its_own_words(tmp_path):
    """The solver of the checkpoint would refuse it first, for a reason that has nothing to do with it."""
    result = minimize(problem("squares"), BALL, Direct(), callbacks=[Checkpoint(tmp_path, 1)])
    for state in (tmp_path, result.state):
        with pytest.raises(ValueError, match=r"is of another problem: its objective is "):
            minimize(problem("logistic"), BALL, state=state)


@dataclass(frozen=True, repr=False)
class Mine(FrankWolfe):
    """A solver of the user's."""


@dataclass(frozen=True)
class Slow(OpenLoop):
    """A step rule of the user's."""


@pytest.mark.parametrize(("chosen", "what"), [(Mine(), "Mine"), (FrankWolfe(Slow()), "Slow")], ids=["Mine", "Slow"])
def test_a_solver_of_the_users_is_given_again(chosen, what, tmp_path):
    f = problem("squares")
    result = minimize(f, BALL, chosen, tol=0.0, max_iter=3, callbacks=[Checkpoint(tmp_path, 1)])
    sentence = (
        rf"^the checkpoint at .* was written by the solver {type(chosen).__name__}, which this projfree cannot make "
        rf"again \({what} is not a class of projfree\); give the solver as `solver={type(chosen).__name__}\("
    )
    with pytest.raises(ValueError, match=sentence):
        minimize(f, BALL, state=tmp_path)
    assert minimize(f, BALL, chosen, max_iter=5, state=tmp_path).solver is chosen
    assert minimize(f, BALL, max_iter=1, state=result.state).solver is chosen  # this one is at hand


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (
            {"class": "Gone"},
            r"solver Gone, which this projfree cannot make again \(Gone is not a class",
        ),
        ({"class": "FrankWolfe", "speed": 2}, r"cannot make again \(.*speed.*\); give the solver as"),
        ({"class": "WorkingSet", "smallest": -1}, r"cannot make again \(.*whole number.*\); give"),
        ([], r"cannot make again"),
    ],
)
def test_records_that_cannot_be_read(tree, sentence, tmp_path):
    f = problem("squares")
    minimize(f, BALL, PrimalAveraging(), tol=0.0, max_iter=2, callbacks=[Checkpoint(tmp_path, 1)])
    kept = persist.load(tmp_path, kind=KIND)
    persist.save(tmp_path, {**kept, "solver": tree}, kind=KIND)
    with pytest.raises(ValueError, match=r"^the checkpoint at .*" + sentence):
        minimize(f, BALL, state=tmp_path)
    assert minimize(f, BALL, PrimalAveraging(), max_iter=3, state=tmp_path).n_iter == 3
