# isort: skip_file
# In the order of tables; a new one is a line here.

from projfree.sets.lp import LpBall as LpBall
from projfree.sets.group import GroupBall as GroupBall
from projfree.sets.schatten import SchattenBall as SchattenBall
from projfree.sets.simplex import Simplex as Simplex
from projfree.sets.box import Box as Box
from projfree.sets.weighted import Weighted as Weighted
from projfree.sets.positive import Positive as Positive
from projfree.sets.unpenalized import WithUnpenalized as WithUnpenalized
from projfree.sets.k_support import KSupportBall as KSupportBall
from projfree.sets.owl import OwlBall as OwlBall
from projfree.sets.birkhoff import Birkhoff as Birkhoff
from projfree.sets.oracle import OracleSet as OracleSet
from projfree.sets.shifted import Shifted as Shifted
from projfree.sets.constrained import Constrained as Constrained
from projfree.sets.cut import InfeasibleError as InfeasibleError
from projfree.sets.rows import Rows as Rows
from projfree.sets.rows import bounds as bounds
from projfree.sets.rows import covariance as covariance
from projfree.sets.rows import order as order
from projfree.sets.rows import sums_to as sums_to
from projfree.sets.shifted import shifted as shifted
from projfree.sets.base import FEASIBILITY as FEASIBILITY
from projfree.sets.base import ConstraintSet as ConstraintSet
from projfree.sets.base import NormBall as NormBall
from projfree.sets.base import random_point as random_point
from projfree.sets.catalogue import SETS as SETS
