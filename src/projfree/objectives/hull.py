"""`Hull`: a function on the simplex of a few points, all that a step rule or a correction sees."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from projfree.algebra import UNIT, Point, inner, mix, square
from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.corner import minimise_on_corner
from projfree.numerics.newton_root import bracketed_root

NEWTON_STEPS = 20
#: Newton ends when the next step would bring less than this part of what was gained: on a simplex, and on a segment,
#: where the answer is called exact.
ENOUGH, EXACT = 1e-3, 1e-12
#: A slope along a segment counts as zero at this part of its first size.
FLAT = 1e-8
#: Where the function need not be convex, trial steps grow by this factor from the short step, a sure descent.
SCAN_GROWTH, SCAN_MOST = 4.0, 40


@dataclass(frozen=True, slots=True)
class Local:
    """Value, gradient and Hessian at one place of the hull."""

    value: float
    gradient: Array
    hessian: Array
    intercept: Array | None = None


class Hull(ABC):
    r"""The function :math:`\phi(m) = f\big(p_0 + \sum_j m_j (p_j - p_0)\big)` on :math:`m \ge 0, \sum m \le 1`.

    Two points make a line search, three a correction. Nothing is computed before it is asked for, and what was is kept
    out of sight. A place may have
    free coordinates behind those of m, the intercept: `at` minimises over them, `minimise` moves them along.
    """

    def __init__(self, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None, convex: bool) -> None:
        # Each point for itself, so that mixtures refer to these very points.
        self.points = tuple(p.alone(p.intercept) for p in points)
        self._gradient, self.convex = gradient, convex
        self.tilt = np.zeros(len(points) - 1) if tilt is None else tilt
        self._seen: dict[bytes, Local] = {}

    @abstractmethod
    def _evaluate(self, m: Array) -> Local:
        """`at` without the tilt."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """An upper bound on the second derivative along the segment of the first two points."""

    @property
    def gap(self) -> float:
        r""":math:`\langle g, p_0 - p_1\rangle` with g the gradient at the first point: the slope, negated."""
        if self._gradient is None:
            return -float(self.at(np.zeros(len(self.tilt))).gradient[0])
        return inner(self._gradient, self.points[0].w - self.points[1].w)

    @property
    def squared_length(self) -> float:
        """The squared distance of the first two points."""
        return square(self.points[1].w - self.points[0].w)

    def at(self, m: Array) -> Local:
        """Value, gradient and Hessian at ``m``."""
        key = m.tobytes()
        if key not in self._seen:
            self._seen[key] = self._tilted(m, self._evaluate(m))
        return self._seen[key]

    def _tilted(self, m: Array, here: Local) -> Local:
        value, gradient = here.value + float(self.tilt @ m), here.gradient.copy()
        gradient[: len(m)] += self.tilt
        return Local(value, gradient, here.hessian, here.intercept)

    def mix(self, m: Array) -> Point:
        """The point at ``m``, with the intercept that was found there."""
        here = self._seen.get(m.tobytes())
        terms = zip(m.tolist(), self.points[1:], strict=True)
        intercept = None if here is None else here.intercept
        return mix((1.0 - float(m.sum()), self.points[0]), *terms, intercept=intercept)

    def minimise(self, *starts: Array) -> Array:
        """The minimiser over the hull for a convex function, else a point no higher than the first point.

        Newton on the simplex, from the lowest of ``starts`` and never above it: the quadratic model is minimised
        exactly, then f on the segment to its minimiser.
        """
        if not self.convex:
            return self._scan()
        places = [self._place(m) for m in starts]
        self._prepare(places)
        place = min(places, key=lambda place: self._look(place).value)
        here, first = self._look(place), self._look(place).value
        enough = EXACT if len(self.tilt) == 1 else ENOUGH
        for _ in range(NEWTON_STEPS):
            direction = self._newton(place, here)
            decrease = -float(here.gradient @ direction)
            if decrease <= max(8.0 * UNIT * abs(here.value), enough * (first - here.value)):
                break
            new = place + self._search(place, direction) * direction
            there = self._look(new)
            if there.value > here.value:
                break
            place, here = new, there
            if expired():
                break
        return self._leave(place, here)

    def _place(self, m: Array) -> Array:
        """``m`` with the free coordinates appended."""
        return m

    def _look(self, place: Array) -> Local:
        """Value, gradient and Hessian in all coordinates of a place."""
        return self.at(place)

    def _prepare(self, places: Sequence[Array]) -> None:
        """Look at places that will be asked about, all at once where that is cheaper."""
        for place in places:
            self._look(place)

    def _leave(self, place: Array, here: Local) -> Array:
        """The coordinates of m in a place, after noting what was found there."""
        return place

    def _newton(self, place: Array, here: Local) -> Array:
        """The step to the minimiser of the quadratic model, free coordinates eliminated."""
        k, m = len(self.tilt), place[: len(self.tilt)]
        g, H, answer = reduced(here.gradient, here.hessian, k)
        step = minimise_on_corner(g - H @ m, H) - m
        return step if answer is None else np.concatenate([step, -answer[:, 0] - answer[:, 1:] @ step])

    def _search(self, place: Array, direction: Array, start: float = 1.0) -> float:
        """The minimiser of f on the segment, as a part of ``direction``."""
        # A tenth of the first slope is plenty within Newton; where the segment is all there is, it is the answer.
        enough = FLAT if len(self.tilt) == 1 else 0.1

        def slope(s: float) -> tuple[float, float, float]:
            here = self._look(place + s * direction)
            first, second = float(here.gradient @ direction), float(direction @ here.hessian @ direction)
            noise = math.inf if expired() else max(4.0 * UNIT * abs(here.value), abs(initial) * enough)
            return first, second, noise

        initial = float(self._look(place).gradient @ direction)
        return bracketed_root(slope, 0.0, 1.0, start)

    def _scan(self) -> Array:
        """The lowest of geometrically spaced steps, polished; never above the first point."""
        gap, bend = self.gap, self.curvature
        short = min(1.0, gap / bend) if gap > 0.0 and bend > 0.0 else 1.0
        steps = [0.0, *(s for k in range(SCAN_MOST) if (s := short * SCAN_GROWTH**k) < 1.0), 1.0]
        places = [np.array([s]) for s in steps]
        self._prepare(places)
        values = [self.at(place).value for place in places]
        best = int(np.argmin(values))
        if best == 0:
            return np.zeros(1)
        low, high = steps[best - 1], steps[min(best + 1, len(steps) - 1)]
        base, direction = np.array([low]), np.array([high - low])
        polished = base + self._search(base, direction, start=(steps[best] - low) / (high - low)) * direction
        return polished if self.at(polished).value < values[best] else np.array([steps[best]])


def reduced(g: Array, H: Array, k: int) -> tuple[Array, Array, Array | None]:
    """Gradient and Hessian in the first ``k`` coordinates with the others eliminated, and the others' answer.

    The answer has one column for the gradient and one for each kept coordinate; least squares, because softmax
    does not see a common shift of its intercepts.
    """
    if len(g) == k:
        return g, H, None
    answer: Array = np.linalg.lstsq(H[k:, k:], np.column_stack([g[k:], H[k:, :k]]), rcond=1e-14)[0]
    return g[:k] - H[:k, k:] @ answer[:, 0], H[:k, :k] - H[:k, k:] @ answer[:, 1:], answer


class QuadraticHull(Hull):
    """A quadratic on its hull.

    Parameters
    ----------
    points, gradient, tilt, convex
        As for every hull.
    expand : callable
        Gives the quadratic at the first of the points: its value, slope and curvature. It is called once, when it is
        first needed.
    """

    def __init__(
        self,
        points: tuple[Point, ...],
        gradient: Array | None,
        tilt: Array | None,
        convex: bool,
        expand: Callable[[tuple[Point, ...]], Local],
    ) -> None:
        super().__init__(points, gradient, tilt, convex)
        self._expand = expand

    @cached_property
    def model(self) -> Local:
        """The quadratic at the first point."""
        return self._expand(self.points)

    def _evaluate(self, m: Array) -> Local:
        value, g, H = self.model.value, self.model.gradient, self.model.hessian
        return Local(value + float(g @ m + 0.5 * m @ H @ m), g + H @ m, H)

    @property
    def curvature(self) -> float:
        return float(self.model.hessian[0, 0])

    def minimise(self, *starts: Array) -> Array:
        return minimise_on_corner(self.model.gradient + self.tilt, self.model.hessian)
