"""`SETS`: every set of the package, for tables and tests that should follow when one is added."""

from projfree.sets.base import ConstraintSet
from projfree.sets.birkhoff import Birkhoff
from projfree.sets.box import Box
from projfree.sets.free import WithFree
from projfree.sets.group import GroupBall
from projfree.sets.k_support import KSupportBall
from projfree.sets.lp import LpBall
from projfree.sets.oracle import OracleSet
from projfree.sets.owl import OwlBall
from projfree.sets.positive import Positive
from projfree.sets.schatten import SchattenBall
from projfree.sets.simplex import Simplex
from projfree.sets.weighted import Weighted
from projfree.sets.weighted_schatten import WeightedSchattenBall

SETS: tuple[type[ConstraintSet], ...] = (
    LpBall,
    GroupBall,
    SchattenBall,
    Simplex,
    Box,
    Weighted,
    WeightedSchattenBall,
    Positive,
    WithFree,
    KSupportBall,
    OwlBall,
    Birkhoff,
    OracleSet,
)
