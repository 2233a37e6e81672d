"""Sums over known images, of values and of slopes, without a temporary."""

from __future__ import annotations

import numpy as np
from numba import njit

from projfree.data.native.losses import HUBER, LOGISTIC, SOFTMAX, decay, losses, softmax
from projfree.data.native.outputs import add_values
from projfree.data.native.scalars import EXACT, FAST

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


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _slopes(code, parameter, u, b, y, slope, second):
    """First and second derivatives at ``u + b``, of losses that are convex and not quadratic."""
    if code == LOGISTIC:
        for i in range(len(u)):
            full = u[i] + b
            e = decay(full)
            q = 1.0 / (1.0 + e)
            slope[i] = -y[i] * ((e if y[i] * full > 0.0 else 1.0) * q)
            second[i] = e * q * q
    elif code == HUBER:
        for i in range(len(u)):
            r = (u[i] + b) - y[i]
            slope[i] = 2.0 * min(max(r, -parameter), parameter)
            second[i] = 2.0 if abs(r) <= parameter else 0.0


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FAST)
def _add_slopes(slope, second, weight, sums):
    g = h = size = 0.0
    for i in range(len(slope)):
        r = slope[i] * weight[i]
        g += r
        h += second[i] * weight[i]
        size += abs(r)
    sums[0] += g
    sums[1] += h
    sums[2] += size


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def slope_blocks(n, rows, first_block, last_block, u, b, code, parameter, y, weight, uniform, sums):
    """The weighted sums of first derivatives at ``u + b``, of second ones, and of the sizes of the first."""
    space, uniforms = np.empty((2, ROWS)), np.full(ROWS, uniform)
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, n)
        for first in range(block * rows, stop, ROWS):
            last = min(first + ROWS, stop)
            slope, second = space[0, : last - first], space[1, : last - first]
            s = weight[first:last] if len(weight) else uniforms[: last - first]
            _slopes(code, parameter, u[first:last], b, y[first:last], slope, second)
            _add_slopes(slope, second, s, sums[block])
