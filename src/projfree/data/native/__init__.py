"""Compiled passes over rows, each row read from memory once; `passes` says how they are used.

Nothing here imports numba until a kernel is asked for, because numba costs more to load than small problems cost to
solve. A block is worked through in tiles that stay in the cache: the images of a tile, its losses and derivatives, then
its part of the adjoint.
"""

from projfree.data.native.passes import Prepared, prepare, register_step

__all__ = ["Prepared", "prepare", "register_step"]
