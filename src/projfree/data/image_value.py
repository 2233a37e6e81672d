"""Sums over an image that is known, the mean loss and its slopes: threads over blocks of rows, no temporaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.data.base import Data
from projfree.data.blocks import MOST_OUTPUTS, NATIVE_BYTES, Blocks, over_ranges
from projfree.numerics.sums import tree_sum

#: From this many predictions on, compiled code pays for loading it.
NATIVE_ENTRIES = 1 << 18
#: The losses whose slopes compiled code sums, and the rows from which on several threads do.
SLOPES, THREADED_ROWS = ("logistic", "huber"), 1 << 14


def can_sum(loss: Any, data: Data, outputs: tuple[int, ...]) -> bool:
    """Whether `image_value` knows the loss, and there is enough to do."""
    k = outputs[0] if outputs else 1
    return bool(loss.native) and k <= MOST_OUTPUTS and data.n * k >= NATIVE_ENTRIES


def image_value(
    loss: Any, data: Data, y: Array, b: Array | None, terms: list[tuple[float, Array]], mixed: Array | None
) -> float:
    """The weighted mean of the loss at a mixture of one or two images.

    Parameters
    ----------
    terms : list of (float, array)
        Coefficients and images.
    mixed : ndarray or None
        Where the mixture goes; None if there is one image with the coefficient one.
    """
    from projfree.data import native

    (scale, base), (factor, other) = terms if len(terms) == 2 else (terms[0], (0.0, terms[0][1]))
    cut, k = Blocks.of(data.n), base.shape[1] if base.ndim > 1 else 1
    sums, nothing = np.zeros((cut.count, 2)), np.empty(0)
    rest = (
        base.reshape(-1),
        float(scale),
        other.reshape(-1),
        float(factor),
        nothing if mixed is None else mixed.reshape(-1),
        k,
        native.CODES[str(loss.native)],
        float(loss.parameter),
        nothing if loss.coupled else np.ascontiguousarray(y, dtype=np.float64).reshape(-1),
        y if loss.coupled else np.empty(0, np.intp),
        nothing if data.weight is None else data.weight,
        1.0 / data.n,
        nothing if b is None else np.asarray(b, dtype=np.float64).reshape(-1),
        sums,
    )
    threads = getattr(data, "threads", 1)
    over_ranges(lambda first, last: native.value_blocks(data.n, cut.rows, first, last, *rest), 0, cut.count, threads)
    return float(tree_sum(sums)[0])


def slope_sums(loss: Any, data: Data, y: Array) -> Callable[[Array, float], tuple[float, float, float]] | None:
    """``(u, b)`` to the sums of first derivatives, of second ones and of the sizes of the first, weighted.

    None where compiled code does not know the loss, or would be loaded for this alone.
    """
    if loss.native not in SLOPES or data.nbytes < NATIVE_BYTES:
        return None
    from projfree.data import native

    cut, threads = Blocks.of(data.n), getattr(data, "threads", 1)
    code, weight = native.CODES[loss.native], np.empty(0) if data.weight is None else data.weight

    def sums(u: Array, b: float) -> tuple[float, float, float]:
        parts = np.zeros((cut.count, 3))
        rest = (u, b, code, float(loss.parameter), y, weight, 1.0 / data.n, parts)
        over_ranges(
            lambda first, last: native.slope_blocks(data.n, cut.rows, first, last, *rest),
            0,
            cut.count,
            threads if data.n >= THREADED_ROWS else 1,
        )
        slope, second, size = tree_sum(parts).tolist()
        return slope, second, size

    return sums
