"""`SOLVERS`: every solver of the package, for tables and tests that should follow when one is added."""

from projfree.solvers.base import Solver
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
