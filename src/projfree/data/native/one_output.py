"""One output: passes over blocks of dense and of compressed sparse rows, each row read from memory once.

A tile of rows stays in the cache between its two uses. Images are formed line by line, which is the order that memory
is fastest in; lines are added to the adjoint eight at a time, which spares most of its loads and stores. Each block has
its own row of ``gradients`` and ``sums``, to be added by the caller in a fixed order.

Each factory closes over the loss, over the flags of `tiles.finish`, and over a number that changes with the code.
"""

from __future__ import annotations

import numpy as np

from projfree.data.native.arguments import RESIDUAL
from projfree.data.native.compiling import exact
from projfree.data.native.line_products import add_lines, dot, dot_two
from projfree.data.native.tiles import finish


def c_blocks(tile, tangent, slopes, several, coupled, labels, key):
    """Blocks of ``rows`` rows each of a C-ordered array whose first row is row ``offset`` of the data."""

    def blocks(X, offset, rows, most, first_block, last_block, scratch, args):
        _ = key
        formed, space = scratch
        end, d, m = offset + X.shape[0], X.shape[1], len(formed)
        for block in range(first_block, last_block):
            stop = min((block + 1) * rows, end)
            for first in range(max(block * rows, offset), stop, most):  # a chunk may begin within a block
                count, line = min(most, stop - first), first - offset
                for q in range(0, m - m % 2, 2):
                    for i in range(count):
                        dot_two(X, line + i, args.vectors, q, formed, i)
                for q in range(m - m % 2, m):
                    for i in range(count):
                        formed[q, i] = dot(X, line + i, 0, args.vectors, q, d)
                finish(tile, tangent, slopes, several, coupled, labels, args, block, first, count, formed, space)
                if tangent is not None:
                    add_lines(X, line, 0, count, space, RESIDUAL, args.gradients, block, d)

    return blocks


def f_blocks(tile, tangent, slopes, several, coupled, labels, key):
    """`c_blocks` for a Fortran-ordered array, given as its transpose."""

    def blocks(T, offset, rows, most, first_block, last_block, scratch, args):
        _ = key
        formed, space = scratch
        end, d = offset + T.shape[1], T.shape[0]
        for block in range(first_block, last_block):
            stop = min((block + 1) * rows, end)
            for first in range(max(block * rows, offset), stop, most):
                count, line = min(most, stop - first), first - offset
                for q in range(len(formed)):
                    for i in range(count):
                        formed[q, i] = 0.0
                    add_lines(T, 0, line, d, args.vectors, q, formed, q, count)
                finish(tile, tangent, slopes, several, coupled, labels, args, block, first, count, formed, space)
                if tangent is not None:
                    for j in range(d):
                        args.gradients[block, j] += dot(T, j, line, space, RESIDUAL, count)

    return blocks


@exact
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


@exact
def _add_rows(values, columns, pointers, first, count, r, g):
    """``g += sum_i r[i] X[first + i]``."""
    one = np.uint64(1)
    for i in range(count):
        q, end, t = pointers[first + i], pointers[first + i + 1], r[i]
        while q < end:
            g[columns[q]] += t * values[q]
            q += one


def csr_blocks(tile, tangent, slopes, several, coupled, labels, key):
    """`c_blocks` for compressed sparse rows.

    ``columns`` and ``pointers`` are unsigned, which spares a test for negative indices at every entry; they must have
    been checked, because nothing here does.
    """

    def blocks(values, columns, pointers, offset, rows, most, first_block, last_block, scratch, args):
        _ = key
        formed, space = scratch
        end = offset + len(pointers) - 1
        for block in range(first_block, last_block):
            stop = min((block + 1) * rows, end)
            for first in range(max(block * rows, offset), stop, most):
                count, line = min(most, stop - first), first - offset
                for q in range(len(formed)):
                    _dots(values, columns, pointers, line, count, args.vectors[q], formed[q])
                finish(tile, tangent, slopes, several, coupled, labels, args, block, first, count, formed, space)
                if tangent is not None:
                    _add_rows(values, columns, pointers, line, count, space[RESIDUAL], args.gradients[block])

    return blocks
