"""Computations on blocks of rows (`Step`), passes over the data that apply them (`Pass`), and the sizes of blocks."""

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
    """Targets and weights of a block of rows.

    ``y`` are the targets in the form that the loss expects, ``s`` the normalised weights (an array or one number), and
    ``places`` the row and column indices of observed matrix entries, or None for tables.
    """

    y: Array
    s: Array | float
    places: tuple[Array, Array] | None = None


class Step(ABC):
    """A computation on a block of rows: a frozen dataclass that can be pickled and stores O(d) numbers.

    `Workspace.sweep` and `Workspace.fold` call it block by block, in any order, and add up what it returns, so a step
    must not depend on how the rows are stored. Compiled kernels are selected by the exact types of the step and of its
    loss, never by a base class, and return the same numbers up to rounding.
    """

    @property
    def transient(self) -> bool:
        """Whether the predictions computed in a pass are large and not needed later, so that they are not cached."""
        return False

    @abstractmethod
    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        """Return the residual (None if no adjoint is needed) and a vector of sums, given the predictions of the points.

        The predictions must not be modified.
        """


@dataclass(frozen=True)
class FormPredictions(Step):
    """Compute the predictions only: no residual, no sums."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return None, np.zeros(0)


@dataclass(frozen=True)
class AsResidual(Step):
    """Use the prediction Aw itself as the residual, so that one pass computes A^T A w."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return images[0], np.zeros(0)


@dataclass(frozen=True)
class WeightsAsResidual(Step):
    """Use the weights of the rows as the residual."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return np.zeros(len(rows.y)) + rows.s, np.zeros(0)


@dataclass(frozen=True)
class TargetSum(Step):
    """Compute the weighted sum of ``y - about``."""

    about: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        rest = ((rows.y - self.about).T * rows.s).T  # no BLAS product: the summation order of its threads varies
        return None, np.asarray(np.add.reduce(rest, axis=0))


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass over the data: the predictions to compute, and the step to apply to them.

    Predictions are computed for each parameter in ``vectors``. The ``sources`` give, for each point, the index of its
    vector, its known predictions, or None if they are zero; ``keep`` gives the array to which its predictions are
    written, or None. Predictions have the trailing shape ``outputs``. For centred features, ``offsets`` are added to
    the predictions of the vectors, and the sum of the residuals, which the adjoint then needs, is appended to the sums.
    """

    step: Step
    data: LocalData
    vectors: tuple[Any, ...]
    sources: tuple[int | Array | None, ...]
    keep: tuple[Array | None, ...]
    outputs: tuple[int, ...] = ()
    offsets: Array | None = None

    def __call__(self, rows: slice, *formed: Array) -> tuple[Array | None, Array]:
        """Apply the step to a block of rows, given the predictions of the vectors."""
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


#: Indices into the sums of a tangent. Weighted sums of the losses, of their absolute values, of r u, of |r u|, of |r (u
#: + b)| (zero without an intercept), and of r^2, with derivatives r, predictions u without the intercept, and the
#: intercept b.
VALUE, SIZE, ALONG, ALONG_SIZE, SHIFTED, SQUARE, SCALARS = range(7)
#: Indices of the sums per output: weighted sums of r, of |r| and of the predictions.
SLOPE, SLOPE_SIZE, MEAN_IMAGE, PER_OUTPUT = range(4)


def tangent_size(outputs: int, points: int) -> int:
    """Return the number of sums that a tangent has."""
    return SCALARS + PER_OUTPUT * outputs + points - 1


#: Smallest number of rows in a block (partial sums are computed by block), and largest number of blocks: larger data
#: have larger blocks.
BLOCK_ROWS, MAX_BLOCKS = 2048, 256
#: Largest number of rows in a tile of compiled passes. A tile has at least a quarter of this in Fortran order, to read
#: runs of this length from each column, and an eighth for sparse rows, so that their entries stay in the L1 cache.
#: Chunks of a file end at the end of a tile.
TILE_ROWS = 256
#: Bytes of X per tile of passes in NumPy, so that the adjoint finds the rows in the cache after the predictions.
TILE_BYTES = 1 << 20
#: Number of separate partial sums of moments, which threads can compute in parallel; fixed, so that results do not
#: depend on the number of threads.
LANES = 4
#: Passes use several threads if X has at least this many bytes.
THREADED_BYTES = 1 << 21

#: Passes are compiled if X has at least this many bytes: they are then at least 20 ms faster, and loading the kernels
#: takes 0.3 s.
NATIVE_BYTES = 1 << 26
#: Types of steps that compute a tangent, with the sums in the order above; subclasses do not count.
TANGENTS: set[type[Step]] = set()

#: Default size in bytes of a chunk of rows read from a file (large enough for fast reads, small enough for a shared
#: cache), and the default limit on the memory that a pass uses for buffers and decoding.
CHUNK_BYTES, MEMORY = 1 << 23, 1 << 27


@dataclass(frozen=True)
class Blocks:
    """The partition of ``n`` rows into blocks, which is the same for all storage formats so that results agree."""

    n: int
    rows: int

    @classmethod
    def of(cls, n: int, most: int = MAX_BLOCKS) -> Blocks:
        """Partition ``n`` rows into at most ``most`` blocks, whose size is a power of two and a multiple of a tile."""
        rows = BLOCK_ROWS
        while n > rows * max(1, most):
            rows *= 2
        return cls(n, rows)

    def block(self, k: int) -> slice:
        """Return the slice of rows of block ``k``."""
        return slice(k * self.rows, min((k + 1) * self.rows, self.n))

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.n // self.rows)

    def units(self) -> float:
        """Return the error bound of a sum over all rows, in units of roundoff of the sum of the absolute values.

        The order within a block is arbitrary, blocks are added pairwise, and 12 units are added for the rounding of the
        terms and of centred and scaled features. The rounding of predictions does not count, because a tangent is valid
        at any predictions. A column has at most one entry in a row.
        """
        return float(min(self.n, self.rows) + math.ceil(math.log2(self.count + 1)) + 12)


def compiled(work: Pass, features: int, cut: Blocks) -> Compiled | None:
    """Return the pass as compiled code; None if the step or its loss has no compiled kernel."""
    kernel = getattr(getattr(work.step, "loss", None), "kernel", None)
    if type(work.step) not in TANGENTS or kernel is None or work.data.places is not None:
        return None
    if not all(own.flags.c_contiguous for own in (*work.keep, *work.sources) if isinstance(own, np.ndarray)):
        return None
    with held_interrupt():
        from projfree.data.kernels import MAX_POINTS, Compiled

    return None if len(work.sources) > MAX_POINTS else Compiled(work, features, cut)
