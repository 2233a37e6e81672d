# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""Compiled kernels on the pattern of observed entries: values of a low-rank matrix, and products.

The module is imported on first use. Kernels take only arrays and numbers and release the GIL, so that threads can
process different rows. Sums may be reassociated; the numbers need not be finite.
"""

from __future__ import annotations

from projfree.numerics.compilation import FAST, compiled


@compiled(fastmath=FAST)
def values_of_pairs(left, right, rows, cols, out):
    """Compute ``out[t] = left[rows[t]] @ right[cols[t]]``."""
    k = left.shape[1]
    for t in range(len(rows)):
        i, j, total = rows[t], cols[t], 0.0
        for c in range(k):
            total += left[i, c] * right[j, c]
        out[t] = total


@compiled(fastmath=FAST)
def times_block(indptr, indices, values, block, out, start, stop):
    """Compute ``out[i] = sum_t values[t] block[indices[t]]`` over the stored entries t of row i."""
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
def gram_rows(indptr, indices, values, indptr_t, indices_t, values_t, symmetric, out, start, stop):
    """Add rows of G H^T to ``out``, given G by rows and H by columns; only the lower triangle if ``symmetric``."""
    for i in range(start, stop):
        row, last = out[i], i if symmetric else out.shape[1]
        for t in range(indptr[i], indptr[i + 1]):
            x, j = values[t], indices[t]
            for s in range(indptr_t[j], indptr_t[j + 1]):
                c = indices_t[s]
                if c > last:
                    break
                row[c] += x * values_t[s]


@compiled()
def mirror(out):
    """Copy the lower triangle to the upper one, in blocks that fit into the cache."""
    n = len(out)
    for first in range(0, n, 64):
        for second in range(0, first + 1, 64):
            for i in range(first, min(first + 64, n)):
                for j in range(second, min(second + 64, i)):
                    out[j, i] = out[i, j]
