"""What a solver cannot run on, it says before the first step, with the way out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from solvers.catalogue import counted, problem

from projfree import (
    AcceleratedProjectedGradient,
    Backtracking,
    BacktrackingGradient,
    CorrectivePrimalAveraging,
    ExactLineSearch,
    FrankWolfe,
    GroupBall,
    Growing,
    LpBall,
    Minibatch,
    OracleSet,
    PrimalAveraging,
    ProjectedGradient,
    SchattenBall,
    iterate,
    minimize,
)

BALL = LpBall(2, 1.0)
BARE = OracleSet(BALL.lmo, BALL.support, name="Bare")
SEARCH = PrimalAveraging(search=ExactLineSearch(), sampling=Growing())
LOOKING = ProjectedGradient(BacktrackingGradient(), sampling=Minibatch(3))
CASES = {
    "no projection": (ProjectedGradient(), "squares", BARE, "ProjectedGradient needs a projection, Bare has none"),
    "the same, accelerated": (AcceleratedProjectedGradient(), "squares", BARE, "needs a projection, Bare has none"),
    "correction of calls": (CorrectivePrimalAveraging(), "calls", BALL, "needs images of points"),
    "correction without convexity": (CorrectivePrimalAveraging(), "biweight", BALL, "needs a convex objective"),
    "correction of samples": (CorrectivePrimalAveraging(sampling=Minibatch(3)), "squares", BALL, "looks at all rows"),
    "search on samples": (SEARCH, "squares", BALL, "cannot search along all rows; leave `search` out"),
    "looking rule on samples": (FrankWolfe(Backtracking(), sampling=Minibatch(3)), "squares", BALL, "needs a step"),
    "backtracking on samples": (LOOKING, "squares", BALL, "BacktrackingGradient looks at all rows, got Minibatch"),
    "samples of calls": (PrimalAveraging(sampling=Minibatch(3)), "calls", BALL, "BlackBox has no rows to sample from"),
    "samples of a form": (PrimalAveraging(sampling=Growing()), "form", BALL, "QuadraticForm has no rows to sample"),
    "vectors in a group ball": (PrimalAveraging(), "squares", GroupBall(2, 1, 1.0), "`GroupBall` needs matrices"),
    "vectors in a Schatten ball": (FrankWolfe(), "logistic", SchattenBall(1, 1.0), "`SchattenBall` needs matrices"),
}


@pytest.mark.parametrize(("solver", "name", "ball", "words"), CASES.values(), ids=CASES)
def test_sentences(solver, name, ball, words):
    f, passes = counted(problem(name))
    for call in (lambda: minimize(f, ball, solver), lambda: next(iterate(f, ball, solver))):
        with pytest.raises((TypeError, ValueError), match=re.escape(words)):
            call()
    assert passes() == 0, "nothing was read"


def test_oracles_need_no_more_than_an_oracle():
    f = problem("squares")
    for solver in (PrimalAveraging(), FrankWolfe(), CorrectivePrimalAveraging()):
        result = minimize(f, BARE, solver, max_iter=20)
        assert np.linalg.norm(result.w) <= 1 + 1e-12
        assert result.bound <= result.value
