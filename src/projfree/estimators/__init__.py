"""scikit-learn estimators with a radius in place of a penalty."""

from projfree.lazy_import import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
