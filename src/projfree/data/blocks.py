"""One pass over dense rows: fixed blocks, worked on by several threads, added up in a fixed tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from projfree.checks import Array
from projfree.data.rows import FormImages, Pass, Step
from projfree.numerics.forms import form_of
from projfree.numerics.sums import tree_sum
from projfree.runtime import over_blocks, single_blas

if TYPE_CHECKING:
    from projfree.data.kernels import Compiled

#: Rows of a block, at least: the unit of partial sums. Their number is bounded, so blocks grow with the data.
BLOCK_ROWS, MOST_BLOCKS = 2048, 256
#: Bytes of X that NumPy works on at a time: the adjoint should find in the cache what the image has read.
TILE_BYTES = 1 << 20
#: How often each thread of a compiled pass asks for blocks: seldom, because a call costs some microseconds.
TAKES = 8
#: From this many bytes of X on, a pass uses several threads.
THREADED_BYTES = 1 << 21

#: From this many bytes of X on, passes are compiled. Each saves 20 ms or more then; loading the kernels takes 0.3 s.
NATIVE_BYTES = 1 << 26
#: The types of steps that are the sums of a tangent, laid out as `projfree.data.layout` says; no subclass of them.
TANGENTS: set[type[Step]] = set()

#: Bytes of a chunk of rows outside memory, where memory allows: large enough to pay for a read, small enough to stay in
#: a shared cache. And the peak memory of a pass for buffers and decoding, by default.
CHUNK_BYTES, MEMORY = 1 << 23, 1 << 27


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


def compiled(work: Pass, features: int, cut: Blocks, nbytes: int) -> Compiled | None:
    """The pass in compiled code; None for small data, and where the step or its loss has no compiled form."""
    kind, form = type(work.step), form_of(getattr(work.step, "loss", None))
    known = kind is FormImages or (kind in TANGENTS and form is not None)
    flat = all(own.flags.c_contiguous for own in (*work.keep, *work.sources) if isinstance(own, np.ndarray))
    if nbytes < NATIVE_BYTES or not known or not flat or work.places is not None:
        return None
    from projfree.data.kernels import MOST_POINTS, Compiled

    return Compiled(work, form, features, cut) if len(work.sources) <= MOST_POINTS else None


class Partials:
    """The sums and adjoints of the blocks of one pass, or the compiled code that has them."""

    def __init__(self, count: int, compiled: Compiled | None = None) -> None:
        self.count, self.compiled = count, compiled
        self.sums: list[Array | None] = [None] * count
        self.adjoints: Array | None = None
        self._lock = Lock()  # two threads may be the first to ask for adjoints

    def adjoints_of(self, shape: tuple[int, ...]) -> Array:
        """Where the adjoints of the blocks go."""
        with self._lock:
            if self.adjoints is None:
                self.adjoints = np.zeros((self.count, *shape))
            return self.adjoints

    def total(self) -> tuple[Array, Array | None]:
        """The added sums and adjoint."""
        if self.compiled is not None:
            return self.compiled.total()
        if self.count == 1 and self.sums[0] is not None:
            return self.sums[0], None if self.adjoints is None else self.adjoints[0]
        assert all(part is not None for part in self.sums), "a block of rows was left out"
        sums = tree_sum(np.stack(self.sums))  # type: ignore[arg-type]  # none is None, as was just seen
        return sums, None if self.adjoints is None else tree_sum(self.adjoints)


def tile_rows(d: int) -> int:
    """Rows that NumPy works on at a time: a power of two, so that chunks of a file can end where a tile does."""
    return 1 << max(4, (TILE_BYTES // (8 * d)).bit_length() - 1)


def numpy_block(X: Array, offset: int, rows: slice, work: Pass, partials: Partials, k: int) -> None:
    """Rows of block k in NumPy, tile by tile, on top of what the block has summed so far."""
    step = tile_rows(X.shape[1])
    total = partials.sums[k]
    zero = [not w.any() for w in work.vectors]  # as at the start of most runs: no image to form
    for first in range(rows.start, rows.stop, step):
        tile = slice(first, min(first + step, rows.stop))
        part = X[tile.start - offset : tile.stop - offset].astype(np.float64, copy=False)
        pairs = zip(work.vectors, zero, strict=True)
        residual, sums = work(tile, *[np.zeros((len(part), *w.shape[1:])) if none else part @ w for w, none in pairs])
        total = sums if total is None else total + sums
        if residual is not None:
            partials.adjoints_of((X.shape[1], *residual.shape[1:]))[k] += part.T @ residual
    partials.sums[k] = total


def dense_pass(
    X: Array, offset: int, cut: Blocks, work: Pass, partials: Partials, threads: int, nbytes: int | None = None
) -> None:
    """The blocks of rows ``offset`` to ``offset + len(X)``, which begin where a block or at least a tile begins.

    Where X is one chunk of a pass, ``nbytes`` is the size of all chunks: whether compiled code and threads are used
    must not depend on how the data are read, else results would.
    """
    first, last = offset // cut.rows, -(-(offset + len(X)) // cut.rows)
    nbytes = X.nbytes if nbytes is None else nbytes
    threads = threads if nbytes >= THREADED_BYTES else 1
    blocks = None if partials.compiled is None else partials.compiled.dense(X, offset)
    if blocks is not None:
        over_ranges(blocks, first, last, threads)
        return
    if partials.compiled is not None:
        if offset:  # what the first chunks have summed would be lost
            raise RuntimeError("a later chunk of the data is laid out in another way than the first; read them alike.")
        partials.compiled = None  # an array in neither order

    def block(i: int) -> None:
        k = first + i
        rows = slice(max(k * cut.rows, offset), min((k + 1) * cut.rows, offset + len(X)))
        numpy_block(X, offset, rows, work, partials, k)

    if nbytes < THREADED_BYTES:
        for i in range(last - first):
            block(i)
        return
    with single_blas():
        over_blocks(block, last - first, threads)


def over_ranges(work: Callable[[int, int], None], first: int, last: int, threads: int) -> None:
    """Call ``work`` with the ends of ranges of blocks, a few for each thread."""
    take = max(1, -(-(last - first) // (TAKES * threads)))
    over_blocks(
        lambda i: work(first + i * take, min(first + (i + 1) * take, last)), -(-(last - first) // take), threads
    )
