"""Compiled kernels: one pass over blocks of rows, each row read from memory once.

Imported on first use, because numba costs more to load than small problems cost to solve. Every function is at module
level and takes arrays and numbers alone, so that numba finds the compiled code on disk in the next process. A block is
worked through in tiles that stay in the cache: the images of a tile, its losses and derivatives, then its part of the
adjoint.
"""

from projfree.data.native.dense import F_TILE, TILE, c_blocks, f_blocks
from projfree.data.native.lanes import LANES
from projfree.data.native.losses import CODES, IMAGES_ONLY, losses, softmax
from projfree.data.native.outputs import output_blocks
from projfree.data.native.sparse import csr_blocks
from projfree.data.native.values import slope_blocks, value_blocks
from projfree.numerics.compilation import watch

__all__ = [
    "CODES",
    "F_TILE",
    "IMAGES_ONLY",
    "LANES",
    "TILE",
    "c_blocks",
    "csr_blocks",
    "f_blocks",
    "losses",
    "output_blocks",
    "slope_blocks",
    "softmax",
    "value_blocks",
]

watch()
