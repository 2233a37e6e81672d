"""How points and gradients enter a set, and how results leave it in the precision that came in."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from projfree.algebra.structured import Structured
from projfree.checks import Array, all_finite, real_array

Shape = tuple[int, ...]


def point(w: Array) -> Array:
    """``w`` as a C-ordered float64 array, so that the layout of the input never changes a digit of the result."""
    out = real_array("w", w)
    return np.ascontiguousarray(out, dtype=np.float64).reshape(out.shape)


def finite(call: str, g: Array) -> Array:
    """`point`, or ValueError naming the first entry that is not a finite number."""
    return all_finite(call, point(g), "the function or the step that made it has overflowed")


def like(g: Any, v: Any) -> Array:
    """``v`` in the precision of ``g`` (float32 stays float32, everything else is float64), without negative zeros.

    Matrices that are never formed stay as they are.
    """
    if isinstance(v, Structured):
        same: Any = v
        return same  # type: ignore[no-any-return]  # typed as the arrays that it takes the place of
    return np.asarray(v + 0.0, dtype=np.float32 if np.asarray(g).dtype == np.float32 else np.float64)


def largest(g: Array) -> float:
    """The largest absolute entry, 1 for a zero array, NaN if one is NaN: what to divide by before taking powers."""
    top = float(np.max(np.abs(g), initial=0.0))
    return top if top != 0.0 else 1.0


def unit_scale(g: Array) -> float:
    """A power of two near the largest absolute entry, by which divisions are exact."""
    return math.ldexp(1.0, math.frexp(largest(g))[1] - 1)


def _checked(call: str, scaled: bool) -> Callable[[Callable[[Any, Array], Array]], Callable[[Any, Array], Array]]:
    """Give a method finite float64 input of a shape that the set takes, and return its result in their precision."""

    def decorate(method: Callable[[Any, Array], Array]) -> Callable[[Any, Array], Array]:
        @wraps(method)
        def of_any(self: Any, given: Array) -> Array:
            x = finite(call, given)
            self.check_shape(x.shape)
            return like(given, method(self, x / unit_scale(x) if scaled else x))

        return of_any

    return decorate


#: An oracle of any gradient from one of gradients whose largest entry is about 1, and a projection of any input.
scaled_gradient, checked_point = _checked("lmo(g)", True), _checked("project(w)", False)


def scaled_norm(norm: Callable[[Any, Array], float]) -> Callable[[Any, Array], float]:
    """A norm of any point from one of points whose largest entry is about 1."""

    @wraps(norm)
    def of_any(self: Any, w: Array) -> float:
        x = point(w)
        self.check_shape(x.shape)
        scale = largest(x)
        return scale * norm(self, x / scale) if math.isfinite(scale) else scale

    return of_any


def frozen(array: Array) -> float | Array:
    """A float for a single number, else a read-only float64 copy: settings must not change under a run."""
    if np.ndim(array) == 0:
        return float(array)
    out = np.array(array, dtype=np.float64)
    out.flags.writeable = False
    return out


def check_matrix(call: str, shape: Shape, layout: str) -> None:
    """Raise ValueError unless ``shape`` is that of a matrix."""
    if len(shape) != 2:
        raise ValueError(f"`{call}` needs matrices ({layout}), got shape {shape}; for vectors use LpBall.")


def check_broadcast(name: str, what: str, given: Shape, shape: Shape) -> None:
    """Raise ValueError if something of shape ``given`` cannot be laid over points of shape ``shape``."""
    try:
        fits = np.broadcast_shapes(given, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"`{name}` has {what} of shape {given}, which do not fit points of shape {shape}.")
