"""The algebraic types that carry every algorithm: points, minorants, and matrices never formed."""

from projfree.lazy_import import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
