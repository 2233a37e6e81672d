"""The three kinds of targets: real numbers, signs and class indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array, all_finite, plain_array, real_array, shown

_ENCODE = "encode the classes first, e.g. with `names, y = np.unique(y, return_inverse=True)`"


def reals(y: Any) -> Array:
    """`y` as finite floats; integers and booleans become float64."""
    return all_finite("y", real_array("y", y))


def within(y: Any, low: float, high: float, rule: str) -> Array:
    """`y` as finite floats of an interval, or a sentence that states the rule."""
    out = reals(y)
    wrong = (out < low) | (out > high)
    if wrong.any():
        at, value = _first(wrong, out)
        way = "rescale them" if value > high or 0 < value < low else "drop or move such rows, or use another loss"
        raise ValueError(f"`y` must lie between {low:g} and {high:g}, got {shown(value)} at index {at}: {rule}; {way}.")
    return out


def signs(y: Any) -> Array:
    """`y` as floats that are all -1 or +1, or a sentence on how to get there."""
    out = plain_array("y", y)
    if out.dtype.kind not in "iubf":
        raise TypeError(
            f"`y` must hold the labels -1 and +1, got dtype {out.dtype}; "
            "encode them first, e.g. with `np.where(y == positive, 1, -1)`."
        )
    out = real_array("y", out)
    wrong = np.abs(out) != 1
    if wrong.any():
        at, value = _first(wrong, out)
        way = "`2 * y - 1`" if value == 0 else "`np.where(y == positive, 1, -1)`"
        kind = "0/1 labels" if value == 0 else "other labels"
        raise ValueError(
            f"`y` must hold the labels -1 and +1, got {shown(value)} at index {at}; encode {kind} as {way}."
        )
    return out


def indices(y: Any, classes: int | None) -> Array:
    """`y` as integers 0, ..., classes - 1; without `classes` the largest index decides."""
    out = plain_array("y", y)
    if out.dtype.kind not in "iubf":
        raise TypeError(f"`y` must hold class indices 0, ..., k - 1, got dtype {out.dtype}; {_ENCODE}.")
    if out.ndim != 1:
        raise ValueError(
            f"`y` must be one class index a sample, got an array of shape {out.shape}; "
            "turn one-hot rows into indices with `y.argmax(axis=1)`."
        )
    # Written so that NaN, which compares false with everything, counts as wrong. No model has 2^31 outputs.
    wrong = ~((out >= 0) & (out < (2**31 if classes is None else classes)))
    if out.dtype.kind == "f":
        wrong |= np.floor(out) != out
    if wrong.any():
        at, value = _first(wrong, out)
        last = "k" if classes is None else classes
        raise ValueError(
            f"`y` must hold class indices 0, ..., {last} - 1, got {shown(value)} at index {at}; {_ENCODE}."
        )
    if classes is None and int(out.max(initial=0)) == 0:
        raise ValueError(
            "`y` must hold at least two classes, got the index 0 only; "
            "give `Softmax(classes=...)` if this is a part of the data."
        )
    return out.astype(np.intp, copy=False)


def _first(wrong: Array, y: Array) -> tuple[int | tuple[int, ...], Any]:
    """Index and value of the first offender."""
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (where[0] if len(where) == 1 else where), y[where]
