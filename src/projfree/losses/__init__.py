"""Losses: one file each. A new one is a file here and a line in the stub file; tests, docs and the CLI follow."""

from projfree.lazy_import import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
