"""When two sets are equal: by their fields, whatever users put into those of their own sets."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from projfree.checks import is_sparse


def values_of(thing: Any) -> list[Any] | None:
    """The fields of a dataclass, None of anything else."""
    return [getattr(thing, f.name) for f in fields(thing)] if is_dataclass(thing) else None


def equal(a: Any, b: Any) -> bool:
    """Whether two fields of sets are equal, tables entry by entry; what cannot be compared is equal to itself only."""
    if a is b:
        return True
    if type(a) is not type(b):
        return not (_is_table(a) or _is_table(b)) and _agree(a, b)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return _agree(a, b)


def hashable(value: Any) -> Any:
    """What equal fields of sets have in common, as something with a hash: of tables and mappings the type alone."""
    if isinstance(value, tuple | list):
        return tuple(map(hashable, value))
    try:
        return type(value) if _is_table(value) else hash(value)
    except TypeError:
        return type(value)


def _is_table(value: Any) -> bool:
    """Whether a comparison with ``==`` would be one of entries: arrays, sparse matrices and data frames."""
    return isinstance(value, np.ndarray) or hasattr(value, "equals") or is_sparse(value)


def _agree(a: Any, b: Any) -> bool:
    try:
        if isinstance(a, np.ndarray):
            return np.array_equal(a, b)
        if hasattr(a, "equals"):  # the frames and columns of pandas, polars and Arrow
            return bool(a.equals(b))
        if is_sparse(a):
            return bool(a.shape == b.shape and (a != b).nnz == 0)
        return bool(a == b)
    except (TypeError, ValueError):  # entry by entry, or not at all
        return False
