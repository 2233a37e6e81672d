# isort: skip_file
# In the order of tables; a new one is a line here.

from projfree.solvers.primal_averaging import PrimalAveraging as PrimalAveraging
from projfree.solvers.primal_averaging import CorrectivePrimalAveraging as CorrectivePrimalAveraging
from projfree.solvers.frank_wolfe import FrankWolfe as FrankWolfe
from projfree.solvers.pairwise import PairwiseFrankWolfe as PairwiseFrankWolfe
from projfree.solvers.projected_gradient import ProjectedGradient as ProjectedGradient
from projfree.solvers.projected_gradient import AcceleratedProjectedGradient as AcceleratedProjectedGradient
from projfree.solvers.direct import ConstrainedNewton as ConstrainedNewton
from projfree.solvers.hessian_free import HessianFreeNewton as HessianFreeNewton
from projfree.solvers.direct import Direct as Direct
from projfree.solvers.working_set import WorkingSet as WorkingSet
from projfree.solvers.base import Solver as Solver
from projfree.solvers.base import State as State
from projfree.solvers.choose import Plan as Plan
from projfree.solvers.choose import plan as plan
from projfree.solvers.pairwise import ActiveSet as ActiveSet
from projfree.solvers.catalogue import SOLVERS as SOLVERS
