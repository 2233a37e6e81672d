"""`Point`: an immutable parameter that may record the linear combination of points from which it was computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from projfree.checks import Array

#: Largest number of points that a combination records; beyond it, computing predictions is cheaper than combining them.
MOST_PARTS = 3


class Handle:
    """Key under which a workspace stores the predictions of a point."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A parameter ``w``; closed under ``+`` and scalar ``*``.

    Points are immutable.

    Attributes
    ----------
    w : ndarray
        Parameter, read-only.
    intercept : ndarray or None
        Intercept that belongs to ``w``, or the initial value for its optimisation. That of a combination is the
        weighted average of the intercepts of its points; vertices from an oracle have none.
    mass : float
        Weight of the intercept in averages.
    of : tuple of (float, Point)
        Coefficients and points of the linear combination; empty if there are too many.
    handle : Handle
        Key of the predictions in a workspace.
    """

    w: Array
    intercept: Array | None = None
    mass: float = field(default=1.0, metadata={"transient": True})
    of: tuple[tuple[float, Point], ...] = field(default=(), metadata={"transient": True})
    # `dataclasses.replace` creates a new one.
    handle: Handle = field(default_factory=Handle, repr=False, init=False, metadata={"transient": True})

    # NumPy scalars must not broadcast over a Point: they defer to `Point.__rmul__`.
    __array_ufunc__ = None

    def __mul__(self, a: float) -> Point:
        return mix((a, self))

    __rmul__ = __mul__

    def __add__(self, other: Point) -> Point:
        return mix((1.0, self), (1.0, other))

    def __sub__(self, other: Point) -> Point:
        return mix((1.0, self), (-1.0, other))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.w, self.intercept, self.mass, self.of)

    def alone(self, intercept: Array | None) -> Point:
        """Return a copy with another intercept and the same handle, without the recorded combination."""
        copy = Point(self.w, intercept)
        object.__setattr__(copy, "handle", self.handle)
        return copy

    def starting_at(self, intercept: Array | None) -> Point:
        """Return a copy with another initial value for the intercept, the same handle and the same combination."""
        copy = self.alone(intercept)
        object.__setattr__(copy, "of", self.of)
        return copy


def mix(*terms: tuple[float, Point], intercept: Array | None = None) -> Point:
    """Return a linear combination of points; ``intercept`` replaces the weighted average of their intercepts."""
    parts: dict[Handle, tuple[float, Point]] = {}
    w, mass, moment = None, 0.0, None
    for c, point in terms:
        c = float(c)
        w = c * point.w if w is None else w + c * point.w
        if point.intercept is not None and c != 0.0:
            weight = abs(c) * point.mass
            mass, moment = mass + weight, weight * point.intercept + (0.0 if moment is None else moment)
        for a, part in point.of or ((1.0, point),):
            total = c * a + parts[part.handle][0] if part.handle in parts else c * a
            parts[part.handle] = (total, part)
    assert w is not None
    of: tuple[tuple[float, Point], ...] = ()
    for term in parts.values():
        if term[0] != 0.0:
            of += (term,)
    if intercept is not None:
        mass = 1.0
    elif moment is not None:
        intercept = moment / mass
    return Point(frozen(w), intercept, mass, of if len(of) <= MOST_PARTS else ())


def _restored(w: Array, intercept: Array | None, mass: float, of: tuple[tuple[float, Point], ...]) -> Point:
    """Create a read-only point with a new handle; used by pickle and copy."""
    return Point(frozen(w), intercept, mass, of)


def is_frozen(w: Array) -> bool:
    """Whether an array and all arrays that it is a view of are read-only; False for structured matrices."""
    if not isinstance(w, np.ndarray) or w.flags.writeable:
        return False
    return w.base is None or is_frozen(w.base)


def frozen(w: Array) -> Array:
    """Make an array read-only and return it; return other objects unchanged."""
    if isinstance(w, np.ndarray):
        w.flags.writeable = False
    return w
