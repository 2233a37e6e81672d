"""The solvers under their names in the tables."""

from __future__ import annotations

from projfree import (
    AcceleratedProjectedGradient,
    Backtracking,
    BacktrackingGradient,
    CorrectivePrimalAveraging,
    ExactLineSearch,
    FrankWolfe,
    Growing,
    InverseSqrt,
    LastGradient,
    Minibatch,
    OpenLoop,
    PrimalAveraging,
    ProjectedGradient,
    ShortStep,
)

SOLVERS = {
    "FW 2/(t+1)": FrankWolfe(OpenLoop()),
    "FW short step": FrankWolfe(ShortStep()),
    "FW exact": FrankWolfe(ExactLineSearch()),
    "FW backtracking": FrankWolfe(Backtracking()),
    "PA": PrimalAveraging(),
    "PA ell=4": PrimalAveraging(OpenLoop(4)),
    "PA last gradient": PrimalAveraging(average=LastGradient()),
    "PA line search": PrimalAveraging(search=ExactLineSearch()),
    "PA corrective": CorrectivePrimalAveraging(),
    "SPA t^2 rows": PrimalAveraging(sampling=Growing(2)),
    "SPA published": PrimalAveraging(average=LastGradient(), sampling=Growing(4)),
    "PGD 1/L": ProjectedGradient(),
    "PGD backtracking": ProjectedGradient(BacktrackingGradient()),
    "FISTA 1/L": AcceleratedProjectedGradient(),
    "FISTA backtracking": AcceleratedProjectedGradient(BacktrackingGradient()),
    "SGD 32 rows": ProjectedGradient(InverseSqrt(), Minibatch(32)),
}
QUICK = ("FW 2/(t+1)", "FW exact", "PA", "PA line search", "PA corrective", "SPA t^2 rows", "FISTA 1/L")
