"""Compiled passes: the sums and the gradient of a loss in one read of the rows.

A block is processed in tiles that fit into the cache: for each tile the predictions, the losses and derivatives, the
sums, and the contribution to the gradient. The kernels are compiled once for all losses: a loss is a compiled function
that they call once for each tile and point. The sums of a block may be computed in any order, which the rounding
allowance covers; the order depends on the machine code only, and each block has a separate row of ``sums`` and
``gradients``.

Importing this module imports numba, which takes longer than solving a small problem: `data.rows.compiled` decides which
passes use it. `Pass.__call__` computes the same in NumPy, up to rounding, and serves as the specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import cfunc, types
from numba.extending import register_jitable

from projfree.checks import Array, is_sparse
from projfree.data.rows import (
    ALONG,
    ALONG_SIZE,
    MEAN_IMAGE,
    PER_OUTPUT,
    SCALARS,
    SHIFTED,
    SIZE,
    SLOPE,
    SLOPE_SIZE,
    SQUARE,
    TILE_BYTES,
    TILE_ROWS,
    VALUE,
    Pass,
    tangent_size,
)
from projfree.numerics import scalars
from projfree.numerics.compilation import FAST, compiled
from projfree.numerics.sums import tree_sum

if TYPE_CHECKING:
    from projfree.data.rows import Blocks

#: Maximum number of points of a pass.
MAX_POINTS = 4

#: Function of the first block and of the end of a range of blocks.
Work = Callable[[int, int], None]
_EXACT = {"nsz", "contract"}
_GIVEN, _VECTOR = types.Array(types.float64, 1, "C", readonly=True), types.Array(types.float64, 1, "C")
_LOSS = types.void(_GIVEN, _VECTOR, _GIVEN, _VECTOR, _VECTOR)
for _function in vars(scalars).values():  # the losses call these functions
    if isinstance(_function, FunctionType):
        register_jitable(error_model="numpy", fastmath=_EXACT)(_function)
_kernel = compiled(fastmath=FAST, error_model="numpy")  # Python's check for division by zero prevents vectorisation
_inline = compiled(fastmath=FAST, error_model="numpy", inline="always")  # inlining lets constants fold


class Arguments(NamedTuple):
    """Arguments of a kernel for p points, m vectors, d features and k outputs; see `Pass`.

    Attributes
    ----------
    vectors, offsets : array
        Parameters of shape (m, k, d), and their offsets, repeated for all rows of a tile.
    sources : array of int
        Index of the vector of each point; -1 if its predictions are in ``known`` or zero.
    b : array
        Intercept of each point, repeated for all rows of a tile.
    known, keep : tuple of array
        Flat predictions of each point, as input and as output; empty arrays if there are none.
    y, weight : array
        Targets and weights; ``weight`` is empty if all rows have the weight ``uniform``.
    targets, values : int
        Number of targets and of losses per row: k, or one for class indices and for losses that couple the outputs.
    uniform : float
        Weight of a row without weights.
    shifted : bool
        Whether there is an intercept.
    parameters : array
        Numerical parameters of the loss.
    gradients, sums : array
        Results of each block, gradients of shape (blocks, k, d) and sums as in `projfree.data.rows`; kernels add to
        them.
    """

    vectors: Array
    offsets: Array
    sources: Array
    b: Array
    known: tuple[Array, ...]
    keep: tuple[Array, ...]
    y: Array
    weight: Array
    targets: int
    values: int
    uniform: float
    shifted: bool
    parameters: Array
    gradients: Array
    sums: Array


class Compiled:
    """A pass in compiled code, called on ranges of blocks; sums accumulate over the chunks of a table."""

    def __init__(self, work: Pass, features: int, cut: Blocks) -> None:
        loss, b = work.step.loss, work.step.b  # type: ignore[attr-defined]  # a tangent step
        data, k, nothing = work.data, math.prod(work.outputs), np.empty(0)
        more = [nothing] * (MAX_POINTS - len(work.sources))
        offsets = np.zeros((len(work.vectors), k)) if work.offsets is None else np.reshape(work.offsets, (-1, k))
        intercepts = [np.broadcast_to(0.0 if own is None else np.ravel(own), k) for own in b]
        vectors = [np.reshape(w, (features, k)).T for w in work.vectors]
        self._outputs, self._rows, self._loss = work.outputs, cut.rows, loss_kernel(loss.kernel)
        self._shifted = work.offsets is not None
        self._args = Arguments(
            vectors=_read_only(np.reshape(vectors, (-1, k, features))),
            offsets=_read_only(np.tile(offsets, TILE_ROWS)),
            sources=_read_only([own if isinstance(own, int) else -1 for own in work.sources], np.int64),
            b=_read_only(np.tile(intercepts, TILE_ROWS)),
            known=(*(own.reshape(-1) if isinstance(own, np.ndarray) else nothing for own in work.sources), *more),
            keep=(*(nothing if own is None else own.reshape(-1) for own in work.keep), *more),
            y=_read_only(np.ravel(data.y)),
            weight=_read_only(nothing if data.weight is None else data.weight),
            targets=data.y.size // data.n,
            values=1 if loss.coupled else k,
            uniform=1.0 / data.n,
            shifted=b[0] is not None,
            parameters=_read_only(loss_parameters(loss)),
            gradients=np.zeros((cut.count, k, features)),
            sums=np.zeros((cut.count, tangent_size(k, len(work.sources)))),
        )

    def over(self, X: Any, offset: int) -> Work | None:
        """Return the function that processes a table, or its chunk from row ``offset`` on; None if it has no kernel."""
        if is_sparse(X):  # canonical CSR with valid indices
            if self._args.gradients.shape[1] > 1:
                return None
            unsigned = [_read_only(own, own.dtype).view(f"u{own.itemsize}") for own in (X.indices, X.indptr)]
            return self._work(sparse_rows, _read_only(X.data, X.data.dtype), *unsigned, self._rows, TILE_ROWS // 8)
        fortran, tile = not X.flags.c_contiguous, TILE_ROWS
        if not (X.flags.forc and X.flags.aligned):
            return None
        while tile > (TILE_ROWS // 4 if fortran else 8) and tile * X.shape[1] * X.itemsize > TILE_BYTES // 4:
            tile //= 2  # a divisor of `TILE_ROWS`, so that chunks of a file can begin at the start of a tile
        return self._work(dense_rows, _read_only(X.T if fortran else X, X.dtype), fortran, offset, self._rows, tile)

    def _work(self, kernel: Any, *where: Any) -> Work:
        return lambda first, last: kernel(*where, first, last, self._loss, self._args)

    def total(self) -> tuple[Array, Array]:
        """Return the sums over all blocks and the gradient, after all blocks have been processed."""
        gradient, sums = tree_sum(self._args.gradients), tree_sum(self._args.sums)
        if self._shifted:
            first = SCALARS + SLOPE * len(gradient)
            sums = np.append(sums, sums[first : first + len(gradient)])
        return sums, gradient.T.reshape(len(gradient.T), *self._outputs)


def _read_only(array: Any, dtype: Any = np.float64) -> Array:
    """Return a contiguous read-only view, or a copy, so that all inputs have one compiled type."""
    view: Array = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def loss_parameters(loss: Any) -> Array:
    """Return the numerical fields of a loss, in the order of their definition."""
    values = [getattr(loss, field.name) for field in fields(loss)] if is_dataclass(loss) else []
    return np.array([value for value in values if isinstance(value, int | float)], dtype=np.float64)


@cache
def loss_kernel(kernel: FunctionType) -> Any:
    """Return the compiled function of a loss, which kernels can call.

    Numba caches it on disk under the name of this file together with its closure. The closure includes the versions of
    the files of the loss and of `projfree.numerics.scalars`, so that a change of either invalidates the cache.
    """
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": _EXACT}
    tile = register_jitable(**options)(kernel)
    files = [Path(one.__code__.co_filename) for one in (kernel, scalars.exponential)]
    versions = tuple([(own.st_mtime_ns, own.st_size) for own in map(Path.stat, filter(Path.exists, files))])

    def loss(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        _ = versions
        tile(parameters, u, y, value, slope)

    try:
        return cfunc(_LOSS, cache=True, **options)(loss)
    except RuntimeError:  # numba has no writable cache folder
        return cfunc(_LOSS, **options)(loss)


@_inline
def _add_dots(X, row, column, rows, columns, v, out):
    """Compute ``out += X[row : row + rows, column : column + columns] @ v`` row by row, the fastest memory order."""
    for i in range(rows):
        total = 0.0
        for j in range(columns):  # unsigned, which avoids the check for negative indices
            total += X[row + i, column + j] * v[j]
        out[i] += total


@_inline
def _add_rows(X, row, column, rows, columns, v, out):
    """Compute ``out += v @ X[row : row + rows, column : column + columns]``, four rows per read of ``out``."""
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        p, a, b, c, d = row + i, v[i], v[i + 1], v[i + 2], v[i + 3]
        for j in range(columns):
            q = column + j
            out[j] += (a * X[p, q] + b * X[p + 1, q]) + (c * X[p + 2, q] + d * X[p + 3, q])
    for i in range(whole, rows):
        for j in range(columns):
            out[j] += v[i] * X[row + i, column + j]


@_inline
def _add_sums(loss, a, block, first, count, formed, space):
    """Add the contribution of a tile to the sums, given the predictions ``formed`` for its vectors.

    The predictions are copied to ``keep``, and the weighted derivatives at the first point are returned in
    ``space[0]``.
    """
    points, k, sums = len(a.sources), a.gradients.shape[1], a.sums[block]
    size, values = count * k, count * a.values
    zero, full, value, weight = space[1], space[2][:size], space[3][:values], space[4]
    r, s, y = space[0][:size], weight if k == 1 else space[5], a.y[first * a.targets : (first + count) * a.targets]
    for i in range(count if len(a.weight) else 0):  # otherwise `weight` is constant
        weight[i] = a.weight[first + i]
    for i in range(count if k > 1 else 0):
        for c in range(k):
            s[i * k + c] = weight[i]
    shares = s if a.values == k else weight
    u = zero
    for j in range(points - 1, -1, -1):  # the first point last, because its derivatives are used below
        b, known, source = a.b[j], a.known[j][first * k : (first + count) * k], a.sources[j]
        u = formed[source] if source >= 0 else known if len(known) else zero
        keep = a.keep[j][first * k : (first + count) * k]
        for i in range(len(keep)):
            keep[i] = u[i]
        for i in range(size):
            full[i] = u[i] + b[i]
        loss(a.parameters, full, y, value, r)
        total = total_size = 0.0
        for i in range(values):
            total += shares[i] * value[i]
            total_size += shares[i] * abs(value[i])
        sums[VALUE if j == 0 else len(sums) - points + j] += total
    sums[SIZE] += total_size
    along = along_size = shifted = square = 0.0
    for i in range(size):  # no array is written in this loop, so that the compiler vectorises it
        t = r[i] * s[i]
        along += t * u[i]
        along_size += abs(t * u[i])
        shifted += abs(t * full[i])
        square += t * r[i]
    sums[ALONG] += along
    sums[ALONG_SIZE] += along_size
    sums[SHIFTED] += shifted if a.shifted else 0.0
    sums[SQUARE] += square
    for i in range(size):
        r[i] *= s[i]
    by_output = sums[SCALARS : SCALARS + PER_OUTPUT * k].reshape(PER_OUTPUT, k)
    for c in range(k):
        slope = slope_size = mean = 0.0
        for i in range(c, size, k):
            slope += r[i]
            slope_size += abs(r[i])
            mean += s[i] * u[i]
        by_output[SLOPE, c] += slope
        by_output[SLOPE_SIZE, c] += slope_size
        by_output[MEAN_IMAGE, c] += mean


@_kernel
def dense_rows(X, fortran, offset, rows, tile, first_block, last_block, loss, a):
    """Process blocks of ``rows`` rows; the first row of X (or column of its transpose) is row ``offset``."""
    n, d = (X.shape[1], X.shape[0]) if fortran else X.shape
    k = a.gradients.shape[1]
    formed, space = np.empty((len(a.vectors), tile * k)), np.zeros((6, tile * k))
    space[4] = a.uniform
    table, adjoint = np.empty((tile if k > 1 else 0, d)), np.empty((k, d))
    for block in range(first_block, last_block):
        g, stop = a.gradients[block], min((block + 1) * rows, offset + n)
        for first in range(max(block * rows, offset), stop, tile):  # a chunk may begin inside a block
            count, line = min(tile, stop - first), first - offset
            if k > 1:  # copy the tile for BLAS
                for i in range(count):
                    for j in range(d):
                        table[i, j] = X[j, line + i] if fortran else X[line + i, j]
            for q in range(len(formed)):
                own = formed[q]
                if k > 1:
                    np.dot(table[:count], a.vectors[q].T, own[: count * k].reshape(count, k))
                    for i in range(count * k):
                        own[i] += a.offsets[q, i]
                    continue
                own[:] = a.offsets[q, :tile]
                if fortran:
                    _add_rows(X, 0, np.uint64(line), d, np.uint64(count), a.vectors[q, 0], own)
                else:
                    _add_dots(X, line, 0, count, d, a.vectors[q, 0], own)
            _add_sums(loss, a, block, first, count, formed, space)
            if k > 1:
                g += np.dot(space[0, : count * k].reshape(count, k).T, table[:count], adjoint)
            elif fortran:
                _add_dots(X, 0, np.uint64(line), d, np.uint64(count), space[0], g[0])
            else:
                _add_rows(X, line, 0, count, d, space[0], g[0])


@_kernel
def sparse_rows(values, columns, pointers, rows, tile, first_block, last_block, loss, a):
    """Process blocks of compressed sparse rows for one output; ``columns`` and ``pointers`` must be valid indices.

    They are unsigned, which avoids the check for negative indices at every entry.
    """
    formed, space = np.empty((len(a.vectors), tile)), np.zeros((6, tile))
    space[4] = a.uniform
    for block in range(first_block, last_block):
        g, stop = a.gradients[block, 0], min((block + 1) * rows, len(pointers) - 1)
        for first in range(block * rows, stop, tile):
            count = min(tile, stop - first)
            for q in range(len(formed)):
                w = a.vectors[q, 0]
                for i in range(count):
                    total = a.offsets[q, 0]
                    for e in range(np.uint64(pointers[first + i]), np.uint64(pointers[first + i + 1])):
                        total += values[e] * w[columns[e]]
                    formed[q, i] = total
            _add_sums(loss, a, block, first, count, formed, space)
            for i in range(count):
                r = space[0, i]
                for e in range(np.uint64(pointers[first + i]), np.uint64(pointers[first + i + 1])):
                    g[columns[e]] += r * values[e]
