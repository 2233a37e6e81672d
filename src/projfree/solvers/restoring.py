"""Checks of what a file says about a state: a checkpoint may hold anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import all_finite, count, real_array


def number(value: Any) -> Any:
    """A number; flags and text are none."""
    if type(value) not in (int, float) and not isinstance(value, np.number):
        raise TypeError(f"{value!r} is no number")
    return value


def like(first: Any, value: Any) -> Any:
    """A part of a state: a count or a number where that of a new state is one, and arrays without gaps."""
    if isinstance(first, int) and not isinstance(first, bool):
        return count("a count", value, lowest=0)
    if isinstance(first, float):
        return number(value)
    if isinstance(first, np.ndarray) and np.ndim(value) != first.ndim:
        raise ValueError(f"an array has the shape {np.shape(value)}, not {first.ndim} dimensions")
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "iub" else all_finite("an array", real_array("an array", value))
    return value


def check_shapes(kept: dict[str, Any], **shapes: tuple[int, ...]) -> None:
    """Raise where an array that a checkpoint has kept has another shape than the problem asks for."""
    for name, shape in shapes.items():
        found = kept.get(name)
        if found is not None and np.shape(found) != shape:
            raise ValueError(f"`{name}` has the shape {np.shape(found)}, not {shape}")
