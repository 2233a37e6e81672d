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
from projfree.data.threads import over_blocks, single_blas, tree_sum

#: Rows of a block, at least: the unit of partial sums. Their number is bounded, so blocks grow with the data.
BLOCK_ROWS, MOST_BLOCKS = 2048, 256
#: Bytes of X that NumPy works on at a time: the adjoint should find in the cache what the image has read.
TILE_BYTES = 1 << 20
#: From this many bytes of X on, compiled kernels pay for loading them.
NATIVE_BYTES = 1 << 26
#: Blocks that a thread takes at a time from compiled kernels.
TAKE = 4
#: From this many bytes of X on, a pass uses several threads.
THREADED_BYTES = 1 << 21
SUMS = 9


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
        self._lock = Lock()  # two threads may be the first to ask for room

    def room(self, shape: tuple[int, ...]) -> Array:
        """Where the adjoints of the blocks go."""
        with self._lock:
            if self.adjoints is None:
                self.adjoints = np.zeros((self.count, *shape))
            return self.adjoints

    def packed(self) -> Array:
        """Where compiled kernels add the sums of the blocks; the same for all chunks of a pass."""
        if self._packed is None:
            self._packed = np.zeros((self.count, SUMS))
            self.sums = list(self._packed)
        return self._packed

    def total(self) -> tuple[Array, Array | None]:
        """The added sums and adjoint."""
        sums = tree_sum(np.stack([part for part in self.sums if part is not None]))
        return sums, None if self.adjoints is None else tree_sum(self.adjoints)


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


def compiled(kernel: Any, nbytes: int) -> bool:
    """Whether a pass with this kernel goes through compiled code."""
    loss = getattr(kernel, "loss", None)
    return bool(
        loss is not None and nbytes >= NATIVE_BYTES and kernel.whole.ndim == 1 and (loss.native or not kernel.tangent)
    )


def native_arguments(vectors: Sequence[Array], kernel: Any, d: int, partials: Partials) -> tuple[Any, ...]:
    """The arguments that all compiled kernels share."""
    from projfree.data import native

    nothing = np.empty(0)
    code = native.CODES[kernel.loss.native] if kernel.tangent else native.IMAGES_ONLY
    adjoints = partials.room((d,)) if kernel.tangent else np.zeros((partials.count, 0))
    weight = kernel.data.weight
    return (
        np.array(vectors, dtype=np.float64).reshape(len(vectors), d),
        kernel.coefficients.astype(np.float64),
        np.zeros(len(vectors)) if kernel.offsets is None else np.asarray(kernel.offsets, dtype=np.float64),
        nothing if kernel.base is None else kernel.base,
        kernel.met,
        kernel.whole,
        code,
        float(kernel.loss.parameter),
        kernel.y,
        nothing if weight is None else weight,
        1.0 / kernel.data.n,
        0.0 if kernel.b is None else float(kernel.b),
        adjoints,
        partials.packed(),
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
    work = _native_work(X, offset, cut, vectors, kernel, partials, last) if compiled(kernel, nbytes) else None
    if work is not None:
        over_blocks(lambda i: work(first + i * TAKE), -(-(last - first) // TAKE), threads)
        return

    def block(i: int) -> None:
        k = first + i
        rows = slice(max(k * cut.rows, offset), min((k + 1) * cut.rows, offset + len(X)))
        numpy_block(X, offset, rows, vectors, kernel, partials, k)

    with single_blas(nbytes >= THREADED_BYTES):
        over_blocks(block, last - first, threads)


def _native_work(
    X: Array,
    offset: int,
    cut: Blocks,
    vectors: Sequence[Array],
    kernel: Kernel,
    partials: Partials,
    last: int,
) -> Callable[[int], None] | None:
    order = "c" if X.flags.c_contiguous else "f" if X.flags.f_contiguous else ""
    if not order:
        return None
    from projfree.data import native

    blocks = native.c_blocks if order == "c" else native.f_blocks
    rest = native_arguments(vectors, kernel, X.shape[1], partials)

    def work(k: int) -> None:
        blocks(X, offset, cut.rows, k, min(k + TAKE, last), *rest)

    return work
