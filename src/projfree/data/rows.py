"""The border between mathematics and storage: steps over rows, and the passes in which data take them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.numerics.forms import form_of
from projfree.numerics.sums import tree_sum
from projfree.runtime import over_blocks, single_blas

if TYPE_CHECKING:
    from projfree.data.kernels import Compiled


class Rows(NamedTuple):
    """What a step is told about a block of rows besides the images of points.

    Attributes
    ----------
    y : ndarray
        Targets, in the form that the loss takes.
    s : ndarray or float
        Normalised weights, as something to multiply with.
    places : pair of ndarray, or None
        Row and column of each observed entry of a matrix, None for tables.
    """

    y: Array
    s: Array | float
    places: tuple[Array, Array] | None = None


class Step(ABC):
    """What is computed from a block of rows: a frozen dataclass that can be pickled and holds O(d) numbers.

    It knows neither the data nor where the rows are. `Workspace.sweep` and `Workspace.fold` call it block by block, in
    any order, and add up what it returns. Data with compiled kernels look one up by the exact types of the step and of
    its loss, so that a subclass never inherits a kernel; the kernel returns the same numbers up to rounding.
    """

    @property
    def transient(self) -> bool:
        """Whether the images that a sweep forms for it are many and of no use later, so that none is kept."""
        return False

    @abstractmethod
    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        """The residual whose adjoint is wanted, or None, and a vector of sums, for the images of the points.

        Images are never modified.
        """


@dataclass(frozen=True)
class FormImages(Step):
    """Nothing but the images of the points."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return None, np.zeros(0)


@dataclass(frozen=True)
class AsResidual(Step):
    """The image itself as the residual, so that a pass forms its adjoint."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return images[0], np.zeros(0)


@dataclass(frozen=True)
class WithResidualSum(Step):
    """Another step, and the sum of its residuals behind its sums."""

    step: Step

    @property
    def transient(self) -> bool:
        return self.step.transient

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        residual, sums = self.step.block(rows, *images)
        total = np.zeros(0) if residual is None else np.ravel(residual.sum(axis=0))
        return residual, np.concatenate([sums, total])


@dataclass(frozen=True, eq=False)
class Pass:
    """One read of the data: which images are formed, and what is done with them.

    Attributes
    ----------
    step : Step
        What is done with the images of a block.
    n : int
        Number of rows.
    y, weight : ndarray, ndarray or None
        Targets and normalised weights of all rows; without weights each row has 1 / n.
    vectors : tuple of ndarray
        The parameters whose images are formed.
    sources : tuple of (int, ndarray or None)
        For each point the index of its vector, or its known image, or None where that is zero.
    keep : tuple of (ndarray or None)
        For each point, where its image is written, None where it is not kept.
    outputs : tuple of int
        The trailing shape of images.
    places : pair of ndarray, or None
        Row and column of each observed entry of a matrix.
    offsets : ndarray of shape (m, ...) or None
        Numbers added to the images of the vectors: how a shift of the features enters.
    """

    step: Step
    n: int
    y: Array
    weight: Array | None
    vectors: tuple[Any, ...]
    sources: tuple[int | Array | None, ...]
    keep: tuple[Array | None, ...]
    outputs: tuple[int, ...] = ()
    places: tuple[Array, Array] | None = None
    offsets: Array | None = None

    def __call__(self, rows: slice, *formed: Array) -> tuple[Array | None, Array]:
        """The step on a block of rows, given the images of the vectors."""
        if self.offsets is not None:
            formed = tuple(image + offset for image, offset in zip(formed, self.offsets, strict=True))
        images = [self._image(source, rows, formed) for source in self.sources]
        for store, image in zip(self.keep, images, strict=True):
            if store is not None:
                store[rows] = image
        s = 1.0 / self.n if self.weight is None else self.weight[rows]
        places = None if self.places is None else (self.places[0][rows], self.places[1][rows])
        return self.step.block(Rows(self.y[rows], s, places), *images)

    def _image(self, source: int | Array | None, rows: slice, formed: tuple[Array, ...]) -> Array:
        if isinstance(source, int):
            return formed[source]
        return np.zeros((rows.stop - rows.start, *self.outputs)) if source is None else source[rows]


#: Of the weighted losses, of their absolute values, of r u, of |r u|, of |r (u + b)| (zero without an intercept), and
#: the weighted square of the derivative.
VALUE, SIZE, ALONG, ALONG_SIZE, SHIFTED, SQUARE = range(6)
SCALARS = 6
#: Of r, of |r|, and of the weighted image.
SLOPE, SLOPE_SIZE, MEAN_IMAGE = range(3)
PER_OUTPUT = 3


def tangent_size(outputs: int, points: int = 1) -> int:
    """How many sums a tangent has."""
    return SCALARS + PER_OUTPUT * outputs + points - 1


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
#: The types of steps that are the sums of a tangent, laid out as `projfree.data.rows` says; no subclass of them.
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
