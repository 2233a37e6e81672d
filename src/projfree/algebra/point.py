"""`Point`: an immutable parameter, which may be stored as a linear combination of a few other points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from projfree.checks import Array

#: A combination of more points than this forgets them: computing its predictions is cheaper than combining so many.
MOST_PARTS = 3


class Handle:
    """The key under which a workspace stores the predictions of a point; copies get keys of their own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A parameter ``w``; closed under ``+`` and scalar ``*``.

    Points are immutable.

    Attributes
    ----------
    w : ndarray
        The parameter, read-only.
    intercept : ndarray or None
        The intercept that belongs to ``w``, or the start of the search for it. A combination has the average of the
        intercepts of its points; vertices from an oracle have none.
    mass : float
        The weight of the intercept in averages.
    of : tuple of (float, Point)
        The points that this one is a combination of, if they are few.
    handle : Handle
        The key of the predictions in a workspace.
    """

    w: Array
    intercept: Array | None = None
    mass: float = field(default=1.0, metadata={"transient": True})
    of: tuple[tuple[float, Point], ...] = field(default=(), metadata={"transient": True})
    # `dataclasses.replace` makes a new one
    handle: Handle = field(default_factory=Handle, repr=False, init=False, metadata={"transient": True})

    # NumPy scalars must not try to broadcast over a Point: let `Point.__rmul__` answer.
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
        """The same point with another intercept, no longer a mixture; it is found by the same handle."""
        copy = Point(self.w, intercept)
        object.__setattr__(copy, "handle", self.handle)
        return copy

    def starting_at(self, intercept: Array | None) -> Point:
        """The same point, mixture and handle, with another start for the search for its intercept."""
        copy = self.alone(intercept)
        object.__setattr__(copy, "of", self.of)
        return copy


def mix(*terms: tuple[float, Point], intercept: Array | None = None) -> Point:
    """The linear combination of points; ``intercept`` replaces the average of theirs."""
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
    """A copy, with a handle of its own and as read-only as the original."""
    return Point(frozen(w), intercept, mass, of)


def is_frozen(w: Array) -> bool:
    """Whether nobody can write to an array, through what it is a view of either; not known of factors."""
    if not isinstance(w, np.ndarray) or w.flags.writeable:
        return False
    return w.base is None or is_frozen(w.base)


def frozen(w: Array) -> Array:
    """The array itself, made read-only; factors and patterns are as they are."""
    if isinstance(w, np.ndarray):
        w.flags.writeable = False
    return w
