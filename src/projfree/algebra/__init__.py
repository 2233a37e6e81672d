"""The algebraic types that carry every algorithm: points, minorants, and matrices never formed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.algebra.minorant import Minorant, inner, size, square
from projfree.algebra.minorant_stack import MinorantStack
from projfree.algebra.pattern import FactoredShape, Pattern
from projfree.algebra.point import Handle, Point, frozen, mix
from projfree.algebra.structured import Mixture, Structured, is_structured, same, zeros
from projfree.first_use import on_first_use
from projfree.numerics.sums import UNIT

if TYPE_CHECKING:
    from projfree.algebra.lowrank import Factor, LowRank
    from projfree.algebra.on_pattern import OnPattern
    from projfree.algebra.packing import pack, unpack

__all__ = [
    "UNIT",
    "Factor",
    "FactoredShape",
    "Handle",
    "LowRank",
    "Minorant",
    "MinorantStack",
    "Mixture",
    "OnPattern",
    "Pattern",
    "Point",
    "Structured",
    "frozen",
    "inner",
    "is_structured",
    "mix",
    "pack",
    "same",
    "size",
    "square",
    "unpack",
    "zeros",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {".lowrank": ("Factor", "LowRank"), ".on_pattern": ("OnPattern",), ".packing": ("pack", "unpack")},
)
