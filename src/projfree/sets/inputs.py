"""Validation and scaling of the inputs of sets, and conversion of results to the dtype of the input."""

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
    """Return ``w`` as a C-ordered float64 array, so that results do not depend on the memory layout of the input."""
    out = real_array("w", w)
    return np.ascontiguousarray(out, dtype=np.float64).reshape(out.shape)


def finite(call: str, g: Array) -> Array:
    """Return `point` of ``g``; raise ValueError that names the first entry that is not finite."""
    return all_finite(call, point(g), "the function or the step that made it has overflowed")


def like(g: Any, v: Any) -> Array:
    """Return ``v`` as float32 if ``g`` is float32, else as float64, without negative zeros.

    Structured matrices are returned unchanged.
    """
    if isinstance(v, Structured):
        same: Any = v
        return same  # type: ignore[no-any-return]  # structured matrices are typed as arrays
    return np.asarray(v + 0.0, dtype=np.float32 if np.asarray(g).dtype == np.float32 else np.float64)


def largest(g: Array) -> float:
    """Return the largest absolute entry, or 1 for a zero array; dividing by it prevents overflow of powers."""
    top = float(np.max(np.abs(g), initial=0.0))
    return top if top != 0.0 else 1.0


def unit_scale(g: Array) -> float:
    """Return a power of two near the largest absolute entry; dividing by it is exact."""
    return math.ldexp(1.0, math.frexp(largest(g))[1] - 1)


def _checked(call: str, scaled: bool) -> Callable[[Callable[[Any, Array], Array]], Callable[[Any, Array], Array]]:
    """Return a decorator that validates the input, converts it to float64, and converts the result to its dtype."""

    def decorate(method: Callable[[Any, Array], Array]) -> Callable[[Any, Array], Array]:
        @wraps(method)
        def of_any(self: Any, given: Array) -> Array:
            x = finite(call, given)
            self.check_shape(x.shape)
            return like(given, method(self, x / unit_scale(x) if scaled else x))

        return of_any

    return decorate


#: Decorators: `scaled_gradient` validates and rescales the gradient of `lmo` so that its largest entry is about 1;
#: `checked_point` validates the input of `project`.
scaled_gradient, checked_point = _checked("lmo(g)", True), _checked("project(w)", False)


def scaled_norm(norm: Callable[[Any, Array], float]) -> Callable[[Any, Array], float]:
    """Decorate a norm to rescale its input so that the largest entry is 1, which prevents overflow."""

    @wraps(norm)
    def of_any(self: Any, w: Array) -> float:
        x = point(w)
        self.check_shape(x.shape)
        scale = largest(x)
        return scale * norm(self, x / scale) if math.isfinite(scale) else scale

    return of_any


def frozen(array: Array) -> float | Array:
    """Return a scalar as float, an array as a read-only float64 copy, so that it cannot change during a run."""
    if np.ndim(array) == 0:
        return float(array)
    out = np.array(array, dtype=np.float64)
    out.flags.writeable = False
    return out


def check_matrix(call: str, shape: Shape, layout: str) -> None:
    """Raise ValueError unless ``shape`` has two dimensions."""
    if len(shape) != 2:
        raise ValueError(f"`{call}` needs matrices ({layout}), got shape {shape}; for vectors use LpBall.")


def check_broadcast(name: str, what: str, given: Shape, shape: Shape) -> None:
    """Raise ValueError if an array of shape ``given`` does not broadcast to ``shape``."""
    try:
        fits = np.broadcast_shapes(given, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"`{name}` has {what} of shape {given}, which do not fit points of shape {shape}.")
