"""The main loop, its results, certificates, callbacks and checkpoints."""

from projfree.lazy_import import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
