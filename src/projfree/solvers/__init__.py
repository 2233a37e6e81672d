"""Algorithms: each an `init` and a `step`."""

from projfree.solvers.active_set import ActiveSet
from projfree.solvers.base import Solver, State
from projfree.solvers.direct import Direct
from projfree.solvers.frank_wolfe import FrankWolfe
from projfree.solvers.hessian_free import HessianFreeNewton
from projfree.solvers.newton import ConstrainedNewton
from projfree.solvers.pairwise import PairwiseFrankWolfe
from projfree.solvers.plan import Plan, plan
from projfree.solvers.primal_averaging import CorrectivePrimalAveraging, PrimalAveraging
from projfree.solvers.projected_gradient import AcceleratedProjectedGradient, ProjectedGradient
from projfree.solvers.relay import Relay
from projfree.solvers.rules import Choice
from projfree.solvers.trust_region import TrustRegionLanczos
from projfree.solvers.working_set import WorkingSet

#: Every solver, for tables and tests that should follow when one is added.
SOLVERS: tuple[type[Solver], ...] = (
    PrimalAveraging,
    CorrectivePrimalAveraging,
    FrankWolfe,
    PairwiseFrankWolfe,
    ProjectedGradient,
    AcceleratedProjectedGradient,
    ConstrainedNewton,
    HessianFreeNewton,
    Direct,
    TrustRegionLanczos,
    WorkingSet,
    Relay,
)

__all__ = [
    "SOLVERS",
    "AcceleratedProjectedGradient",
    "ActiveSet",
    "Choice",
    "ConstrainedNewton",
    "CorrectivePrimalAveraging",
    "Direct",
    "FrankWolfe",
    "HessianFreeNewton",
    "PairwiseFrankWolfe",
    "Plan",
    "PrimalAveraging",
    "ProjectedGradient",
    "Relay",
    "Solver",
    "State",
    "TrustRegionLanczos",
    "WorkingSet",
    "plan",
]
