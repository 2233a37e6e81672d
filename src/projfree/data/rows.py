"""The border between mathematics and storage: what a step is told about rows, and what a pass asks of the data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from projfree.checks import Array


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

    #: Whether the sum of the residuals is among the sums, where `residual_sum` finds it.
    sums_residuals: ClassVar[bool] = False

    @property
    def transient(self) -> bool:
        """Whether the images that a sweep forms for it are many and of no use later, so that none is kept."""
        return False

    @abstractmethod
    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        """The residual whose adjoint is wanted, or None, and a vector of sums, for the images of the points.

        Images are never modified.
        """

    def residual_sum(self, sums: Array, outputs: tuple[int, ...]) -> Array:
        """The sum of the residuals over all rows; by default all the sums of a step with `sums_residuals`."""
        return sums.reshape(outputs)


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

    sums_residuals = True
    step: Step

    @property
    def transient(self) -> bool:
        return self.step.transient

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        residual, sums = self.step.block(rows, *images)
        total = np.zeros(0) if residual is None else np.ravel(residual.sum(axis=0))
        return residual, np.concatenate([sums, total])

    def residual_sum(self, sums: Array, outputs: tuple[int, ...]) -> Array:
        return sums[len(sums) - math.prod(outputs) :].reshape(outputs)


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
