# mypy: disallow-untyped-decorators=False
r"""Compiled kernels over columns of a matrix: their Gram matrix, and coordinate descent for l_1 and group penalties.

A matrix A with m columns is held as ``(ptr, rows, x)``: column j is ``x[ptr[j]:ptr[j + 1]]``, at ``rows[...]`` where
the matrix is sparse; a dense one has no ``rows``. The quadratic
:math:`\tfrac12 \langle Av, h Av\rangle - \langle b, v\rangle` is tracked by the image ``z = h (A v)``, h being weights
of the rows. Without h the columns are those of H itself, and ``z`` is the gradient less that at
the start. Parameters have the shape ``(m, k)`` for k outputs, and h has one column or k.
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.numerics.compilation import FAST, compiled


@compiled(fastmath=FAST)
def add_gram(ptr: Array, columns: Array, x: Array, h: Array, out: Array) -> None:
    """Add the products of all pairs of columns to ``out``; the matrix comes by rows, with increasing columns."""
    for i in range(len(ptr) - 1):
        own, v = columns[ptr[i] : ptr[i + 1]], x[ptr[i] : ptr[i + 1]]
        for a in range(len(v)):
            line, factor = out[own[a]], h[i] * v[a]
            for b in range(a + 1):
                line[own[b]] += factor * v[b]
    for i in range(len(out)):
        for j in range(i):
            out[j, i] = out[i, j]


@compiled(fastmath=FAST)
def _multiply(first: int, last: int, rows: Array, x: Array, h: Array, z: Array, j: int, out: Array) -> None:
    """The products of column j with each of k images."""
    if len(h) == 0:
        out[:] = z[j]
    elif z.shape[1] == 1:
        total = 0.0
        if len(rows):
            for a in range(first, last):
                total += x[a] * z[rows[a], 0]
        else:
            for a in range(last - first):
                total += x[first + a] * z[a, 0]
        out[0] = total
    else:
        out[:] = 0.0
        for a in range(first, last):
            i = rows[a] if len(rows) else a - first
            for o in range(z.shape[1]):
                out[o] += x[a] * z[i, o]


@compiled(fastmath=FAST)
def _add(first: int, last: int, rows: Array, x: Array, h: Array, z: Array, step: Array) -> None:
    """Add a column times ``step``, weighted by h, to each of k images."""
    if len(rows) and z.shape[1] == 1:
        for a in range(first, last):
            z[rows[a], 0] += h[rows[a], 0] * step[0] * x[a]
        return
    for a in range(last - first):
        i = rows[first + a] if len(rows) else a
        for o in range(z.shape[1]):
            weight = 1.0 if len(h) == 0 else h[i, min(o, h.shape[1] - 1)]
            z[i, o] += weight * step[o] * x[first + a]


@compiled(error_model="numpy")
def sweep(
    ptr: Array,
    rows: Array,
    x: Array,
    h: Array,
    z: Array,
    mean: Array,
    shift: Array,
    v: Array,
    slope: Array,
    curvature: Array,
    threshold: Array,
    low: Array,
    high: Array,
    first: Array,
    joint: bool,
    which: Array,
) -> None:
    """Minimise over one part after the other of those in ``which``: the columns ``first[g]`` to ``first[g + 1]``.

    Parts are groups whose Euclidean norms are penalised where ``joint``, and ``curvature`` is at least the largest
    eigenvalue of their blocks; else each entry is a part of its own. ``mean`` holds, for each entry, the product of its
    column with the direction of the intercept, of length one; ``shift`` that of the image.
    """
    k = v.shape[1]
    step, goal = np.empty(k), np.empty_like(v)
    for g in which:
        size = 0.0
        for j in range(first[g], first[g + 1]):
            _multiply(ptr[j], ptr[j + 1], rows, x, h, z, j, step)
            for o in range(k):
                goal[j, o] = curvature[j, o] * v[j, o] - (step[o] - mean[j, o] * shift[o] + slope[j, o])
                size += goal[j, o] ** 2
        size = math.sqrt(size)
        for j in range(first[g], first[g + 1]):
            moved = False
            for o in range(k):
                pull, new = size if joint and threshold[j, o] > 0.0 else abs(goal[j, o]), 0.0
                if pull > threshold[j, o]:
                    reach = min((pull - threshold[j, o]) / curvature[j, o], high[j, o])
                    new = max(reach * (goal[j, o] / pull), low[j, o])
                if not math.isfinite(new):  # there is neither curvature nor a bound: nothing is known about the entry
                    new = v[j, o]
                step[o], v[j, o] = new - v[j, o], new
                shift[o] += step[o] * mean[j, o]
                moved = moved or step[o] != 0.0
            if moved:
                _add(ptr[j], ptr[j + 1], rows, x, h, z, step)
