"""Algorithms: each an `init` and a `step`."""

from projfree.solvers.base import Solver, State
from projfree.solvers.frank_wolfe import FrankWolfe
from projfree.solvers.primal_averaging import CorrectivePrimalAveraging, PrimalAveraging
from projfree.solvers.projected_gradient import AcceleratedProjectedGradient, ProjectedGradient

#: Every solver, for tables and tests that should follow when one is added.
SOLVERS: tuple[type[Solver], ...] = (
    PrimalAveraging,
    CorrectivePrimalAveraging,
    FrankWolfe,
    ProjectedGradient,
    AcceleratedProjectedGradient,
)

__all__ = [
    "SOLVERS",
    "AcceleratedProjectedGradient",
    "CorrectivePrimalAveraging",
    "FrankWolfe",
    "PrimalAveraging",
    "ProjectedGradient",
    "Solver",
    "State",
]
