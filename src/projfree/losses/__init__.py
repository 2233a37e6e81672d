"""Losses: one file each. A new one is a file here and a line in the stub file; tests, docs and the CLI follow.

A compiled form, if a loss has one, stands in the same file; `projfree.numerics.forms` says what it is.
"""

from projfree.lazy_import import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
