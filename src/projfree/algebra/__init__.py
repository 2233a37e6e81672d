"""The algebraic types that carry every algorithm: points, minorants, and matrices never formed."""

from projfree.first_use import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__)
