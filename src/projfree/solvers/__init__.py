"""Algorithms: each an `init` and a `step`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.first_use import on_first_use
from projfree.solvers.base import Solver, State
from projfree.solvers.plan import Plan, plan
from projfree.solvers.rules import Choice

if TYPE_CHECKING:
    from projfree.solvers.active_set import ActiveSet
    from projfree.solvers.catalogue import SOLVERS
    from projfree.solvers.direct import Direct
    from projfree.solvers.frank_wolfe import FrankWolfe
    from projfree.solvers.hessian_free import HessianFreeNewton
    from projfree.solvers.newton import ConstrainedNewton
    from projfree.solvers.pairwise import PairwiseFrankWolfe
    from projfree.solvers.primal_averaging import CorrectivePrimalAveraging, PrimalAveraging
    from projfree.solvers.projected_gradient import AcceleratedProjectedGradient, ProjectedGradient
    from projfree.solvers.relay import Relay
    from projfree.solvers.trust_region import TrustRegionLanczos
    from projfree.solvers.working_set import WorkingSet

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

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        ".active_set": ("ActiveSet",),
        ".catalogue": ("SOLVERS",),
        ".direct": ("Direct",),
        ".frank_wolfe": ("FrankWolfe",),
        ".hessian_free": ("HessianFreeNewton",),
        ".newton": ("ConstrainedNewton",),
        ".pairwise": ("PairwiseFrankWolfe",),
        ".primal_averaging": ("CorrectivePrimalAveraging", "PrimalAveraging"),
        ".projected_gradient": ("AcceleratedProjectedGradient", "ProjectedGradient"),
        ".relay": ("Relay",),
        ".trust_region": ("TrustRegionLanczos",),
        ".working_set": ("WorkingSet",),
    },
)
