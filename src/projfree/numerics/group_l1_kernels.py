# mypy: disallow-untyped-decorators=False
r"""Compiled kernels over the columns of a matrix: products, and coordinate descent for l_1 and group-l_1 penalties.

A matrix A with m columns is held as ``(kind, ptr, rows, x)``: column j is ``x[ptr[j]:ptr[j + 1]]``, at ``rows[...]``
where the matrix is sparse. The quadratic :math:`\tfrac12 |A v|^2 - \langle b, v\rangle` is tracked by the image
``z = A v``. Of kind ``GRAM`` the columns are those of :math:`H = A^T A` itself, and ``z = H v`` is the gradient plus b.
Parameters have the shape ``(m, k)`` for k outputs; with more than one output, ``h`` may hold a weight for each row and
output, by which images are multiplied.
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.numerics.compilation import FAST, compiled
from projfree.numerics.group_l1_qp import GRAM, SPARSE


@compiled()
def select_columns(indptr: Array, indices: Array, data: Array, which: Array, ptr: Array, rows: Array, x: Array) -> None:
    """Copy some of compressed columns to where ``ptr`` says."""
    for j in range(len(which)):
        first = indptr[which[j]]
        for a in range(ptr[j + 1] - ptr[j]):
            rows[ptr[j] + a] = indices[first + a]
            x[ptr[j] + a] = data[first + a]


@compiled(fastmath=FAST)
def add_gram(ptr: Array, rows: Array, x: Array, ends: Array, out: Array) -> None:
    """Add the products of all pairs of sparse columns to ``out``; ``ends`` says where each row of them begins."""
    columns, values, at = np.empty(len(x), dtype=np.int32), np.empty(len(x)), ends.copy()
    for j in range(len(ptr) - 1):
        for a in range(ptr[j], ptr[j + 1]):
            to = at[rows[a]]
            at[rows[a]] = to + 1
            columns[to], values[to] = j, x[a]
    for i in range(len(ends) - 1):
        own, v = columns[ends[i] : ends[i + 1]], values[ends[i] : ends[i + 1]]
        for a in range(len(v)):
            line = out[own[a]]
            for b in range(a + 1):
                line[own[b]] += v[a] * v[b]
    for i in range(len(out)):
        for j in range(i):
            out[j, i] = out[i, j]


@compiled(fastmath=FAST)
def _dot(rows: Array, x: Array, z: Array) -> float:
    total = 0.0
    if len(rows):
        for a in range(len(x)):
            total += x[a] * z[rows[a]]
    else:
        for a in range(len(x)):
            total += x[a] * z[a]
    return total


@compiled(fastmath=FAST)
def _add(rows: Array, x: Array, step: float, z: Array) -> None:
    if len(rows):
        for a in range(len(x)):
            z[rows[a]] += step * x[a]
    else:
        for a in range(len(x)):
            z[a] += step * x[a]


@compiled(fastmath=FAST)
def _dots(kind: int, j: int, rows: Array, x: Array, z: Array, out: Array) -> None:
    """The products of a column with each of k images."""
    k = z.shape[1]
    if kind == GRAM:
        out[:] = z[j]
    elif k == 1:
        out[0] = _dot(rows, x, z[:, 0])
    else:
        out[:] = 0.0
        for a in range(len(x)):
            image = z[rows[a]] if kind == SPARSE else z[a]
            for o in range(k):
                out[o] += x[a] * image[o]


@compiled(fastmath=FAST)
def _adds(kind: int, rows: Array, x: Array, step: Array, h: Array, z: Array) -> None:
    """Add a column times ``step``, and times the weights h if there are any, to each of k images."""
    k = z.shape[1]
    if k == 1:
        _add(rows, x, step[0], z[:, 0])
        return
    weighted = h.shape[1] > 0
    for a in range(len(x)):
        i = rows[a] if kind == SPARSE else a
        image = z[i]
        for o in range(k):
            image[o] += x[a] * step[o] * (h[i, o] if weighted else 1.0)


@compiled()
def multiply(kind: int, ptr: Array, rows: Array, x: Array, h: Array, v: Array, z: Array) -> None:
    """Add the weighted image of ``v`` to ``z``."""
    for j in range(len(v)):
        if np.any(v[j] != 0.0):
            own = slice(ptr[j], ptr[j + 1])
            _adds(kind, rows[own], x[own], v[j], h, z)


@compiled()
def adjoint(kind: int, ptr: Array, rows: Array, x: Array, z: Array, out: Array) -> None:
    """The products of all columns with ``z``."""
    for j in range(len(out)):
        own = slice(ptr[j], ptr[j + 1])
        _dots(kind, j, rows[own], x[own], z, out[j])


@compiled(error_model="numpy")
def sweep_entries(
    kind: int,
    ptr: Array,
    rows: Array,
    x: Array,
    h: Array,
    z: Array,
    mean: Array,
    shift: Array,
    v: Array,
    b: Array,
    diagonal: Array,
    threshold: Array,
    low: Array,
    high: Array,
    which: Array,
) -> None:
    """Minimise over one entry after the other of the columns ``which``, within ``low`` and ``high``.

    ``mean`` holds, for each entry, the product of its column with the direction of the intercept, of length one;
    ``shift`` that of the image. Both are zero where there is no intercept.
    """
    k = v.shape[1]
    slope, step = np.empty(k), np.empty(k)
    for j in which:
        own = slice(ptr[j], ptr[j + 1])
        _dots(kind, j, rows[own], x[own], z, slope)
        moved = False
        for o in range(k):
            d, old, t = diagonal[j, o], v[j, o], threshold[j, o]
            goal, new = d * old - (slope[o] - mean[j, o] * shift[o] - b[j, o]), 0.0
            if goal > t:
                new = min((goal - t) / d, high[j, o])
            elif goal < -t:
                new = max((goal + t) / d, low[j, o])
            if not math.isfinite(new):  # no curvature and no bound: nothing is known about this entry
                new = old
            step[o] = new - old
            if step[o] != 0.0:
                moved = True
                v[j, o] = new
                shift[o] += step[o] * mean[j, o]
        if moved:
            _adds(kind, rows[own], x[own], step, h, z)


@compiled(error_model="numpy")
def sweep_groups(
    kind: int,
    ptr: Array,
    rows: Array,
    x: Array,
    h: Array,
    z: Array,
    mean: Array,
    shift: Array,
    v: Array,
    b: Array,
    first: Array,
    largest: Array,
    threshold: Array,
    high: Array,
    which: Array,
) -> None:
    """A proximal step for one group after the other of ``which``: columns ``first[g]`` to ``first[g + 1]``.

    ``largest`` is at least the largest eigenvalue of the block of each group, so that every step descends.
    """
    k = v.shape[1]
    slope, step = np.empty(k), np.empty_like(v)
    for g in which:
        size = 0.0
        for j in range(first[g], first[g + 1]):
            own = slice(ptr[j], ptr[j + 1])
            _dots(kind, j, rows[own], x[own], z, slope)
            for o in range(k):
                step[j, o] = largest[g] * v[j, o] - (slope[o] - mean[j, o] * shift[o] - b[j, o])
                size += step[j, o] ** 2
        size = math.sqrt(size)
        share = 0.0 if size <= threshold[g] else min((size - threshold[g]) / largest[g], high[g]) / size
        if not math.isfinite(share):
            continue
        for j in range(first[g], first[g + 1]):
            moved = False
            for o in range(k):
                new = share * step[j, o]
                step[j, o] = new - v[j, o]
                v[j, o] = new
                shift[o] += step[j, o] * mean[j, o]
                moved = moved or step[j, o] != 0.0
            if moved:
                own = slice(ptr[j], ptr[j + 1])
                _adds(kind, rows[own], x[own], step[j], h, z)
