"""Constraint sets: compact convex sets, accessed through a linear minimisation oracle.

Each set is one module. To add a set, add its module and a line in the stub file; tests, docs and the CLI include it.
"""

from projfree.lazy_import import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
