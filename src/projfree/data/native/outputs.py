"""Several outputs: both products of a tile in blocks of registers.

A tile of rows is copied first, whatever its dtype and layout, as float64 in C order; that costs a tenth of the products
and makes one kernel serve all tables. Outputs are padded with zeros to a multiple of the vector length.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from projfree.data.native.dense import tile_for
from projfree.data.native.lanes import (
    adjoint_1x4,
    adjoint_1x8,
    adjoint_4x8,
    adjoint_8x4,
    fetch,
    image_1x4,
    image_1x8,
    image_4x8,
    image_8x4,
)
from projfree.data.native.losses import IMAGES_ONLY, SOFTMAX, losses, softmax
from projfree.data.native.scalars import EXACT, FAST

#: Rows of a tile: what makes the copy and its residuals fit into the first cache at some 90 columns.
ROWS = 32
#: Sums of a pass, and for each output; see `Sums`.
SCALARS, OUTPUT_SUMS = 6, 3


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _images(X, count, W, out, table, ahead, share):
    """``out = X @ W`` for ``count`` rows; W has a multiple of four columns.

    Meanwhile ``share`` bytes of the table from row ``ahead`` on are fetched, a part with each block of rows.
    """
    k = W.shape[1]
    wide, four, eight = k - k % 8, count - count % 4, count - count % 8
    for c in range(0, wide, 8):
        for i in range(0, four, 4):
            if c == 0:
                fetch(table, ahead, share * i // count, share * (i + 4) // count)
            image_4x8(X, i, W, c, out)
        for i in range(four, count):
            image_1x8(X, i, W, c, out)
    if wide < k:
        for i in range(0, eight, 8):
            if wide == 0:
                fetch(table, ahead, share * i // count, share * (i + 8) // count)
            image_8x4(X, i, W, wide, out)
        for i in range(eight, count):
            image_1x4(X, i, W, wide, out)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _adjoint(X, count, R, out, table, ahead, share):
    """``out += X.T @ R`` for ``count`` rows; meanwhile as many bytes are fetched again, behind those of `_images`."""
    k, d = R.shape[1], X.shape[1]
    wide, four, eight = k - k % 8, d - d % 4, d - d % 8
    for c in range(0, wide, 8):
        for j in range(0, four, 4):
            if c == 0:
                fetch(table, ahead, share + share * j // d, share + share * (j + 4) // d)
            adjoint_4x8(X, count, R, c, j, out)
        for j in range(four, d):
            adjoint_1x8(X, count, R, c, j, out)
    if wide < k:
        for j in range(0, eight, 8):
            if wide == 0:
                fetch(table, ahead, share + share * j // d, share + share * (j + 8) // d)
            adjoint_8x4(X, count, R, wide, j, out)
        for j in range(eight, d):
            adjoint_1x4(X, count, R, wide, j, out)


@njit(nogil=True, cache=True)
def _copy(X, first, count, out):
    """Some rows of a table as float64 in C order."""
    for i in range(count):
        for j in range(X.shape[1]):
            out[i, j] = X[first + i, j]


@njit(nogil=True, cache=True)
def _copy_columns(X, first, count, out):
    """`_copy` for a Fortran-ordered table."""
    for j in range(X.shape[1]):
        for i in range(count):
            out[i, j] = X[first + i, j]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _meet(pads, offset, k, out):
    """The padded images of a tile as rows of k numbers that follow one another, offset by a number for each of them."""
    if pads.shape[1] == k:
        flat = pads.reshape(-1)
        for i in range(len(out)):
            out[i] = flat[i] + offset[i]
        return
    for i in range(len(out) // k):
        for c in range(k):
            out[i * k + c] = pads[i, c] + offset[c]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _mix(base, scale, coefficients, met, u):
    """The images of a tile from the known part and the vectors just met, all flat."""
    for i in range(len(u)):
        u[i] = scale * base[i] if len(base) else 0.0
    for q in range(len(coefficients)):
        for i in range(len(u)):
            u[i] += coefficients[q] * met[q, i]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FAST)
def _add_sums(u, full, slope, weight, k, work, R, sums):
    """The residuals into R, and all sums but those of the losses; ``weight`` has one number for each prediction."""
    a = aa = sh = sq = 0.0
    for i in range(len(u)):
        d = slope[i]
        r = d * weight[i]
        slope[i] = r
        a += r * u[i]
        aa += abs(r * u[i])
        sh += abs(r * full[i])
        sq += r * d
    sums[2] += a
    sums[3] += aa
    sums[4] += sh
    sums[5] += sq
    for i in range(len(u)):
        work[0, i] = slope[i]
        work[1, i] = abs(slope[i])
        work[2, i] = weight[i] * u[i]
    for part in range(OUTPUT_SUMS):
        _fold(work[part], len(u) // k, k)
        for c in range(k):
            sums[SCALARS + part * k + c] += work[part, c]
    if R.shape[1] == k:
        flat = R.reshape(-1)
        for i in range(len(u)):
            flat[i] = slope[i]
    else:
        for i in range(len(u) // k):
            for c in range(k):
                R[i, c] = slope[i * k + c]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _fold(x, rows, k):
    """Add up rows of k numbers into the first: halves of the rows, so that sums of few outputs are of long vectors."""
    while rows > 1:
        half = rows // 2
        low, high = x[: half * k], x[(rows - half) * k : rows * k]
        for i in range(half * k):
            low[i] += high[i]
        rows -= half


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FAST)
def add_values(value, weight, step, sums):
    """The sum of the weighted losses, of which there is one for each ``step`` weights; they are never negative."""
    total = 0.0
    for i in range(len(weight) // step):
        total += weight[i * step] * value[i]
    sums[0] += total
    sums[1] += total


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def output_blocks(
    X, fortran, offset, rows, first_block, last_block, W, coefficients, offsets, base, scale, met, keep, whole,
    code, parameter, y, labels, weight, uniform, b, gradients, sums,
):  # fmt: skip
    """`c_blocks` for several outputs; ``labels`` are the targets of softmax, ``y`` those of all other losses, flat.

    Each entry of ``W`` is a matrix with padded columns, and so is each of ``gradients``.
    """
    end, d, k, padded = offset + X.shape[0], X.shape[1], whole.shape[1], gradients.shape[2]
    tile, m = tile_for(ROWS, 8, 8 * d), len(coefficients)
    copy, pads, R = np.empty((tile, d)), np.empty((tile, padded)), np.zeros((tile, padded))
    space, work, shifts = np.empty((6, tile * k)), np.empty((OUTPUT_SUMS, tile * k)), _tiled(offsets, tile)
    u, slope, value, true, others = space[0], space[1], space[2], space[3], space[4]
    intercept = _tiled(b.reshape(1, -1), tile)[0]
    flat_met, flat_base, flat_whole = met.reshape(m, -1), base.reshape(-1), whole.reshape(-1)
    s = np.full(tile * k, uniform)
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, end)
        for first in range(max(block * rows, offset), stop, tile):
            count = min(tile, stop - first)
            here, size = slice(first * k, (first + count) * k), count * k
            if fortran:
                _copy_columns(X, first - offset, count, copy)
            else:
                _copy(X, first - offset, count, copy)
            # Arithmetic is all there is to wait for here, so let the next tile come meanwhile.
            ahead = first - offset + tile
            share = 0 if fortran or ahead + tile > len(X) else tile * d * X.itemsize // 2
            for q in range(m):
                _images(copy, count, W[q], pads, X, ahead, share if q == 0 else 0)
                _meet(pads, shifts[q], k, flat_met[q, here])
            _mix(flat_base[here], scale, coefficients, flat_met[:, here], u[:size])
            if keep:
                flat_whole[here] = u[:size]
            if code == IMAGES_ONLY:
                continue
            full = u
            if len(b):
                full = space[5]
                for i in range(size):
                    full[i] = u[i] + intercept[i]
            if len(weight):
                for i in range(count):
                    for c in range(k):
                        s[i * k + c] = weight[first + i]
            if code == SOFTMAX:
                softmax(full[:size], labels[first : first + count], k, value, slope, true, others)
                add_values(value, s[:size], k, sums[block])
            else:
                losses(code, parameter, full[:size], y[here], value, slope)
                add_values(value, s[:size], 1, sums[block])
            _add_sums(u[:size], full[:size], slope, s[:size], k, work, R, sums[block])
            _adjoint(copy, count, R, gradients[block], X, ahead, share)
    if not len(b):
        sums[first_block:last_block, 4] = 0.0  # no addition of an intercept, no rounding


@njit(nogil=True, cache=True)
def _tiled(rows, times):
    """Each row repeated."""
    k = rows.shape[1]
    out = np.empty((rows.shape[0], times * k))
    for q in range(rows.shape[0]):
        for i in range(times * k):
            out[q, i] = rows[q, i % k]
    return out
