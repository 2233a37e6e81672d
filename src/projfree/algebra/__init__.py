"""The algebraic types that carry every algorithm: points with lazy images, and minorants with their rounding."""

from projfree.algebra.image import Image, Source
from projfree.algebra.minorant import UNIT, Minorant, inner, size
from projfree.algebra.point import Point, mix

__all__ = ["UNIT", "Image", "Minorant", "Point", "Source", "inner", "mix", "size"]
