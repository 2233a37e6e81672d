"""What a solver cannot run on, it says before the first step, with the way out."""

from __future__ import annotations

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
    Weighted,
    iterate,
    minimize,
)

BALL = LpBall(2, 1.0)
BARE = OracleSet(BALL.lmo, BALL.support, name="Bare")
SCALED = Weighted(SchattenBall(1, 1.0), 2.0)
CASES = {
    "no projection": (
        ProjectedGradient(),
        "squares",
        BARE,
        ValueError,
        r"^ProjectedGradient needs a projection, Bare has none; use PrimalAveraging\.$",
    ),
    "no projection, accelerated": (
        AcceleratedProjectedGradient(),
        "softmax, intercept",
        SCALED,
        ValueError,
        r"^AcceleratedProjectedGradient needs a projection, Weighted\(.*\) has none; use PrimalAveraging\.$",
    ),
    "correction of calls": (
        CorrectivePrimalAveraging(),
        "calls",
        BALL,
        TypeError,
        r"needs images of points, and BlackBox has none; use PrimalAveraging or FrankWolfe\.$",
    ),
    "correction without convexity": (
        CorrectivePrimalAveraging(),
        "biweight",
        BALL,
        TypeError,
        r"needs a convex objective; use FrankWolfe\(ExactLineSearch\(\)\)\.$",
    ),
    "correction of samples": (
        CorrectivePrimalAveraging(sampling=Minibatch(3)),
        "squares",
        BALL,
        ValueError,
        r"looks at all rows, got Minibatch\(rows_each=3\); use PrimalAveraging\.$",
    ),
    "search on samples": (
        PrimalAveraging(search=ExactLineSearch(), sampling=Growing()),
        "squares",
        BALL,
        ValueError,
        r"with Growing\(power=2\.0\) cannot search along all rows; leave `search` out\.$",
    ),
    "looking rule on samples": (
        FrankWolfe(Backtracking(), sampling=Minibatch(3)),
        "squares",
        BALL,
        ValueError,
        r"needs a step that does not look at all rows, got Backtracking\(.*\); use `OpenLoop\(\)`\.$",
    ),
    "backtracking on samples": (
        ProjectedGradient(BacktrackingGradient(), sampling=Minibatch(3)),
        "squares",
        BALL,
        ValueError,
        r"^BacktrackingGradient looks at all rows, got Minibatch\(rows_each=3\); use `InverseSqrt\(\)`\.$",
    ),
    "samples of calls": (
        PrimalAveraging(sampling=Minibatch(3)),
        "calls",
        BALL,
        TypeError,
        r"^BlackBox has no rows to sample from; use `sampling=FullBatch\(\)`\.$",
    ),
    "samples of a form": (
        PrimalAveraging(sampling=Growing()),
        "form",
        BALL,
        TypeError,
        r"^QuadraticForm has no rows to sample from; use `sampling=FullBatch\(\)`\.$",
    ),
    "vectors in a group ball": (
        PrimalAveraging(),
        "squares",
        GroupBall(2, 1, 1.0),
        ValueError,
        r"^`GroupBall` needs matrices \(groups x entries\), got shape \(4,\); for vectors use LpBall\.$",
    ),
    "vectors in a Schatten ball": (
        FrankWolfe(),
        "logistic",
        SchattenBall(1, 1.0),
        ValueError,
        r"^`SchattenBall` needs matrices \(rows x columns\), got shape \(4,\); for vectors use LpBall\.$",
    ),
}


@pytest.mark.parametrize(("solver", "name", "ball", "error", "sentence"), CASES.values(), ids=CASES)
def test_sentences(solver, name, ball, error, sentence):
    f, passes = counted(problem(name))
    for call in (lambda: minimize(f, ball, solver), lambda: next(iterate(f, ball, solver))):
        with pytest.raises(error, match=sentence):
            call()
    assert passes() == 0, "nothing was read"


def test_oracles_need_no_more_than_an_oracle():
    f = problem("squares")
    for solver in (PrimalAveraging(), FrankWolfe(), CorrectivePrimalAveraging()):
        result = minimize(f, BARE, solver, max_iter=20)
        assert np.linalg.norm(result.w) <= 1 + 1e-12
        assert result.bound <= result.value
