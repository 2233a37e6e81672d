"""Compiled kernels: one pass over a block of rows, each row read from memory once.

Imported on first use, because numba costs more to load than small problems cost to solve. Every function is at module
level and takes arrays and numbers alone, so that numba finds the compiled code on disk in the next process. A block is
worked through in tiles that stay in the cache: the images of a tile, its losses and derivatives, then its part of the
adjoint.

Sums may be reassociated (`FAST`), which the rounding allowance covers for any order within a block. What must be
accurate relative to its size is compiled with `EXACT`. Neither assumes that numbers are finite.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TILE, F_TILE = 32, 512
FAST = {"reassoc", "nsz", "contract"}
EXACT = {"nsz", "contract"}

SQUARED, LOGISTIC, SQUARED_SIGMOID, BIWEIGHT, HUBER = range(5)
#: The numbers of the losses by the names that they carry; -1 asks for images alone.
CODES = {
    "squared": SQUARED,
    "logistic": LOGISTIC,
    "squared_sigmoid": SQUARED_SIGMOID,
    "biweight": BIWEIGHT,
    "huber": HUBER,
}
IMAGES_ONLY = -1
#: Added to a number below 2^51 it leaves the nearest whole number in the last bits; converting would not vectorise.
MAGIC = 6755399441055744.0


@njit(nogil=True, cache=True, fastmath=EXACT)
def _decay(x, out, exponents):
    """``out = exp(-x)`` for x >= 0: Taylor's polynomial after taking off multiples of log 2, about 2 ulp."""
    whole = exponents.view(np.float64)
    for i in range(len(x)):
        t = -min(x[i], 700.0)
        moved = t * 1.4426950408889634 + MAGIC  # the nearest whole number k stands in its last bits
        k = moved - MAGIC
        r = (t - k * 0.6931471803691238) - k * 1.9082149292705877e-10
        p = 1.6059043836821613e-10
        p = p * r + 2.08767569878681e-09
        p = p * r + 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 0.0001984126984126984
        p = p * r + 0.001388888888888889
        p = p * r + 0.008333333333333333
        p = p * r + 0.041666666666666664
        p = p * r + 0.16666666666666666
        p = p * r + 0.5
        p = p * r + 1.0
        out[i] = p * r + 1.0
        whole[i] = moved
    for i in range(len(x)):
        exponents[i] = (exponents[i] + 1023) << 52
    for i in range(len(x)):
        out[i] *= whole[i]


@njit(nogil=True, cache=True, fastmath=EXACT)
def _log1p(e):
    """log(1 + e) for e in [0, 1] as twice the inverse hyperbolic tangent of e / (2 + e)."""
    z = e / (2.0 + e)
    q = z * z
    s = 1.0 / 35.0
    s = s * q + 1.0 / 33.0
    s = s * q + 1.0 / 31.0
    s = s * q + 1.0 / 29.0
    s = s * q + 1.0 / 27.0
    s = s * q + 1.0 / 25.0
    s = s * q + 1.0 / 23.0
    s = s * q + 1.0 / 21.0
    s = s * q + 1.0 / 19.0
    s = s * q + 1.0 / 17.0
    s = s * q + 1.0 / 15.0
    s = s * q + 1.0 / 13.0
    s = s * q + 1.0 / 11.0
    s = s * q + 1.0 / 9.0
    s = s * q + 1.0 / 7.0
    s = s * q + 1.0 / 5.0
    s = s * q + 1.0 / 3.0
    return 2.0 * z * (s * q + 1.0)


@njit(nogil=True, cache=True, fastmath=EXACT)
def losses(code, parameter, u, y, value, slope, scratch, exponents):
    """Value and derivative of a tile of predictions."""
    n = len(u)
    if code == SQUARED:
        for i in range(n):
            r = u[i] - y[i]
            value[i] = r * r
            slope[i] = 2.0 * r
    elif code == LOGISTIC:
        for i in range(n):
            scratch[i] = abs(u[i])
        _decay(scratch[:n], value[:n], exponents[:n])
        for i in range(n):
            m, e = y[i] * u[i], value[i]
            value[i] = _log1p(e) - min(m, 0.0)
            slope[i] = -y[i] * ((e if m > 0.0 else 1.0) / (1.0 + e))
    elif code == SQUARED_SIGMOID:
        for i in range(n):
            scratch[i] = abs(u[i])
        _decay(scratch[:n], value[:n], exponents[:n])
        for i in range(n):
            m, e = y[i] * u[i], value[i]
            q = 1.0 / (1.0 + e)
            s = (e if m > 0.0 else 1.0) * q
            value[i] = s * s
            slope[i] = -2.0 * y[i] * s * (e * q * q)
    elif code == BIWEIGHT:
        for i in range(n):
            t = min(max((u[i] - y[i]) / parameter, -1e100), 1e100)
            q = 1.0 / (1.0 + t * t)
            value[i] = t * t * q
            slope[i] = 2.0 / parameter * (t * q * q)
    else:
        for i in range(n):
            r = u[i] - y[i]
            a = abs(r)
            value[i] = r * r if a <= parameter else parameter * (2.0 * a - parameter)
            slope[i] = 2.0 * min(max(r, -parameter), parameter)


@njit(nogil=True, cache=True, fastmath=FAST)
def _sums(u, b, value, slope, weight, sums):
    """Weigh the derivatives of a tile in place and add to its sums; the order is that of `Sums`."""
    v = va = a = aa = sh = sq = g = ga = mu = 0.0
    for i in range(len(u)):
        s, d = weight[i], slope[i]
        r = d * s
        slope[i] = r
        v += s * value[i]
        va += abs(s * value[i])
        a += r * u[i]
        aa += abs(r * u[i])
        sh += abs(r * (u[i] + b))
        sq += r * d
        g += r
        ga += abs(r)
        mu += s * u[i]
    sums[0] += v
    sums[1] += va
    sums[2] += a
    sums[3] += aa
    sums[4] += sh
    sums[5] += sq
    sums[6] += g
    sums[7] += ga
    sums[8] += mu


@njit(nogil=True, cache=True, fastmath=FAST)
def _dots(X, first, count, v, out):
    """``out[i] = X[first + i] @ v`` for a tile; row by row, which is the order that memory is fastest in."""
    for i in range(count):
        x = X[first + i]
        total = 0.0
        for j in range(len(v)):
            total += x[j] * v[j]
        out[i] = total


@njit(nogil=True, cache=True, fastmath=FAST)
def _add_rows(X, first, count, r, g):
    """``g += sum_i r[i] X[first + i]`` for a tile that is in the cache, four rows at a time."""
    i = 0
    while i + 4 <= count:
        x0, x1, x2, x3 = X[first + i], X[first + i + 1], X[first + i + 2], X[first + i + 3]
        r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
        for j in range(len(g)):
            g[j] += (r0 * x0[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])
        i += 4
    while i < count:
        for j in range(len(g)):
            g[j] += r[i] * X[first + i, j]
        i += 1


@njit(nogil=True, cache=True, fastmath=EXACT)
def _mix(base, coefficients, offsets, met, first, count, whole, u):
    """The images of a tile from the known part and the vectors just met, which get their offsets here."""
    for i in range(count):
        t = base[first + i] if len(base) else 0.0
        for k in range(len(coefficients)):
            image = met[k, first + i] + offsets[k]
            met[k, first + i] = image
            t += coefficients[k] * image
        u[i] = t
        whole[first + i] = t


@njit(nogil=True, cache=True, fastmath=EXACT)
def _tile_loss(first, count, u, code, parameter, y, weight, uniform, b, space, exponents, sums):
    """The weighted derivatives of a tile, into the first row of ``space``, and its sums."""
    slope, value, full, scratch, s = space[0], space[1], space[2], space[3], space[4]
    for i in range(count):
        full[i] = u[i] + b
        s[i] = weight[first + i] if len(weight) else uniform
    losses(
        code,
        parameter,
        full[:count],
        y[first : first + count],
        value,
        slope,
        scratch,
        exponents,
    )
    _sums(u[:count], b, value[:count], slope[:count], s[:count], sums)


@njit(nogil=True, cache=True, fastmath=EXACT)
def c_blocks(
    X, offset, rows, first_block, last_block, vectors, coefficients, offsets, base, met, whole,
    code, parameter, y, weight, uniform, b, gradients, sums,
):  # fmt: skip
    """Blocks of ``rows`` rows each of a C-ordered array whose first row is row ``offset`` of the data.

    Each block has its own row of ``gradients`` and ``sums``, to be added by the caller in a fixed order.
    """
    end = offset + X.shape[0]
    u, space, exponents = np.empty(TILE), np.empty((5, TILE)), np.empty(TILE, np.int64)
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, end)
        for first in range(max(block * rows, offset), stop, TILE):  # a chunk may begin within a block
            count = min(TILE, stop - first)
            for k in range(len(coefficients)):
                _dots(X, first - offset, count, vectors[k], met[k, first : first + count])
            _mix(base, coefficients, offsets, met, first, count, whole, u)
            if code != IMAGES_ONLY:
                _tile_loss(
                    first,
                    count,
                    u,
                    code,
                    parameter,
                    y,
                    weight,
                    uniform,
                    b,
                    space,
                    exponents,
                    sums[block],
                )
                _add_rows(X, first - offset, count, space[0], gradients[block])


@njit(nogil=True, cache=True, fastmath=FAST)
def f_blocks(
    X, offset, rows, first_block, last_block, vectors, coefficients, offsets, base, met, whole,
    code, parameter, y, weight, uniform, b, gradients, sums,
):  # fmt: skip
    """`c_blocks` for a Fortran-ordered array: columns are added up in tiles that stay in the cache."""
    end, d = offset + X.shape[0], X.shape[1]
    u, space, exponents = (
        np.empty(F_TILE),
        np.empty((5, F_TILE)),
        np.empty(F_TILE, np.int64),
    )
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, end)
        for first in range(max(block * rows, offset), stop, F_TILE):
            count = min(F_TILE, stop - first)
            for k in range(len(coefficients)):
                image = met[k, first : first + count]
                image[:] = 0.0
                for j in range(d):
                    column, c = (
                        X[first - offset : first - offset + count, j],
                        vectors[k, j],
                    )
                    for i in range(count):
                        image[i] += c * column[i]
            _mix(base, coefficients, offsets, met, first, count, whole, u)
            if code != IMAGES_ONLY:
                _tile_loss(
                    first,
                    count,
                    u,
                    code,
                    parameter,
                    y,
                    weight,
                    uniform,
                    b,
                    space,
                    exponents,
                    sums[block],
                )
                slope = space[0]
                for j in range(d):
                    column, total = X[first - offset : first - offset + count, j], 0.0
                    for i in range(count):
                        total += slope[i] * column[i]
                    gradients[block, j] += total


@njit(nogil=True, cache=True, fastmath=EXACT)
def _sparse_dots(values, columns, pointers, first, count, v, out):
    """`_dots` for sparse rows; four partial sums, because one would wait for itself."""
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


@njit(nogil=True, cache=True, fastmath=EXACT)
def _sparse_add_rows(values, columns, pointers, first, count, r, g):
    """`_add_rows` for sparse rows."""
    one = np.uint64(1)
    for i in range(count):
        q, end, t = pointers[first + i], pointers[first + i + 1], r[i]
        while q < end:
            g[columns[q]] += t * values[q]
            q += one


@njit(nogil=True, cache=True, fastmath=EXACT)
def csr_blocks(
    values, columns, pointers, rows, first_block, last_block, vectors, coefficients, offsets, base, met, whole,
    code, parameter, y, weight, uniform, b, gradients, sums,
):  # fmt: skip
    """`c_blocks` for compressed sparse rows.

    ``columns`` and ``pointers`` are unsigned, which spares a test for negative indices at every entry; they must have
    been checked, because nothing here does.
    """
    end = len(pointers) - 1
    u, space, exponents = np.empty(TILE), np.empty((5, TILE)), np.empty(TILE, np.int64)
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, end)
        for first in range(block * rows, stop, TILE):
            count = min(TILE, stop - first)
            for k in range(len(coefficients)):
                _sparse_dots(values, columns, pointers, first, count, vectors[k], met[k, first : first + count])
            _mix(base, coefficients, offsets, met, first, count, whole, u)
            if code != IMAGES_ONLY:
                _tile_loss(
                    first,
                    count,
                    u,
                    code,
                    parameter,
                    y,
                    weight,
                    uniform,
                    b,
                    space,
                    exponents,
                    sums[block],
                )
                _sparse_add_rows(values, columns, pointers, first, count, space[0], gradients[block])
