"""A fold over images in the memory of this process: blocks of rows, worked on by several threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array
from projfree.data.rows import Pass, Step
from projfree.runtime import over_blocks

if TYPE_CHECKING:
    from projfree.data.local import LocalData

#: Rows of a block of a fold, at least, and the most blocks: their sums may be long.
FOLD_ROWS, MOST_FOLDS = 1 << 14, 64
#: Sums of a fold that are kept apart, so that threads can share the work; fixed, so that they do not show.
LANES = 4


def fold_images(
    data: LocalData, step: Step, images: list[Array], read: int = 0, residuals: dict[int, Any] | None = None
) -> Array:
    """The sums of a step over images; its residuals are put, by the first row of a block, where the caller asks.

    ``read`` are the rows that the workspace has read before.
    """
    n, shared = data.n, (step, data.n, data.y, data.weight)
    outputs = images[0].shape[1:]
    work = Pass(*shared, (), np.zeros((1, 0)), images[0], np.ones(1), (None,), outputs, None, data.places, read)
    if n <= FOLD_ROWS:
        residual, sums = step.block(work.rows(slice(0, n)), *images)
        if residuals is not None:
            residuals[0] = residual
        return sums
    return _in_lanes(work, images, residuals, data.threads)


def _in_lanes(work: Pass, images: list[Array], residuals: dict[int, Any] | None, threads: int) -> Array:
    n, size = work.n, max(FOLD_ROWS, -(-work.n // MOST_FOLDS))
    lanes: list[Any] = [None] * LANES

    def lane(k: int) -> None:
        for first in range(k * size, n, LANES * size):
            rows = slice(first, min(first + size, n))
            residual, sums = work.step.block(work.rows(rows), *(image[rows] for image in images))
            lanes[k] = sums if lanes[k] is None else lanes[k] + sums
            if residuals is not None:
                residuals[first] = residual

    over_blocks(lane, min(LANES, -(-n // size)), threads)
    total: Array = np.sum([sums for sums in lanes if sums is not None], axis=0)
    return total
