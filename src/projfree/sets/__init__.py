"""Constraint sets: what a solver may move in, seen through a linear minimisation oracle.

One file each. A new one is a file here and a line in the stub file; tests, docs and the CLI follow.
"""

from projfree.first_use import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__)
