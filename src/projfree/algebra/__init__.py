"""The algebraic types that carry every algorithm: points with lazy images, minorants, and matrices never formed."""

from projfree.algebra.image import Image, Source
from projfree.algebra.lowrank import Factor, LowRank
from projfree.algebra.minorant import UNIT, Minorant, inner, size, square
from projfree.algebra.on_pattern import OnPattern
from projfree.algebra.packing import pack, unpack
from projfree.algebra.pattern import FactoredShape, Pattern
from projfree.algebra.point import Point, mix
from projfree.algebra.structured import Mixture, Structured, is_structured, same, zeros

__all__ = [
    "UNIT",
    "Factor",
    "FactoredShape",
    "Image",
    "LowRank",
    "Minorant",
    "Mixture",
    "OnPattern",
    "Pattern",
    "Point",
    "Source",
    "Structured",
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
