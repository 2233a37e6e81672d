"""Labels of users and items: whole numbers or text, of one kind throughout."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array, is_missing, plain_array, shown

#: What labels of each kind of array are called.
KINDS = {"i": "whole numbers", "U": "text", "S": "bytes", "b": "truth values"}
#: Labels are kept as integers of 64 bits.
LIMIT = 2**63


def labels_of(name: str, given: Any) -> Array:
    """Labels as an array of one kind, or a sentence on what they are instead."""
    several = isinstance(given, list | tuple)
    array = np.asarray([]) if several else plain_array(name, given)
    if several or array.dtype.kind == "O":  # NumPy would unite what does not belong together
        array = plain_array(name, _of_one_kind(name, given))
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be a vector of labels, got shape {array.shape}.")
    if array.dtype.kind in "uf":
        return _whole(name, array)
    if array.dtype.kind not in KINDS:
        raise TypeError(
            f"`{name}` must be labels, whole numbers or strings, got {_types(array)}; convert them to strings first."
        )
    return array


def _of_one_kind(name: str, given: Any) -> list[Any]:
    found = list(given)
    kinds = {_kind(kind) for kind in {type(label) for label in found}}
    if len(kinds) > 1:
        _refuse_missing(name, [is_missing(label) for label in found], found)
        names = " and ".join(sorted({type(label).__name__ for label in found}))
        raise TypeError(f"`{name}` must be labels of one type, got {names}; convert them first, e.g. to strings.")
    cut = next((label for label in found if label[-1:] in ("\0", b"\0")), None) if kinds <= {"text", bytes} else None
    if cut is not None:
        raise ValueError(f"`{name}` must not end in zero characters, which NumPy drops, got {shown(cut)}.")
    if kinds == {"number"} and any(abs(label) >= LIMIT for label in found):
        raise _too_large(name, next(label for label in found if abs(label) >= LIMIT))
    return found


def _kind(label: type) -> Any:
    """What labels of a type count as."""
    for kind, types in (("truth", bool | np.bool_), ("text", str), ("number", int | float | np.integer | np.floating)):
        if issubclass(label, types):
            return kind
    return label


def _whole(name: str, array: Array) -> Array:
    """Numbers as signed integers, for unsigned ones and floats do not mix with these."""
    _refuse_missing(name, np.isnan(array), array)
    if array.size and float(np.abs(array).max()) >= LIMIT:
        raise _too_large(name, array[np.abs(array).argmax()])
    whole = array.astype(np.int64)
    if not np.array_equal(whole, array):
        raise ValueError(f"`{name}` must be labels: whole numbers or strings, got {shown(array[whole != array][0])}.")
    return whole


def _refuse_missing(name: str, missing: Any, labels: Any) -> None:
    """Raise where a label is missing."""
    at = np.flatnonzero(missing)
    if len(at):
        raise ValueError(
            f"`{name}` must not have missing labels, got {shown(labels[at[0]])} at index {int(at[0])}; drop such "
            "ratings first."
        )


def _too_large(name: str, label: Any) -> ValueError:
    return ValueError(f"`{name}` must be whole numbers below 2**63, got {shown(label)}; convert them to strings.")


def _types(array: Array) -> str:
    kinds = {type(label).__name__ for label in array.ravel().tolist()} if array.dtype.hasobject else {array.dtype.name}
    return " and ".join(sorted(kinds))


def refuse_other_kind(name: str, ids: Array, labels: Array) -> None:
    """Raise where labels are of another kind than those of the fit, because then none of them would be found."""
    if len(labels) and ids.dtype.kind != labels.dtype.kind:
        kinds = [KINDS[array.dtype.kind] for array in (ids, labels)]
        raise TypeError(
            f"`{name}` must be {kinds[0]}, as in the fit, got {kinds[1]}, such as {shown(labels[0])}; convert them "
            "first."
        )


def places(ids: Array, labels: Array, name: str) -> Array:
    """The place of each label among the sorted ``ids``, -1 where it is not there."""
    refuse_other_kind(name, ids, labels)
    at = np.minimum(np.searchsorted(ids, labels), len(ids) - 1)
    return np.where(ids[at] == labels, at, -1)
