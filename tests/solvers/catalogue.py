"""Small problems and the settings of solvers that tests run over; a new solver gets its lines here."""

from __future__ import annotations

import numpy as np

from projfree import (
    AcceleratedProjectedGradient,
    Backtracking,
    BacktrackingGradient,
    BiWeight,
    BlackBox,
    ConstrainedNewton,
    CorrectivePrimalAveraging,
    ExactLineSearch,
    FrankWolfe,
    Growing,
    HessianFreeNewton,
    Huber,
    InverseSqrt,
    LastGradient,
    LogAdaptive,
    Logistic,
    Minibatch,
    Objective,
    OpenLoop,
    PairwiseFrankWolfe,
    Perturbed,
    PrimalAveraging,
    ProjectedGradient,
    QuadraticForm,
    ShortStep,
    Softmax,
    Squared,
    SquaredSigmoid,
    as_data,
)
from projfree.solvers import Direct, WorkingSet

RNG = np.random.default_rng(11)
X = RNG.standard_normal((60, 4)) * np.array([2.0, 1.0, 0.5, 0.2])  # no solver is done at once
U = X @ np.array([1.0, -2.0, 0.5, 0.0])
Y = U + RNG.standard_normal(60)


def hyperbola(w):
    """A smooth convex function behind a call."""
    scale = np.array([3.0, 2.0, 1.0, 0.3])
    r = np.sqrt(1 + (scale * w - 1) ** 2)
    return np.sum(r), scale * (scale * w - 1) / r


PROBLEMS = {
    "squares": lambda: Objective(Squared(), as_data(X, Y)),
    "squares, intercept": lambda: Objective(Squared(), as_data(X, Y + 5), fit_intercept=True),
    "logistic": lambda: Objective(Logistic(), as_data(X, np.sign(Y))),
    "logistic, intercept": lambda: Objective(Logistic(), as_data(X, np.sign(Y + 1)), fit_intercept=True),
    "huber, intercept": lambda: Objective(Huber(0.5), as_data(X, Y + 5), fit_intercept=True),
    "softmax, intercept": lambda: Objective(Softmax(), as_data(X, np.arange(60) % 3), fit_intercept=True),
    "form": lambda: QuadraticForm(X.T @ X / 60, X.T @ Y / 60),
    "calls": lambda: BlackBox(hyperbola, 4, smoothness=9.0, name="hyperbola", convex=True),
    "perturbed": lambda: Perturbed(Objective(Squared(), as_data(X, Y)), 1e-3, np.ones(4)),
    "biweight": lambda: Objective(BiWeight(), as_data(X, Y)),
    "sigmoid, intercept": lambda: Objective(SquaredSigmoid(), as_data(X, np.sign(Y + 1)), fit_intercept=True),
}
SOLVERS = {
    "PA": PrimalAveraging(),
    "PA, ell 4": PrimalAveraging(OpenLoop(4)),
    "PA, last gradient": PrimalAveraging(average=LastGradient()),
    "PA, search": PrimalAveraging(search=ExactLineSearch()),
    "PA, corrective": CorrectivePrimalAveraging(),
    "FW, open loop": FrankWolfe(OpenLoop()),
    "FW, adaptive": FrankWolfe(LogAdaptive()),
    "FW, short": FrankWolfe(ShortStep()),
    "FW, short with L": FrankWolfe(ShortStep(L=10.0)),
    "FW, exact": FrankWolfe(ExactLineSearch()),
    "FW, backtracking": FrankWolfe(Backtracking()),
    "pairwise": PairwiseFrankWolfe(),
    "pairwise, seldom corrected": PairwiseFrankWolfe(corrections=3),
    "pairwise, plain": PairwiseFrankWolfe(corrections=0),
    "pairwise, eager": PairwiseFrankWolfe(corrections=0, lazy=False),
    "away": PairwiseFrankWolfe(corrections=0, away=True),
    "PG": ProjectedGradient(),
    "PG, backtracking": ProjectedGradient(BacktrackingGradient()),
    "PG, square root": ProjectedGradient(InverseSqrt()),
    "FISTA": AcceleratedProjectedGradient(),
    "FISTA, backtracking": AcceleratedProjectedGradient(BacktrackingGradient()),
    "Newton": ConstrainedNewton(),
    "Newton, Hessian-free": HessianFreeNewton(),
}
#: Solvers for some problems only, and those that are done after very few iterations.
SPECIAL = {"direct": Direct(), "working set": WorkingSet()}
SAMPLED = {
    "PA, growing": PrimalAveraging(sampling=Growing(2)),
    "PA, last gradient, growing": PrimalAveraging(average=LastGradient(), sampling=Growing(4)),
    "PA, minibatch": PrimalAveraging(sampling=Minibatch(8)),
    "FW, growing": FrankWolfe(OpenLoop(), sampling=Growing(2)),
    "FW, minibatch": FrankWolfe(ShortStep(L=10.0), sampling=Minibatch(8)),
    "PG, single": ProjectedGradient(InverseSqrt(), sampling=Minibatch(1)),
    "PG, growing": ProjectedGradient(sampling=Growing(2)),
}
BENT = ("biweight", "sigmoid, intercept")
CONVEX = tuple(name for name in PROBLEMS if name not in BENT)


def fits(solver: str, problem: str) -> bool:
    """Whether the solver takes the problem; what it says otherwise is tested with the refusals."""
    if "corrective" in solver:
        return problem not in (*BENT, "calls")
    if solver in ("Newton", "Newton, Hessian-free"):
        return problem != "calls"
    if solver == "direct":
        return problem in ("squares", "squares, intercept", "form", "perturbed")
    if solver == "working set":  # sets with flat pieces only
        return False
    if solver in SAMPLED:
        return problem not in ("calls", "form")
    return True


def pairs(solvers=(*SOLVERS, *SPECIAL, *SAMPLED), problems=tuple(PROBLEMS)):
    """All pairs of names that fit, as arguments of `pytest.mark.parametrize`."""
    return [(s, p) for s in solvers for p in problems if fits(s, p)]


def solver(name: str):
    """The solver of that name."""
    return (SOLVERS | SPECIAL | SAMPLED)[name]


def problem(name: str):
    """A new problem of that name, which nobody has read yet."""
    return PROBLEMS[name]()


def counted(f):
    """The function itself, and a call that tells the passes in its workspace and in all that were opened from it."""
    opened, open_one = [f], f.open

    def open_and_note():
        opened.append(open_one())
        return opened[-1]

    f.open = open_and_note
    return f, lambda: sum(each.passes for each in opened)
