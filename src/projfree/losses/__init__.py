"""Loss functions. To add one, add a module and a line in the stub file; tests, docs and the CLI then include it."""

from projfree.lazy_import import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
