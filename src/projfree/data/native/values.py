"""The value of known images: mixed and summed without a temporary."""

from __future__ import annotations

import numpy as np
from numba import njit

from projfree.data.native.losses import SOFTMAX, losses, softmax
from projfree.data.native.outputs import add_values
from projfree.data.native.scalars import EXACT

#: Rows of a tile.
ROWS = 64


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def value_blocks(
    n, rows, first_block, last_block, base, scale, other, factor, mixed, k, code, parameter, y, labels, weight, uniform,
    b, sums,
):  # fmt: skip
    """The mean loss at ``scale * base + factor * other``, which goes to ``mixed``, or at ``base`` if that is empty.

    Arrays with k entries a row are flat. Each block has its own entry of ``sums``.
    """
    space = np.empty((5, ROWS * k))
    u, value, slope, true, others = space[0], space[1], space[2], space[3], space[4]
    uniforms = np.full(ROWS, uniform)
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, n)
        for first in range(block * rows, stop, ROWS):
            count = min(ROWS, stop - first)
            at, entries = first * k, count * k
            if len(mixed):
                for i in range(entries):
                    u[i] = scale * base[at + i] + factor * other[at + i]
                for i in range(entries):
                    mixed[at + i] = u[i]
            else:
                for i in range(entries):
                    u[i] = base[at + i]
            for c in range(len(b)):
                for i in range(count):
                    u[i * k + c] += b[c]
            s = weight[first : first + count] if len(weight) else uniforms[:count]
            if code == SOFTMAX:
                softmax(u[:entries], labels[first : first + count], k, value, slope, true, others)
                add_values(value, s, 1, sums[block])
            elif k == 1:
                losses(code, parameter, u[:entries], y[at : at + entries], value, slope)
                add_values(value, s, 1, sums[block])
            else:
                losses(code, parameter, u[:entries], y[at : at + entries], value, slope)
                for i in range(count):
                    for c in range(1, k):
                        value[i * k] += value[i * k + c]
                    value[i] = value[i * k]
                add_values(value, s, 1, sums[block])
