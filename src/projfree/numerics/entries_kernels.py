# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""Compiled kernels on the pattern of observed entries: values of a low-rank matrix, sparse times block, ridge rows.

Imported on first use. Every kernel works on a range of rows, takes arrays and numbers alone, and releases the
interpreter's lock, so that threads can share the rows. Sums may be reassociated; nothing assumes finite numbers.
"""

from __future__ import annotations

import numpy as np

from projfree.numerics.compilation import compiled

FAST = {"reassoc", "nsz", "contract"}


@compiled(fastmath=FAST)
def values_at(indptr, indices, left, right, out, start, stop):
    """``out[t] = left[i] @ right[j]`` for every stored place t = (i, j) of the rows."""
    k = left.shape[1]
    for i in range(start, stop):
        for t in range(indptr[i], indptr[i + 1]):
            j, total = indices[t], 0.0
            for c in range(k):
                total += left[i, c] * right[j, c]
            out[t] = total


@compiled(fastmath=FAST)
def values_of_pairs(rows, cols, left, right, out):
    """``out[t] = left[rows[t]] @ right[cols[t]]``."""
    k = left.shape[1]
    for t in range(len(rows)):
        i, j, total = rows[t], cols[t], 0.0
        for c in range(k):
            total += left[i, c] * right[j, c]
        out[t] = total


@compiled(fastmath=FAST)
def times_block(indptr, indices, values, block, out, start, stop):
    """``out[i] = sum_t values[t] block[indices[t]]`` over the stored places t of row i."""
    k = block.shape[1]
    for i in range(start, stop):
        row = out[i]
        for c in range(k):
            row[c] = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            x, source = values[t], block[indices[t]]
            for c in range(k):
                row[c] += x * source[c]


@compiled(fastmath=FAST)
def gram_rows_square(indptr, indices, values, indptr_t, indices_t, values_t, width, out, start, stop):
    """``out[i]``: the sum of squares of row i of G G^T, for rows of G; the Gram matrix is never stored."""
    row = np.zeros(width)
    for i in range(start, stop):
        for t in range(indptr[i], indptr[i + 1]):
            x, j = values[t], indices[t]
            for s in range(indptr_t[j], indptr_t[j + 1]):
                row[indices_t[s]] += x * values_t[s]
        total = 0.0
        for c in range(width):
            total += row[c] * row[c]
            row[c] = 0.0
        out[i] = total


@compiled(fastmath=FAST)
def gram_rows(indptr, indices, values, indptr_t, indices_t, values_t, out, start, stop):
    """Rows of G G^T, for rows of G; ``out`` must be zero."""
    for i in range(start, stop):
        row = out[i]
        for t in range(indptr[i], indptr[i + 1]):
            x, j = values[t], indices[t]
            for s in range(indptr_t[j], indptr_t[j + 1]):
                row[indices_t[s]] += x * values_t[s]


@compiled(fastmath=FAST)
def _solve(A, rhs, out, L):
    """``out = A^{-1} rhs`` by Cholesky, for a positive definite A."""
    k = len(rhs)
    for j in range(k):
        for c in range(j):
            s = A[j, c]
            for t in range(c):
                s -= L[j, t] * L[c, t]
            L[j, c] = s / L[c, c]
        s = A[j, j]
        for t in range(j):
            s -= L[j, t] * L[j, t]
        L[j, j] = np.sqrt(max(s, 1e-300))
    for j in range(k):
        s = rhs[j]
        for t in range(j):
            s -= L[j, t] * out[t]
        out[j] = s / L[j, j]
    for j in range(k - 1, -1, -1):
        s = out[j]
        for t in range(j + 1, k):
            s -= L[t, j] * out[t]
        out[j] = s / L[j, j]


@compiled(fastmath=FAST)
def ridge_rows(indptr, indices, target, weight, factors, ridge, scale, free, out, start, stop):
    """Each row's weighted ridge regression of its targets on the factors of its places.

    The penalty of coordinate c in row i is ``ridge[c] * scale[i]``, that of the first ``free`` coordinates ``ridge[c]``
    alone. ``weight`` may be empty. A coordinate without penalty and data stays zero.
    """
    k, most = factors.shape[1], 1
    for i in range(start, stop):
        most = max(most, indptr[i + 1] - indptr[i])
    table, L, rhs = np.empty((most, k)), np.empty((k, k)), np.empty(k)
    for i in range(start, stop):
        first, count = indptr[i], indptr[i + 1] - indptr[i]
        rhs[:] = 0.0
        for t in range(count):
            j, y = indices[first + t], target[first + t]
            root = 1.0
            if len(weight):
                root = np.sqrt(weight[first + t])
            for c in range(k):
                x = root * factors[j, c]
                table[t, c] = x
                rhs[c] += root * y * x
        A = np.dot(table[:count].T, table[:count])
        for c in range(k):
            A[c, c] += ridge[c] * (1.0 if c < free else scale[i])
            if A[c, c] <= 0.0:
                A[c, c] = 1.0
        _solve(A, rhs, out[i], L)
