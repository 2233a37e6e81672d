"""One pass over dense rows: fixed blocks, worked on by several threads, added up in a fixed tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.data.base import Kernel
from projfree.numerics.sums import tree_sum
from projfree.runtime import over_blocks, single_blas

#: Rows of a block, at least: the unit of partial sums. Their number is bounded, so blocks grow with the data.
BLOCK_ROWS, MOST_BLOCKS = 2048, 256
#: Bytes of X that NumPy works on at a time: the adjoint should find in the cache what the image has read.
TILE_BYTES = 1 << 20
#: From this many bytes of X on, passes are compiled. That saves almost half of the time, 5 ms of a pass over so many
#: bytes, so that loading the code (0.3 s) pays after 60 passes, and compiling it (4 s, once) after a thousand.
NATIVE_BYTES = 1 << 26
#: How often each thread of a compiled pass asks for blocks: seldom, because a call costs some microseconds.
TAKES = 8
#: Tables with more outputs go through BLAS, which is as good there.
MOST_OUTPUTS = 20
#: From this many bytes of X on, a pass uses several threads.
THREADED_BYTES = 1 << 21
#: Sums of a pass: so many, and so many more for each output; see `Sums`.
SUMS, OUTPUT_SUMS = 6, 3


@dataclass(frozen=True)
class Blocks:
    """How ``n`` rows are cut; the same whatever the storage, so that results agree to the last bit."""

    n: int
    rows: int

    @classmethod
    def of(cls, n: int) -> Blocks:
        """The cut of ``n`` rows."""
        rows = max(BLOCK_ROWS, 64 * math.ceil(n / (64 * MOST_BLOCKS)))
        return cls(n, rows)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.n // self.rows)

    def units(self) -> float:
        """How many units of rounding a sum over all rows may err by: any order in a block, then a tree."""
        return float(min(self.n, self.rows) + math.ceil(math.log2(self.count + 1)) + 8)


class Partials:
    """The sums and adjoints of the blocks of one pass."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.sums: list[Array | None] = [None] * count
        self.adjoints: Array | None = None
        self._packed: Array | None = None
        self._outputs = 0  # of padded adjoints
        self._lock = Lock()  # two threads may be the first to ask for room

    def room(self, shape: tuple[int, ...]) -> Array:
        """Where the adjoints of the blocks go."""
        with self._lock:
            if self.adjoints is None:
                self.adjoints = np.zeros((self.count, *shape))
            return self.adjoints

    def packed(self, outputs: int, beside: bool = False) -> Array:
        """Where compiled kernels add the sums of the blocks; the same for all chunks of a pass."""
        if self._packed is None:
            self._packed = np.zeros((self.count, SUMS + OUTPUT_SUMS * outputs + beside))
        return self._packed

    def padded(self, d: int, outputs: int, lanes: int) -> Array:
        """`room` for compiled kernels whose outputs are padded to a multiple of ``lanes``."""
        self._outputs = outputs
        return self.room((d, -(-outputs // lanes) * lanes))

    def total(self) -> tuple[Array, Array | None]:
        """The added sums and adjoint."""
        parts = [part for part in self.sums if part is not None]
        sums = tree_sum(np.stack(parts) if self._packed is None else self._packed)
        if self.adjoints is None:
            return sums, None
        return sums, tree_sum(self.adjoints)[..., : self._outputs] if self._outputs else tree_sum(self.adjoints)


def tile_rows(d: int) -> int:
    """Rows that NumPy works on at a time: a power of two, so that chunks of a file can end where a tile does."""
    return 1 << max(4, (TILE_BYTES // (8 * d)).bit_length() - 1)


def numpy_block(
    X: Array,
    offset: int,
    rows: slice,
    vectors: Sequence[Array],
    kernel: Kernel,
    partials: Partials,
    k: int,
) -> None:
    """Rows of block k in NumPy, tile by tile, on top of what the block has summed so far."""
    step = tile_rows(X.shape[1])
    total = partials.sums[k]
    for first in range(rows.start, rows.stop, step):
        tile = slice(first, min(first + step, rows.stop))
        part = X[tile.start - offset : tile.stop - offset].astype(np.float64, copy=False)
        residual, sums = kernel(tile, *(part @ w for w in vectors))
        total = sums if total is None else total + sums
        if residual is not None:
            partials.room((X.shape[1], *residual.shape[1:]))[k] += part.T @ residual
    partials.sums[k] = total


def compiled(kernel: Any, nbytes: int, most_outputs: int = MOST_OUTPUTS) -> bool:
    """Whether a pass with this kernel goes through compiled code; zero outputs stand for a vector."""
    loss = getattr(kernel, "loss", None)
    if loss is None or nbytes < NATIVE_BYTES or not (loss.native or not kernel.tangent):
        return False
    outputs = kernel.whole.shape[1:]
    return not outputs or (len(outputs) == 1 and outputs[0] <= most_outputs)


def native_arguments(vectors: Sequence[Array], kernel: Any, d: int, partials: Partials) -> tuple[Any, ...]:
    """The arguments that all compiled kernels of one output share."""
    from projfree.data import native

    m, nothing, beside = len(vectors), np.empty(0), kernel.beside
    return (
        np.array(vectors, dtype=np.float64).reshape(m, d),
        kernel.coefficients.astype(np.float64),
        np.zeros(m) if kernel.offsets is None else np.asarray(kernel.offsets, dtype=np.float64),
        nothing if kernel.base is None else kernel.base,
        float(kernel.scale),
        kernel.met,
        kernel.keep,
        kernel.whole,
        0.0 if beside is None else float(beside.scale),
        nothing if beside is None else beside.coefficients.astype(np.float64),
        nothing if beside is None else beside.image,
        native.CODES[kernel.loss.native] if kernel.tangent else native.IMAGES_ONLY,
        float(kernel.loss.parameter),
        kernel.y,
        nothing if kernel.data.weight is None else kernel.data.weight,
        1.0 / kernel.data.n,
        0.0 if kernel.b is None else float(kernel.b),
        partials.room((d,)) if kernel.tangent else np.zeros((partials.count, 0)),
        partials.packed(1, beside is not None),
    )


def output_arguments(vectors: Sequence[Array], kernel: Any, d: int, partials: Partials) -> tuple[Any, ...]:
    """The arguments of the compiled kernel for several outputs."""
    from projfree.data import native

    m, k = len(vectors), kernel.whole.shape[1]
    padded = -(-k // native.LANES) * native.LANES
    W = np.zeros((m, d, padded))
    for q, w in enumerate(vectors):
        W[q, :, :k] = w
    labels = kernel.y if kernel.loss.coupled else np.empty(0, np.intp)
    return (
        W,
        kernel.coefficients.astype(np.float64),
        np.zeros((m, k)) if kernel.offsets is None else np.asarray(kernel.offsets, dtype=np.float64).reshape(m, k),
        np.empty((0, k)) if kernel.base is None else kernel.base,
        float(kernel.scale),
        kernel.met,
        kernel.keep,
        kernel.whole,
        native.CODES[kernel.loss.native] if kernel.tangent else native.IMAGES_ONLY,
        float(kernel.loss.parameter),
        np.empty(0) if kernel.loss.coupled else np.ascontiguousarray(kernel.y, dtype=np.float64).reshape(-1),
        labels,
        np.empty(0) if kernel.data.weight is None else kernel.data.weight,
        1.0 / kernel.data.n,
        np.empty(0) if kernel.b is None else np.asarray(kernel.b, dtype=np.float64),
        partials.padded(d, k, native.LANES) if kernel.tangent else np.zeros((partials.count, 0, padded)),
        partials.packed(k),
    )


def dense_pass(
    X: Array,
    offset: int,
    cut: Blocks,
    vectors: Sequence[Array],
    kernel: Kernel,
    partials: Partials,
    threads: int,
    nbytes: int | None = None,
) -> None:
    """The blocks of rows ``offset`` to ``offset + len(X)``, which begin where a block or at least a tile begins.

    Where X is one chunk of a pass, ``nbytes`` is the size of all chunks: whether compiled code and threads are used
    must not depend on how the data are read, else results would.
    """
    first, last = offset // cut.rows, -(-(offset + len(X)) // cut.rows)
    nbytes = X.nbytes if nbytes is None else nbytes
    threads = threads if nbytes >= THREADED_BYTES else 1
    work = _native_work(X, offset, cut, vectors, kernel, partials) if compiled(kernel, nbytes) else None
    if work is not None:
        over_ranges(work, first, last, threads)
        return

    def block(i: int) -> None:
        k = first + i
        rows = slice(max(k * cut.rows, offset), min((k + 1) * cut.rows, offset + len(X)))
        numpy_block(X, offset, rows, vectors, kernel, partials, k)

    with single_blas(nbytes >= THREADED_BYTES):
        over_blocks(block, last - first, threads)


def over_ranges(work: Callable[[int, int], None], first: int, last: int, threads: int) -> None:
    """Call ``work`` with the ends of ranges of blocks, a few for each thread."""
    take = max(1, -(-(last - first) // (TAKES * threads)))
    over_blocks(
        lambda i: work(first + i * take, min(first + (i + 1) * take, last)), -(-(last - first) // take), threads
    )


def _native_work(
    X: Array, offset: int, cut: Blocks, vectors: Sequence[Array], kernel: Any, partials: Partials
) -> Callable[[int, int], None] | None:
    fortran = not X.flags.c_contiguous
    if fortran and not X.flags.f_contiguous:
        return None
    from projfree.data import native

    d = X.shape[1]
    if kernel.whole.ndim > 1:
        rest = output_arguments(vectors, kernel, d, partials)
        return lambda k, last: native.output_blocks(X, fortran, offset, cut.rows, k, last, *rest)
    rest = native_arguments(vectors, kernel, d, partials)
    blocks, lines = (native.f_blocks, X.T) if fortran else (native.c_blocks, X)
    return lambda k, last: blocks(lines, offset, cut.rows, k, last, *rest)
