"""`Hull`: a function on the simplex of a few points, all that a step rule or a correction sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT, Point, inner, mix
from projfree.checks import Array
from projfree.numerics.corner import minimise_on_corner
from projfree.numerics.newton_root import bracketed_root

NEWTON_STEPS = 20
#: Newton on the simplex ends when the next step promises less than this part of what was gained.
ENOUGH = 1e-3
#: A slope along a segment counts as zero at this part of its first size.
FLAT = 1e-8
#: Where the function need not be convex, trial steps grow by this factor from the short step, a sure descent.
SCAN_GROWTH, SCAN_MOST = 4.0, 40


@dataclass(frozen=True, slots=True)
class Local:
    """Value, slope and curvature of the function at one place of the hull."""

    value: float
    gradient: Array
    hessian: Array
    intercept: Array | None = None


class Hull(ABC):
    r"""The function :math:`\phi(m) = f\big(p_0 + \sum_j m_j (p_j - p_0)\big)` on :math:`m \ge 0, \sum m \le 1`.

    Two points make a line search, three a correction. Nothing is computed before it is asked for.
    """

    def __init__(self, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None, convex: bool) -> None:
        self.points, self._gradient, self.convex = points, gradient, convex
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
        return float(np.sum((self.points[1].w - self.points[0].w) ** 2))

    def at(self, m: Array) -> Local:
        """Value, gradient and Hessian at ``m``."""
        key = m.tobytes()
        if key not in self._seen:
            here = self._evaluate(m)
            value, gradient = here.value + float(self.tilt @ m), here.gradient + self.tilt
            self._seen[key] = Local(value, gradient, here.hessian, here.intercept)
        return self._seen[key]

    def mix(self, m: Array) -> Point:
        """The point at ``m``, with what is known about it."""
        x = mix((1.0 - float(m.sum()), self.points[0]), *zip(m.tolist(), self.points[1:], strict=True))
        here = self._seen.get(m.tobytes())
        if here is not None and here.intercept is not None:
            x.mass, x.moment = 1.0, here.intercept
        return x

    def minimise(self, start: Array) -> Array:
        """The minimiser over the hull for a convex function, else a point no higher than the first point.

        Newton on the simplex: the quadratic model is minimised exactly, then f on the segment to its minimiser.
        """
        if not self.convex:
            return self._scan()
        m, first = start, self.at(start).value
        for _ in range(NEWTON_STEPS):
            here = self.at(m)
            direction = minimise_on_corner(here.gradient - here.hessian @ m, here.hessian) - m
            decrease = -float(here.gradient @ direction)
            if decrease <= max(8.0 * UNIT * abs(here.value), ENOUGH * (first - here.value)):
                break
            new = m + self._search(m, direction) * direction
            if self.at(new).value > here.value:
                break
            m = new
        return m

    def _search(self, m: Array, direction: Array, high: float = 1.0, start: float = 1.0) -> float:
        def slope(s: float) -> tuple[float, float, float]:
            here = self.at(m + s * direction)
            first, second = float(here.gradient @ direction), float(direction @ here.hessian @ direction)
            # A tenth of the first slope is plenty within Newton; on a segment the search is the answer.
            noise = max(4.0 * UNIT * abs(here.value), abs(initial) * (FLAT if len(m) == 1 else 0.1))
            return first, second, noise

        initial = float(self.at(m).gradient @ direction)
        return bracketed_root(slope, 0.0, high, start)

    def _scan(self) -> Array:
        """The lowest of geometrically spaced steps, polished; never above the first point."""
        gap, bend = self.gap, self.curvature
        short = min(1.0, gap / bend) if gap > 0.0 and bend > 0.0 else 1.0
        steps = [0.0, *(s for k in range(SCAN_MOST) if (s := short * SCAN_GROWTH**k) < 1.0), 1.0]
        values = [self.at(np.array([s])).value for s in steps]
        best = int(np.argmin(values))
        if best == 0:
            return np.zeros(1)
        low, high = steps[best - 1], steps[min(best + 1, len(steps) - 1)]
        base, direction = np.array([low]), np.array([high - low])
        polished = base + self._search(base, direction, start=(steps[best] - low) / (high - low)) * direction
        return polished if self.at(polished).value < values[best] else np.array([steps[best]])


class QuadraticHull(Hull):
    """A quadratic on its hull, from its slope and curvature at the first point."""

    def __init__(self, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None, convex: bool) -> None:
        super().__init__(points, gradient, tilt, convex)
        self._model: Local | None = None

    @abstractmethod
    def _expand(self) -> Local:
        """The quadratic at the first point."""

    @property
    def model(self) -> Local:
        """The quadratic at the first point, computed once."""
        if self._model is None:
            self._model = self._expand()
        return self._model

    def _evaluate(self, m: Array) -> Local:
        value, g, H = self.model.value, self.model.gradient, self.model.hessian
        return Local(value + float(g @ m + 0.5 * m @ H @ m), g + H @ m, H)

    @property
    def curvature(self) -> float:
        return float(self.model.hessian[0, 0])

    def minimise(self, start: Array) -> Array:
        return minimise_on_corner(self.model.gradient + self.tilt, self.model.hessian)
