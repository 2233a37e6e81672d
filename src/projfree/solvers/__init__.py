"""Algorithms: each an `init` and a `step`."""

from projfree.first_use import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__)
