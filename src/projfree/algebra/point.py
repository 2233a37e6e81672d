"""`Point`: a parameter that carries its image, so that mixtures of points cost no pass over the data."""

from __future__ import annotations

from dataclasses import dataclass

from projfree.algebra.image import MOST_PENDING, Image
from projfree.checks import Array


@dataclass(slots=True, eq=False)
class Point:
    r"""A parameter ``w`` with its lazy image :math:`A w`; closed under ``+`` and scalar ``*``.

    ``mass`` and ``moment`` hold a start for the intercept in homogeneous form: ``moment / mass`` where ``mass``
    is positive. Oracle vertices have mass zero, so a mixture inherits the intercept of the points that have one.
    ``value`` and ``intercept`` are filled in by the objective once it has evaluated the point. ``beside`` is another
    mixture of the same points, whose value the next pass may give on the way.
    """

    w: Array
    image: Image
    mass: float = 0.0
    moment: Array | float = 0.0
    intercept: Array | None = None
    value: float | None = None
    beside: Point | None = None

    # NumPy scalars must not try to broadcast over a Point: let `Point.__rmul__` answer.
    __array_ufunc__ = None

    def __mul__(self, a: float) -> Point:
        return mix((a, self))

    __rmul__ = __mul__

    def __add__(self, other: Point) -> Point:
        return mix((1.0, self), (1.0, other))

    def __sub__(self, other: Point) -> Point:
        return mix((1.0, self), (-1.0, other))

    @property
    def settled(self) -> bool:
        """Whether the whole image is known."""
        return not self.image.pending()

    def hint(self) -> Array | float | None:
        """A start for the intercept, None where no ancestor had one."""
        if self.intercept is not None:
            return self.intercept
        return self.moment / self.mass if self.mass > 0.0 else None

    def lean_on(self, other: Point) -> None:
        """Take the start for the intercept from a point nearby, if that has one."""
        start = other.hint()
        if start is not None and self.intercept is None:
            self.mass, self.moment = 1.0, start

    def anchored(self, intercept: Array) -> None:
        """Record the intercept found for this point."""
        self.intercept, self.mass, self.moment = intercept, 1.0, intercept


def mix(*terms: tuple[float, Point]) -> Point:
    """The linear combination of points, with images and intercepts in step."""
    (a, first), *rest = terms
    a = float(a)
    w, image = a * first.w, first.image.mixed(a, Image({}), 0.0)
    mass, moment = abs(a) * first.mass, abs(a) * first.moment
    for b, point in rest:
        w = w + b * point.w
        image = image.mixed(1.0, point.image, float(b))
        mass, moment = mass + abs(b) * point.mass, moment + abs(b) * point.moment
    if len(image.pending()) > MOST_PENDING:
        image = Image.of(w)
    return Point(w, image, mass, moment)
