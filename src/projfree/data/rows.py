"""The border between mathematics and storage: steps over rows, and the passes in which data take them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.numerics.compilation import held_interrupt

if TYPE_CHECKING:
    from projfree.data.kernels import Compiled
    from projfree.data.local import LocalData


class Rows(NamedTuple):
    """What a step is told about a block of rows besides the images of points.

    Targets ``y`` in the form that the loss takes, normalised weights ``s``, as something to multiply with, and
    ``places``, row and column of each observed entry of a matrix; None for tables.
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
class WeightsAsResidual(Step):
    """The weights of the rows as residuals."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return np.zeros(len(rows.y)) + rows.s, np.zeros(0)


@dataclass(frozen=True)
class TargetSum(Step):
    """The weighted sum of the targets about a point."""

    about: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        rest = ((rows.y - self.about).T * rows.s).T  # not a product by BLAS, whose threads would add in another order
        return None, np.asarray(np.add.reduce(rest, axis=0))


@dataclass(frozen=True, eq=False)
class Pass:
    """One read of the data: which images are formed, and what is done with them.

    The images of the parameters ``vectors`` are formed. Each point has as its source the index of its vector, or its
    known image, or None where that is zero, and as ``keep`` where its image is written, None where it is not kept.
    Images have the trailing shape ``outputs``. Where the features are shifted, ``offsets`` are added to the images of
    the vectors, and the sum of the residuals, which the adjoint needs then, comes behind the sums.
    """

    step: Step
    data: LocalData
    vectors: tuple[Any, ...]
    sources: tuple[int | Array | None, ...]
    keep: tuple[Array | None, ...]
    outputs: tuple[int, ...] = ()
    offsets: Array | None = None

    def __call__(self, rows: slice, *formed: Array) -> tuple[Array | None, Array]:
        """The step on a block of rows, given the images of the vectors."""
        images = []
        for source, store in zip(self.sources, self.keep, strict=True):
            if isinstance(source, int):
                image = formed[source] if self.offsets is None else formed[source] + self.offsets[source]
            else:
                image = np.zeros((rows.stop - rows.start, *self.outputs)) if source is None else source[rows]
            if store is not None:
                store[rows] = image
            images.append(image)
        residual, sums = self.step.block(self.data.rows(rows), *images)
        if self.offsets is not None and residual is not None:
            sums = np.append(sums, residual.sum(axis=0))
        return residual, sums


#: Of the weighted losses, of their absolute values, of r u, of |r u|, of |r (u + b)| (zero without an intercept), and
#: the weighted square of the derivative.
VALUE, SIZE, ALONG, ALONG_SIZE, SHIFTED, SQUARE, SCALARS = range(7)
#: Of r, of |r|, and of the weighted image.
SLOPE, SLOPE_SIZE, MEAN_IMAGE, PER_OUTPUT = range(4)


def tangent_size(outputs: int, points: int) -> int:
    """How many sums a tangent has."""
    return SCALARS + PER_OUTPUT * outputs + points - 1


#: Rows of a block, at least: the unit of partial sums. Their number is bounded, so blocks grow with the data.
BLOCK_ROWS, MOST_BLOCKS = 2048, 256
#: Rows of a tile of compiled passes, at most; at least a quarter in Fortran order, where columns are read in runs of so
#: many; an eighth for sparse rows, whose entries then stay in the first cache. Chunks of a file end where a tile does.
TILE_ROWS = 256
#: Bytes of X that NumPy works on at a time: the adjoint should find in the cache what the image has read.
TILE_BYTES = 1 << 20
#: Sums that are kept apart while rows stream by, so that threads can share the work; fixed, so that they do not show.
LANES = 4
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
    def of(cls, n: int, most: int = MOST_BLOCKS) -> Blocks:
        """The cut of ``n`` rows into at most so many blocks; a block and a tile are powers of two, so that they fit."""
        rows = BLOCK_ROWS
        while n > rows * max(1, most):
            rows *= 2
        return cls(n, rows)

    def block(self, k: int) -> slice:
        """The rows of block ``k``."""
        return slice(k * self.rows, min((k + 1) * self.rows, self.n))

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.n // self.rows)

    def units(self) -> float:
        """How many units of rounding a sum over all rows may err by: any order in a block, then a tree.

        Twelve more are for its terms, and for features that are shifted and scaled. The inner product over columns that
        forms an image does not count: a tangent is valid for any image. A column has at most one entry in a row.
        """
        return float(min(self.n, self.rows) + math.ceil(math.log2(self.count + 1)) + 12)


def compiled(work: Pass, features: int, cut: Blocks) -> Compiled | None:
    """The pass in compiled code; None where the step or its loss has no compiled form."""
    kernel = getattr(getattr(work.step, "loss", None), "kernel", None)
    if type(work.step) not in TANGENTS or kernel is None or work.data.places is not None:
        return None
    if not all(own.flags.c_contiguous for own in (*work.keep, *work.sources) if isinstance(own, np.ndarray)):
        return None
    with held_interrupt():
        from projfree.data.kernels import MOST_POINTS, Compiled

    return None if len(work.sources) > MOST_POINTS else Compiled(work, features, cut)
