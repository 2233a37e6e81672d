"""Nested Python values as plain JSON plus named arrays, and back, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from projfree.checks import Array, shown

#: What can be saved: None, bool, int, float, str, NumPy scalars and arrays, and dict, list and tuple of these.
Tree = Any

# JSON objects with one of these keys stand for what JSON lacks. Keys of the user's that start with "$" are
# written with a second one, so that the two cannot be confused.
_FLOAT, _TUPLE, _ARRAY, _SCALAR = "$float", "$tuple", "$array", "$scalar"


def encode(tree: Tree) -> tuple[Any, dict[str, Array]]:
    """Split ``tree`` into plain JSON values and the arrays that they refer to by name."""
    arrays: dict[str, Array] = {}
    return _encode(tree, arrays, "tree"), arrays


def decode(plain: Any, arrays: Mapping[str, Array]) -> Tree:
    """Undo `encode`."""
    if isinstance(plain, list):
        return [decode(value, arrays) for value in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        ((key, value),) = plain.items()
        if key == _FLOAT:
            return float(value)
        if key == _TUPLE:
            return tuple(decode(value, arrays))
        if key in (_ARRAY, _SCALAR):
            return arrays[value] if key == _ARRAY else _scalar(arrays[value])
    return {key.removeprefix("$"): decode(value, arrays) for key, value in plain.items()}


def _scalar(array: Array) -> Any:
    if array.ndim:
        raise ValueError(f"a scalar has the shape {array.shape}")
    return array[()]


def _encode(value: Tree, arrays: dict[str, Array], where: str) -> Any:
    # Exact types: a subclass (an enum, a masked array, np.matrix) would come back as something else.
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {_FLOAT: repr(value)}
    if kind is list:
        return [_encode(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
    if kind is tuple:
        return {_TUPLE: [_encode(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]}
    if kind is dict:
        return {_key(key, where): _encode(item, arrays, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, np.generic) or kind in (np.ndarray, np.memmap):
        return {_SCALAR if isinstance(value, np.generic) else _ARRAY: _store(value, arrays, where)}
    raise TypeError(
        f"`save` cannot write {where} = {shown(value)} of type {kind.__name__}; convert it to numbers, strings, lists, "
        "dicts or NumPy arrays first."
    )


def _key(key: object, where: str) -> str:
    if type(key) is not str:
        raise TypeError(f"`save` needs strings as keys, got {shown(key)} in {where}; convert it with `str` first.")
    return "$" + key if key.startswith("$") else key


def _store(value: Array | np.generic, arrays: dict[str, Array], where: str) -> str:
    if value.dtype.hasobject:
        raise TypeError(f"`save` writes no Python objects, but {where} has dtype {value.dtype}; convert it first.")
    name = f"a{len(arrays)}"
    arrays[name] = np.asarray(value)
    return name
