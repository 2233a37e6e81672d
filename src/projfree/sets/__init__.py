"""Constraint sets: what a solver may move in, seen through a linear minimisation oracle.

One set a file. A new set is its file, its name here and its place in `SETS`; tests, docs and command follow.
"""

from projfree.sets.base import FEASIBILITY, ConstraintSet, NormBall
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

#: Every set of the package.
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

__all__ = [
    "FEASIBILITY",
    "SETS",
    "Birkhoff",
    "Box",
    "ConstraintSet",
    "GroupBall",
    "KSupportBall",
    "LpBall",
    "NormBall",
    "OracleSet",
    "OwlBall",
    "Positive",
    "SchattenBall",
    "Simplex",
    "Weighted",
    "WeightedSchattenBall",
    "WithFree",
]
