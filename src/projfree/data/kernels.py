"""Compiled tangents: the sums and the gradient of a loss in one read of the rows.

A block is worked through in tiles that stay in the cache: the predictions of a tile, its losses and derivatives, its
sums, then its part of the gradient. The kernels are compiled once for all losses: the loss is a compiled function that
they call once for each tile and point. Sums within a block may be taken in any order, which the rounding allowance
covers; the order depends on the machine code alone, and each block has its own row of ``sums`` and ``gradients``.

Importing this module imports numba, which costs more than small problems take to solve: `data.rows.compiled` says
which passes come here. `Pass.__call__` computes the same in NumPy, up to rounding: it is the specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  # the BLAS of `np.dot` in compiled code; loaded now, so that it is limited
from numba import cfunc, types

from projfree.checks import Array, is_sparse
from projfree.data.rows import (
    ALONG,
    ALONG_SIZE,
    MEAN_IMAGE,
    SCALARS,
    SHIFTED,
    SIZE,
    SLOPE,
    SLOPE_SIZE,
    SQUARE,
    TILE_BYTES,
    VALUE,
    Pass,
    tangent_size,
)
from projfree.numerics.compilation import FAST, compiled
from projfree.numerics.sums import tree_sum
from projfree.runtime import single_blas

if TYPE_CHECKING:
    from projfree.data.rows import Blocks

#: Rows of a tile for one output, at most, and for several: its bytes should be a part of the second-level cache. The
#: second is also the least for Fortran-ordered and sparse tables, whose columns are read in runs of that length.
TILE, SHORT_TILE = 256, 64
#: Points of a pass, at most.
MOST_POINTS = 4

#: Called on the ends of a range of blocks.
Work = Callable[[int, int], None]
_EXACT = {"nsz", "contract"}
_VECTOR = types.Array(types.float64, 1, "C")
_LOSS = types.void(*[_VECTOR] * 5)
_kernel = compiled(fastmath=FAST, error_model="numpy")  # Python's test for zero keeps a loop from being vectorised


class Arguments(NamedTuple):
    """A tangent with p points, m vectors, d features and k outputs; see `Pass`. What there is not is an empty array.

    Attributes
    ----------
    vectors : ndarray of shape (m, d, k)
    sources : ndarray of int of shape (p,)
        The vector of each point, -1 where its predictions are known or zero.
    offsets, b : ndarray of shape (p, r k)
        What is added to the predictions of the points, and their intercepts, for r rows.
    known, keep : tuple of four arrays
        The known predictions of points, and where those of points are written, flat.
    y, weight : ndarray
        One or k numbers a row, flat.
    outputs, targets, values : int
        k, and how many targets and losses a row has: k, or one where the loss couples the outputs.
    uniform : float
        The weight of each row where there are none.
    shifted : bool
        Whether there is an intercept.
    parameters : ndarray
        Of the loss.
    gradients : ndarray of shape (blocks, d, k)
    sums : ndarray of shape (blocks, ...)
        See `projfree.data.rows`.
    """

    vectors: Array
    sources: Array
    offsets: Array
    b: Array
    known: tuple[Array, ...]
    keep: tuple[Array, ...]
    y: Array
    weight: Array
    outputs: int
    targets: int
    values: int
    uniform: float
    shifted: bool
    parameters: Array
    gradients: Array
    sums: Array


class Compiled:
    """A pass in compiled code, called on ranges of blocks; sums are added up over the chunks of a table."""

    def __init__(self, work: Pass, features: int, cut: Blocks) -> None:
        loss, b = work.step.loss, work.step.b  # type: ignore[attr-defined]  # those of a tangent
        points, k, nothing = len(work.sources), math.prod(work.outputs), np.empty(0)
        self._outputs, self._rows, self._one = work.outputs, cut.rows, k == 1 and not loss.coupled
        self._loss = loss_kernel(loss.kernel)
        rows = TILE if self._one else SHORT_TILE
        sources = np.array([source if isinstance(source, int) else -1 for source in work.sources])
        offsets = np.zeros((points, k))
        if work.offsets is not None:
            offsets[sources >= 0] = np.reshape(work.offsets, (-1, k))[sources[sources >= 0]]
        known = [source.reshape(-1) if isinstance(source, np.ndarray) else nothing for source in work.sources]
        keep = [nothing if own is None else own.reshape(-1) for own in work.keep]
        self._args = Arguments(
            vectors=_read_only(np.reshape(work.vectors, (-1, features, k))),
            sources=_read_only(sources, np.int64),
            offsets=_read_only(np.tile(offsets, rows)),
            b=_read_only([np.tile(np.broadcast_to(0.0 if own is None else np.ravel(own), k), rows) for own in b]),
            known=tuple(_read_only(own) for own in (*known, *[nothing] * (MOST_POINTS - points))),
            keep=(*keep, *[nothing] * (MOST_POINTS - points)),
            y=_read_only(np.ravel(work.y)),
            weight=_read_only(nothing if work.weight is None else work.weight),
            outputs=k,
            targets=work.y.size // work.n,
            values=1 if loss.coupled else k,
            uniform=1.0 / work.n,
            shifted=b[0] is not None,
            parameters=loss_parameters(loss),
            gradients=np.zeros((cut.count, features, k)),
            sums=np.zeros((cut.count, tangent_size(k, points))),
        )

    def over(self, X: Any, offset: int) -> Work | None:
        """The work on a table, or on the chunk of it that begins at row ``offset``; None where it has no kernel."""
        if is_sparse(X):  # canonical, with indices that have been checked
            if not self._one:
                return None
            unsigned = _read_only(X.indices, X.indices.dtype).view(f"u{X.indices.itemsize}")
            parts = _read_only(X.data, X.data.dtype), unsigned, _read_only(X.indptr, X.indptr.dtype)
            return self._work(sparse_rows, *parts, self._rows, SHORT_TILE)
        fortran = not X.flags.c_contiguous
        if (fortran and not X.flags.f_contiguous) or not X.flags.aligned:
            return None
        tile = TILE if self._one else SHORT_TILE
        while tile > (SHORT_TILE if fortran else 8) and tile * X.shape[1] * X.itemsize > TILE_BYTES // 4:
            tile //= 2  # a divisor of `TILE`, so that chunks of a file can begin where a tile does
        if self._one:
            return self._work(dense_rows, _read_only(X.T if fortran else X, X.dtype), fortran, offset, self._rows, tile)
        if X.dtype != np.float64 or fortran:  # which BLAS does not take
            return None
        return self._work(dense_outputs, _read_only(X), offset, self._rows, tile)

    def _work(self, kernel: Any, *where: Any) -> Work:
        def work(first: int, last: int) -> None:
            with single_blas(not self._one):
                kernel(*where, first, last, self._loss, self._args)

        return work

    def total(self) -> tuple[Array, Array]:
        """The sums over all blocks and the gradient; to be called once, at the end."""
        sums, gradients = self._args.sums, self._args.gradients
        return tree_sum(sums), tree_sum(gradients).reshape(gradients.shape[1], *self._outputs)


def _read_only(array: Any, dtype: Any = np.float64) -> Array:
    """A contiguous view, or a copy, that cannot be written to: one compiled type for all inputs."""
    view: Array = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def loss_parameters(loss: Any) -> Array:
    """The numbers among the fields of a loss, in their order."""
    values = [getattr(loss, field.name) for field in fields(loss)] if is_dataclass(loss) else []
    return np.array([value for value in values if isinstance(value, int | float)], dtype=np.float64)


@cache
def loss_kernel(kernel: FunctionType) -> Any:
    """The compiled form of a loss, which kernels can call; on disk it is kept under the file of the loss."""
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": _EXACT}
    try:
        return cfunc(_LOSS, cache=True, **options)(kernel)
    except RuntimeError:  # numba finds no folder that can be written to
        return cfunc(_LOSS, **options)(kernel)


@_kernel
def _add_dots(X, row, column, rows, columns, v, out):
    """``out += X[row : row + rows, column : column + columns] @ v``, row by row: memory is fastest in that order."""
    for i in range(rows):
        total = 0.0
        for j in range(columns):  # unsigned, which spares a test
            total += X[row + i, column + j] * v[j]
        out[i] += total


@_kernel
def _add_rows(X, row, column, rows, columns, v, out):
    """``out += v @ X[row : row + rows, column : column + columns]``; four rows for each time that ``out`` is read."""
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        p, a, b, c, d = row + i, v[i], v[i + 1], v[i + 2], v[i + 3]
        for j in range(columns):
            q = column + j
            out[j] += (a * X[p, q] + b * X[p + 1, q]) + (c * X[p + 2, q] + d * X[p + 3, q])
    for i in range(whole, rows):
        a = v[i]
        for j in range(columns):
            out[j] += a * X[row + i, column + j]


@_kernel
def _add_sums(loss, a, block, first, count, formed, space):
    """Add what a tile contributes to the sums, given the predictions ``formed`` of its vectors.

    Predictions are kept where that is asked for; the weighted derivatives at the first point are left in ``space[0]``.
    """
    points, k, sums = len(a.sources), a.outputs, a.sums[block]
    r, u, full, value, s, y = space[0], space[1], space[2], space[3], space[4], space[5]
    size, values, targets = count * k, count * a.values, count * a.targets
    their = a.y[first * a.targets : (first + count) * a.targets]
    for i in range(targets):
        y[i] = their[i]
    _weigh(a, first, count, s)
    for j in range(points - 1, -1, -1):  # the first point last, because its derivatives are wanted
        offset, b, known, source = a.offsets[j], a.b[j], a.known[j][first * k : (first + count) * k], a.sources[j]
        if source >= 0:
            own = formed[source]
            for i in range(size):
                u[i] = own[i] + offset[i]
        elif len(known):
            for i in range(size):
                u[i] = known[i]
        else:
            u[:size] = 0.0
        keep = a.keep[j][first * k : (first + count) * k]
        for i in range(len(keep)):
            keep[i] = u[i]
        for i in range(size):
            full[i] = u[i] + b[i]
        loss(a.parameters, full[:size], y[:targets], value[:values], r[:size])
        total, total_size = _weighted_sums(value, s, values, k // a.values)
        sums[VALUE if j == 0 else len(sums) - points + j] += total
    sums[SIZE] += total_size
    along = along_size = shifted = square = slope = slope_size = mean = 0.0
    for i in range(size):
        d = r[i]
        r[i] = t = d * s[i]
        along += t * u[i]
        along_size += abs(t * u[i])
        shifted += abs(t * full[i])
        square += t * d
        slope += t
        slope_size += abs(t)
        mean += s[i] * u[i]
    sums[ALONG] += along
    sums[ALONG_SIZE] += along_size
    sums[SHIFTED] += shifted if a.shifted else 0.0
    sums[SQUARE] += square
    by_output = sums[SCALARS : SCALARS + 3 * k].reshape(3, k)
    if k == 1:
        by_output[SLOPE, 0] += slope
        by_output[SLOPE_SIZE, 0] += slope_size
        by_output[MEAN_IMAGE, 0] += mean
        return
    for i in range(0, size, k):
        for c in range(k):
            by_output[SLOPE, c] += r[i + c]
            by_output[SLOPE_SIZE, c] += abs(r[i + c])
            by_output[MEAN_IMAGE, c] += s[i + c] * u[i + c]


@_kernel
def _weighted_sums(x, s, count, step):
    """The sums of ``s x`` and of ``s |x|``, where one of ``step`` weights counts."""
    total = size = 0.0
    if step == 1:  # by itself, so that it is vectorised
        for i in range(count):
            total += s[i] * x[i]
            size += s[i] * abs(x[i])
    else:
        for i in range(count):
            total += s[i * step] * x[i]
            size += s[i * step] * abs(x[i])
    return total, size


@_kernel
def _weigh(a, first, count, s):
    """The weight of each prediction of a tile."""
    if len(a.weight):
        for i in range(count):
            for c in range(a.outputs):
                s[i * a.outputs + c] = a.weight[first + i]
    else:
        s[:] = a.uniform


@_kernel
def dense_rows(X, fortran, offset, rows, tile, first_block, last_block, loss, a):
    """Blocks of ``rows`` rows for one output; the first row of X, or column of its transpose, is row ``offset``."""
    n, d = (X.shape[1], X.shape[0]) if fortran else X.shape
    vectors, space = a.vectors.reshape(-1, d), np.empty((6, tile + 8))
    formed = np.empty((len(vectors), tile))
    for block in range(first_block, last_block):
        g, stop = a.gradients[block].reshape(-1), min((block + 1) * rows, offset + n)
        for first in range(max(block * rows, offset), stop, tile):  # a chunk may begin within a block
            count, line = min(tile, stop - first), first - offset
            formed[:] = 0.0
            for q in range(len(formed)):
                if fortran:
                    _add_rows(X, 0, np.uint64(line), d, np.uint64(count), vectors[q], formed[q])
                else:
                    _add_dots(X, line, np.uint64(0), count, np.uint64(d), vectors[q], formed[q])
            _add_sums(loss, a, block, first, count, formed, space)
            if fortran:
                _add_dots(X, 0, np.uint64(line), d, np.uint64(count), space[0], g)
            else:
                _add_rows(X, line, np.uint64(0), count, np.uint64(d), space[0], g)


@_kernel
def dense_outputs(X, offset, rows, tile, first_block, last_block, loss, a):
    """`dense_rows` for several outputs, with products by BLAS; X is C-ordered float64."""
    n, k = len(X), a.outputs
    formed, space = np.empty((len(a.vectors), tile * k)), np.empty((6, tile * k + 8))
    for block in range(first_block, last_block):
        stop = min((block + 1) * rows, offset + n)
        for first in range(max(block * rows, offset), stop, tile):
            count = min(tile, stop - first)
            part = X[first - offset : first - offset + count]
            for q in range(len(formed)):
                np.dot(part, a.vectors[q], formed[q, : count * k].reshape(count, k))
            _add_sums(loss, a, block, first, count, formed, space)
            a.gradients[block] += np.dot(part.T, space[0, : count * k].reshape(count, k))


@compiled(fastmath=_EXACT, error_model="numpy")  # four sums by hand: gathers into vectors are slower
def _sparse_dot(values, columns, first, last, w):
    """The product of the entries ``first`` to ``last`` with a vector."""
    a = b = c = d = 0.0
    e = first
    while e + 4 <= last:
        a += values[e] * w[columns[e]]
        b += values[e + 1] * w[columns[e + 1]]
        c += values[e + 2] * w[columns[e + 2]]
        d += values[e + 3] * w[columns[e + 3]]
        e += 4
    while e < last:
        a += values[e] * w[columns[e]]
        e += 1
    return (a + b) + (c + d)


@_kernel
def sparse_rows(values, columns, pointers, rows, tile, first_block, last_block, loss, a):
    """Blocks of compressed sparse rows for one output; ``columns`` are unsigned and must have been checked."""
    formed, space = np.empty((len(a.vectors), tile)), np.empty((6, tile + 8))
    for block in range(first_block, last_block):
        g, stop = a.gradients[block].reshape(-1), min((block + 1) * rows, len(pointers) - 1)
        for first in range(block * rows, stop, tile):
            count = min(tile, stop - first)
            for q in range(len(formed)):
                w = a.vectors[q].reshape(-1)
                for i in range(count):
                    formed[q, i] = _sparse_dot(values, columns, pointers[first + i], pointers[first + i + 1], w)
            _add_sums(loss, a, block, first, count, formed, space)
            for i in range(count):
                r = space[0, i]
                for e in range(pointers[first + i], pointers[first + i + 1]):
                    g[columns[e]] += r * values[e]
