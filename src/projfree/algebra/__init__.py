"""Algebraic types of all algorithms: points, minorants, and matrices that are not stored densely."""

from projfree.lazy_import import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
