"""projfree: projection-free optimization over norm balls, with a certificate at the end of every convex run."""

from projfree.lazy_import import lazy_names

#: The version of the package; the build reads it from here.
__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_names(__name__)
__all__ += ["__version__"]
