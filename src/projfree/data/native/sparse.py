"""One output: a pass over blocks of compressed sparse rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from projfree.data.native.losses import IMAGES_ONLY, tile_of_images
from projfree.data.native.scalars import EXACT

#: Rows of a tile.
ROWS = 32


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _dots(values, columns, pointers, first, count, v, out):
    """``out[i] = X[first + i] @ v``; four partial sums, because one would wait for itself."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for i in range(count):
        a0 = a1 = a2 = a3 = 0.0
        q, end = pointers[first + i], pointers[first + i + 1]
        while q + four <= end:
            a0 += values[q] * v[columns[q]]
            a1 += values[q + one] * v[columns[q + one]]
            a2 += values[q + two] * v[columns[q + two]]
            a3 += values[q + three] * v[columns[q + three]]
            q += four
        while q < end:
            a0 += values[q] * v[columns[q]]
            q += one
        out[i] = (a0 + a1) + (a2 + a3)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _add_rows(values, columns, pointers, first, count, r, g):
    """``g += sum_i r[i] X[first + i]``."""
    one = np.uint64(1)
    for i in range(count):
        q, end, t = pointers[first + i], pointers[first + i + 1], r[i]
        while q < end:
            g[columns[q]] += t * values[q]
            q += one


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def csr_blocks(
    values, columns, pointers, rows, first_block, last_block, vectors, coefficients, offsets, base, scale, met, keep,
    whole, beside_scale, beside_coefficients, beside, code, parameter, y, weight, uniform, b, gradients, sums,
):  # fmt: skip
    """`c_blocks` for compressed sparse rows.

    ``columns`` and ``pointers`` are unsigned, which spares a test for negative indices at every entry; they must have
    been checked, because nothing here does.
    """
    end = len(pointers) - 1
    u, space = np.empty(ROWS), np.empty((4, ROWS))
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, end)
        for first in range(block * rows, stop, ROWS):
            count = min(ROWS, stop - first)
            for k in range(len(coefficients)):
                _dots(values, columns, pointers, first, count, vectors[k], met[k, first : first + count])
            tile_of_images(
                first, count, coefficients, offsets, base, scale, met, keep, whole, beside_scale, beside_coefficients,
                beside, code, parameter, y, weight, uniform, b, u, space, sums[block],
            )  # fmt: skip
            if code != IMAGES_ONLY:
                _add_rows(values, columns, pointers, first, count, space[0], gradients[block])
