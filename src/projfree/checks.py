"""Validation of arguments, and formatting of values in messages.

Each message names the argument, the rule, the value and the way out.
"""

from __future__ import annotations

import math
import sys
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Folder of the package; warnings skip frames of its files.
PACKAGE = str(Path(__file__).parent)


def stacklevel() -> int:
    """Return the ``stacklevel`` of a warning, such that it refers to the first caller outside of the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def shown(value: object) -> str:
    """Format `value` for a message: without the NumPy type, at most 80 characters."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 80 else text[:77] + "..."


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a real number, got {shown(value)} of type {type(value).__name__}.")
    return float(value)


def at_least(name: str, value: float, lowest: float) -> float:
    """Return `value` as a float; raise an error unless it is at least `lowest`."""
    if not (number := _real(name, value)) >= lowest:
        raise ValueError(f"`{name}` must be at least {lowest:g}, got {shown(value)}.")
    return number


def positive(name: str, value: float, why: str = "") -> float:
    """Return `value` as a float; raise an error unless it is positive and finite."""
    if not 0.0 < (number := _real(name, value)) < math.inf:
        raise ValueError(f"`{name}` must be positive and finite, got {shown(value)}.{why and ' ' + why}")
    return number


def count(name: str, value: int, lowest: int = 1) -> int:
    """Return `value` as an int; raise an error unless it is an integer of at least `lowest`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise ValueError(f"`{name}` must be a whole number of at least {lowest}, got {shown(value)}.")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool; raise an error for other types, because text such as "False" would count as true."""
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"`{name}` must be True or False, got {shown(value)}.")


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN, NA or NaT, without importing pandas."""
    if isinstance(label, float | np.floating | np.datetime64 | np.timedelta64):
        return bool(label != label)
    return type(label).__name__ in ("NoneType", "NAType", "NaTType")


def refuse_masked(**arrays: Any) -> None:
    """Raise an error if an array has masked entries: they are missing, and the numbers below a mask are meaningless."""
    for name, array in arrays.items():
        if type(array) is not np.ndarray and np.ma.is_masked(array):
            masked = np.ma.getmaskarray(array)
            raise ValueError(
                f"`{name}` must not have masked entries, got {masked.sum()}, the first at index {first_index(masked)}; "
                "drop those rows or fill them first, e.g. with `.filled(...)`."
            )


def first_index(wrong: Array) -> Any:
    """Return the index of the first True: an integer for a vector, else a tuple."""
    entry = np.argwhere(wrong)[0]
    return entry.item() if len(entry) == 1 else tuple(entry.tolist())


def plain_array(name: str, array: Any) -> Array:
    """Convert `array` to a NumPy array in native byte order, without a copy if possible."""
    refuse_masked(**{name: array})
    out = np.asarray(array)
    return out if out.dtype.isnative else out.astype(out.dtype.newbyteorder("="))


def real_array(name: str, array: Any) -> Array:
    """Convert `array` to a NumPy array of floats, without a copy if possible.

    Integers, booleans and half precision become float64; float32 is preserved. Objects, strings and complex numbers
    raise an error, because a silent conversion would hide a mistake of the caller.
    """
    out = plain_array(name, array)
    if out.dtype.kind in "iub" or out.dtype == np.float16:
        return out.astype(np.float64)
    if out.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"`{name}` must hold real numbers, got dtype {out.dtype}; convert it first, e.g. with `.astype(float)`."
        )
    return out


def is_sparse(X: Any) -> bool:
    """Return whether X is a SciPy sparse array or matrix, without importing SciPy."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def instance(name: str, value: Any, kind: type | tuple[type, ...], example: str) -> None:
    """Raise an error with an example unless `value` is an instance of `kind`."""
    if not isinstance(value, kind):
        kinds = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise TypeError(f"`{name}` must be a {kinds}, got {shown(value)}; use e.g. `{example}`.")


def all_finite(name: str, array: Array, way: str = "drop or impute such entries first") -> Array:
    """Return `array`; raise an error that names the first entry that is NaN or infinite."""
    if not np.isfinite(array).all():
        index = first_index(~np.isfinite(array))
        raise ValueError(f"`{name}` must be finite, got {shown(array[index])} at index {index}; {way}.")
    return array
