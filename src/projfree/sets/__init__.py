"""Constraint sets: what a solver may move in, seen through a linear minimisation oracle.

One set a file. A new set is its file, its name here and its place in the catalogue; tests, docs and command follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.first_use import on_first_use
from projfree.sets.base import FEASIBILITY, ConstraintSet, NormBall
from projfree.sets.lp import LpBall

if TYPE_CHECKING:
    from projfree.sets.birkhoff import Birkhoff
    from projfree.sets.box import Box
    from projfree.sets.catalogue import SETS
    from projfree.sets.free import WithFree
    from projfree.sets.group import GroupBall
    from projfree.sets.k_support import KSupportBall
    from projfree.sets.oracle import OracleSet
    from projfree.sets.owl import OwlBall
    from projfree.sets.positive import Positive
    from projfree.sets.schatten import SchattenBall
    from projfree.sets.simplex import Simplex
    from projfree.sets.weighted import Weighted
    from projfree.sets.weighted_schatten import WeightedSchattenBall

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

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        ".birkhoff": ("Birkhoff",),
        ".box": ("Box",),
        ".catalogue": ("SETS",),
        ".free": ("WithFree",),
        ".group": ("GroupBall",),
        ".k_support": ("KSupportBall",),
        ".oracle": ("OracleSet",),
        ".owl": ("OwlBall",),
        ".positive": ("Positive",),
        ".schatten": ("SchattenBall",),
        ".simplex": ("Simplex",),
        ".weighted": ("Weighted",),
        ".weighted_schatten": ("WeightedSchattenBall",),
    },
)
