# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""Compiled kernels: ridge regressions of rows on the factors of columns, and the top entries of rows.

Each kernel processes a range of rows, takes arrays and numbers only, and releases the interpreter's lock, so that
threads can share the rows. Sums may be reordered by the compiler, and no kernel assumes finite numbers.
"""

from __future__ import annotations

import numpy as np

from projfree.numerics.compilation import FAST, compiled

#: Conjugate gradient steps per row and sweep; they start from the solution of the last sweep.
CG_STEPS = 3


@compiled(fastmath=FAST)
def _add_products(table, count, weight, y, x, out):
    """Compute ``out += sum_t weight_t (y_t - table_t . x) table_t``, four rows at a time."""
    k = len(x)
    whole = count - count % 4
    for t in range(0, whole, 4):
        a, b, c, d = table[t], table[t + 1], table[t + 2], table[t + 3]
        p, q, r, s = y[t], y[t + 1], y[t + 2], y[t + 3]
        for j in range(k):
            p -= a[j] * x[j]
            q -= b[j] * x[j]
            r -= c[j] * x[j]
            s -= d[j] * x[j]
        p, q, r, s = p * weight[t], q * weight[t + 1], r * weight[t + 2], s * weight[t + 3]
        for j in range(k):
            out[j] += p * a[j] + q * b[j] + r * c[j] + s * d[j]
    for t in range(whole, count):
        a, p = table[t], y[t]
        for j in range(k):
            p -= a[j] * x[j]
        p *= weight[t]
        for j in range(k):
            out[j] += p * a[j]


@compiled(fastmath=FAST)
def ridge_rows(
    indptr, indices, target, base, other_offsets, weight, factors, ridge, scale, free, shared, pull, out, start, stop
):
    """Solve a weighted ridge regression on the column factors for each row, by preconditioned conjugate gradients.

    The targets of a row are ``target - base - other_offsets[column]``. The penalty of coordinate c in row i is
    ``ridge[c] * scale[i] + shared[c]``, and ``ridge[c]`` for the first ``free`` coordinates; all are positive.
    ``pull[i]`` is added to the right-hand side, unless it is empty. The iteration starts from ``out[i]``. Rows without
    entries become zero.
    """
    k, most, pulled = factors.shape[1], 1, len(pull) > 0
    for i in range(start, stop):
        most = max(most, indptr[i + 1] - indptr[i])
    table, zero = np.empty((most, k), factors.dtype), np.zeros(most, factors.dtype)
    y = np.empty(most, factors.dtype)
    penalty, diagonal = np.empty(k, factors.dtype), np.empty(k, factors.dtype)
    r, d, q = np.empty(k, factors.dtype), np.empty(k, factors.dtype), np.empty(k, factors.dtype)
    for i in range(start, stop):
        first, count, x = indptr[i], indptr[i + 1] - indptr[i], out[i]
        if count == 0:
            x[:] = 0.0
            continue
        s = weight[first : first + count]
        for c in range(k):
            penalty[c] = ridge[c] if c < free else ridge[c] * scale[i] + shared[c]
        for t in range(count):
            j = indices[first + t]
            a, source = table[t], factors[j]
            y[t] = target[first + t] - base - other_offsets[j]
            for c in range(k):
                a[c] = source[c]
        for c in range(k):
            diagonal[c] = penalty[c]
            r[c] = pull[i, c] - penalty[c] * x[c] if pulled else -penalty[c] * x[c]
        for t in range(count):
            a, weighed = table[t], s[t]
            for c in range(k):
                diagonal[c] += weighed * a[c] * a[c]
        _add_products(table, count, s, y, x, r)
        size = 0.0
        for c in range(k):
            d[c] = r[c] / diagonal[c]
            size += r[c] * d[c]
        for _ in range(CG_STEPS):
            if not size > 0.0:
                break
            for c in range(k):
                q[c] = -penalty[c] * d[c]
            _add_products(table, count, s, zero, d, q)
            curvature = 0.0
            for c in range(k):
                curvature -= d[c] * q[c]
            if not curvature > 0.0:
                break
            length, old = size / curvature, size
            size = 0.0
            for c in range(k):
                x[c] += length * d[c]
                r[c] += length * q[c]
                size += r[c] * r[c] / diagonal[c]
            for c in range(k):
                d[c] = r[c] / diagonal[c] + (size / old) * d[c]


@compiled()
def top_of_rows(scores, best, columns):
    """Find the largest entries of each row in decreasing order, and their columns; ties go to the first column.

    Their number is the width of ``best``. Entries of minus infinity are skipped; if too few are left, the remaining
    elements of ``best`` and ``columns`` are unchanged.
    """
    most = best.shape[1]
    for i in range(len(scores)):
        have, row, top, index_labels = 0, scores[i], best[i], columns[i]
        for j in range(len(row)):
            score = row[j]
            if (have == most and not score > top[most - 1]) or score == -np.inf:
                continue
            t = have if have < most else most - 1
            have = min(have + 1, most)
            while t > 0 and top[t - 1] < score:
                top[t], index_labels[t] = top[t - 1], index_labels[t - 1]
                t -= 1
            top[t], index_labels[t] = score, j
