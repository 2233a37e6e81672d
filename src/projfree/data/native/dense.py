"""One output: a pass over blocks of a dense table, tile by tile, each row read from memory once.

A tile stays in the cache between its two uses. Images are formed line by line, which is the order that memory is
fastest in; lines are added to the adjoint eight at a time, which spares most of its loads and stores.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from projfree.data.native.lanes import TOGETHER, add_eight, add_one, dot
from projfree.data.native.losses import IMAGES_ONLY, tile_of_images
from projfree.data.native.scalars import EXACT

#: Rows of a tile, at most: both are halved for wide tables, down to eight and 64, until a tile fits into `CACHE` bytes.
TILE, F_TILE = 64, 512
CACHE = 400_000


@njit(nogil=True, cache=True)
def tile_for(most, least, row_bytes):
    """Rows of a tile; a divisor of ``most``, so that chunks of a file can begin where a tile does."""
    rows = most
    while rows > least and rows * row_bytes > CACHE:
        rows //= 2
    return rows


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _add_lines(X, line, start, lines, r, out, count):
    """``out[j] += sum_i r[i] X[line + i, start + j]``."""
    whole = lines - lines % TOGETHER
    for i in range(0, whole, TOGETHER):
        add_eight(X, line + i, start, r, i, out, count)
    for i in range(whole, lines):
        add_one(X, line + i, start, r, i, out, count)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def c_blocks(
    X, offset, rows, first_block, last_block, vectors, coefficients, offsets, base, scale, met, keep, whole,
    beside_scale, beside_coefficients, beside, code, parameter, y, weight, uniform, b, gradients, sums,
):  # fmt: skip
    """Blocks of ``rows`` rows each of a C-ordered array whose first row is row ``offset`` of the data.

    Each block has its own row of ``gradients`` and ``sums``, to be added by the caller in a fixed order.
    """
    end, d = offset + X.shape[0], X.shape[1]
    tile = tile_for(TILE, TOGETHER, d * X.itemsize)
    u, space = np.empty(tile), np.empty((4, tile))
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, end)
        for first in range(max(block * rows, offset), stop, tile):  # a chunk may begin within a block
            count = min(tile, stop - first)
            for k in range(len(coefficients)):
                for i in range(count):
                    met[k, first + i] = dot(X, first - offset + i, 0, vectors[k], d)
            tile_of_images(
                first, count, coefficients, offsets, base, scale, met, keep, whole, beside_scale, beside_coefficients,
                beside, code, parameter, y, weight, uniform, b, u, space, sums[block],
            )  # fmt: skip
            if code != IMAGES_ONLY:
                _add_lines(X, first - offset, 0, count, space[0], gradients[block], d)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def f_blocks(
    T, offset, rows, first_block, last_block, vectors, coefficients, offsets, base, scale, met, keep, whole,
    beside_scale, beside_coefficients, beside, code, parameter, y, weight, uniform, b, gradients, sums,
):  # fmt: skip
    """`c_blocks` for a Fortran-ordered array, given as its transpose."""
    end, d = offset + T.shape[1], T.shape[0]
    tile = tile_for(F_TILE, 64, d * T.itemsize)
    u, space = np.empty(tile), np.empty((4, tile))
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, end)
        for first in range(max(block * rows, offset), stop, tile):
            count = min(tile, stop - first)
            for k in range(len(coefficients)):
                image = met[k, first : first + count]
                image[:] = 0.0
                _add_lines(T, 0, first - offset, d, vectors[k], image, count)
            tile_of_images(
                first, count, coefficients, offsets, base, scale, met, keep, whole, beside_scale, beside_coefficients,
                beside, code, parameter, y, weight, uniform, b, u, space, sums[block],
            )  # fmt: skip
            if code != IMAGES_ONLY:
                for j in range(d):
                    gradients[block, j] += dot(T, j, first - offset, space[0], count)
