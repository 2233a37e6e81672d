r"""Turns of coordinate descent and of Newton steps for a quadratic over a `FlatBall`.

Coordinate descent works on the penalty :math:`\lambda \sum_b c_b \|w_b\|`, whose multiplier is not known beforehand. On
the face of the groups that are not zero the conditions

.. math:: H w - b + \lambda\, c\, \nabla\|w\| = 0, \qquad \sum_b c_b \|w_b\| = r

are solved for w and :math:`\lambda` together, by one Newton step: exact where faces are flat, quadratically convergent
where they are curved. What a face is differs from set to set; the turns are the same.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.symmetric import Symmetric

#: Turns of descent and Newton steps at most, and those without progress after which the rest is rounding.
MOST, IDLE = 100, 12
#: Rounds of descent in a turn: one over all entries, the others over those that are not zero.
ROUNDS = 4
#: A turn changes the multiplier by at most this factor.
CHANGE = 4.0
#: It becomes zero when so many turns in a row have found the minimum over their face inside the ball.
PATIENCE = 5
#: Gaps of this many roundings of the terms that cancel in them are none, times the root of their number.
NOISE = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FlatMinimum:
    """A point of the set, the multiplier there, and the Frank-Wolfe gap of the quadratic with its rounding."""

    w: Array
    level: float
    gap: float
    floor: float


class Descent(ABC):
    """The arrays of one solve; columns are held as rows."""

    def __init__(self, H: Symmetric, b: Array, ball: FlatBall, start: Array, level: float) -> None:
        self.H, self.ball, self.shape = H, ball, b.shape
        self.b = np.ascontiguousarray(b.reshape(len(b), -1).T)
        self.w = np.array(start.reshape(len(b), -1).T, order="C", dtype=np.float64)
        self.level, self.slope, self.inside = level, self._slope(self.w), 0
        # The slopes are differences of numbers as large as these.
        self.steepest = float(np.max(self.H.diagonal, initial=0.0))
        self.highest = float(np.max(ball.duals(b) / ball.costs, initial=0.0))
        self.short = self.highest  # a multiplier with which the point did not use up the radius
        self.floor = NOISE * math.sqrt(len(b)) * ball.radius * self.highest

    #: Newton steps in a turn while they stay on the face.
    landings: ClassVar[int] = 1
    #: Whether the multiplier is given and the radius follows from it.
    fixed: bool = False

    @abstractmethod
    def descend(self) -> None:
        """Rounds of coordinate descent with the penalty of today's multiplier."""

    @abstractmethod
    def face(self) -> tuple[Array, Array, Array, Array]:
        """What is not zero, a Newton step there at the same multiplier, one for a unit of it, and the normal."""

    @abstractmethod
    def kept(self, new: Array) -> Array:
        """``new`` without the groups that would change their side."""

    @abstractmethod
    def shorter(self, step: Array) -> Array:
        """The point to which a step that leads too far may be taken: no group changes its side before."""

    def solve(self, goal: float) -> FlatMinimum:
        """Turns of descent and of Newton steps until the gap is small or stays as it is."""
        best, idle = self.found(), 0
        for _ in range(MOST):
            self.descend()
            for _ in range(self.landings):
                clean = self._land()
                found = self.found()
                idle = 0 if found.gap < 0.9 * best.gap else idle + 1
                best = found if found.gap < best.gap else best
                if not clean:
                    break
            if best.gap <= max(goal, best.floor) or idle >= IDLE or expired():
                break
        return best

    def settle(self) -> Array:
        """The minimiser at the given multiplier: turns until the conditions for it hold up to rounding."""
        best, idle, w = math.inf, 0, self.w.copy()
        for _ in range(MOST):
            self.descend()
            for _ in range(self.landings):
                if not self._land():
                    break
            left = self._left()
            idle = 0 if left < 0.9 * best else idle + 1
            best, w = (left, self.w.copy()) if left < best else (best, w)
            if best <= NOISE * max(self.highest, self.level) or idle >= IDLE or expired():
                break
        return w.T.reshape(self.shape)

    def _left(self) -> float:
        """How far the conditions for the minimum at today's multiplier are from being met."""
        w, g = self.w.T.reshape(self.shape), self.slope.T.reshape(self.shape)
        sizes = self.ball.sizes(w)
        off = np.maximum(self.ball.sizes(g) - self.level, 0.0)
        by = np.where(sizes > 0.0, sizes, 1.0)
        unit = w / (by if by.ndim == w.ndim else by[:, None])
        on = self.ball.sizes(g + self.level * unit)
        return float(np.max(np.where(sizes > 0.0, on, off), initial=0.0))

    def _slope(self, w: Array) -> Array:
        return np.asarray(self.H.times(w) - self.b)

    def found(self) -> FlatMinimum:
        """The point scaled into the set, with its gap."""
        w = self.w.T.reshape(self.shape).copy()
        inside = self.ball.inside(w)
        g = (self.slope if inside is w else self._slope(inside.reshape(len(w), -1).T)).T.reshape(self.shape)
        outside = self.ball.tight and not inside.any()  # zero lies on no simplex, and cannot be scaled onto one
        return FlatMinimum(inside, self.ball.level(g), math.inf if outside else self.ball.gap(g, inside), self.floor)

    def _land(self) -> bool:
        """One Newton step on the face, for the point and the multiplier; whether it stayed on the face."""
        on, free, along, outward = self.face()
        rate = float(np.vdot(outward, along))
        if not rate > 0.0 and self.fixed:
            return False
        if not rate > 0.0:  # nothing is left on the face: the penalty was too large
            self.level = 0.5 * self.ball.level(self.slope.T.reshape(self.shape))
            return False
        norm = float(np.vdot(outward, self.w[on]))
        level = self._bounded(self.level + (norm + float(np.vdot(outward, free)) - self.ball.radius) / rate, norm)
        step = np.zeros_like(self.w)
        step[on] = free - (level - self.level) * along
        self.level, new = level, self.w + step
        kept = self.kept(new)
        if not self._falls(kept):
            kept = self.shorter(step)
            self._falls(kept)
        self.w, self.slope = kept, self._trial
        return kept is new

    def _falls(self, new: Array) -> bool:
        """Whether the function with its penalty is lower there, or differs by rounding alone; its slope is kept."""
        self._trial, before = self._slope(new), self._penalised(self.w, self.slope)
        return self._penalised(new, self._trial) <= before + NOISE * abs(before)

    def _penalised(self, w: Array, slope: Array) -> float:
        return 0.5 * float(np.vdot(w, slope - self.b)) + self.level * self.ball.norm(w.T.reshape(self.shape))

    def _bounded(self, level: float, norm: float) -> float:
        """A multiplier that is not too far from the last one; zero where the minimum over the face lies inside."""
        if self.fixed:
            return self.level
        if self.ball.tight:
            return level
        self.inside = self.inside + 1 if level <= 0.0 else 0
        if self.inside > PATIENCE or self.level == 0.0:
            return max(level, 0.0)
        low, high = self.level / CHANGE, self.level * CHANGE
        if norm < self.ball.radius:
            self.short = self.level
        elif norm > 1.1 * self.ball.radius:
            # A smaller multiplier, as a nearly singular face may ask for, leads away; descent with one between this
            # and the last that was too large leaves fewer entries.
            middle = math.sqrt(self.level * max(self.short, self.level))
            low, high = middle if level <= self.level else self.level, max(self.level, self.highest)
        return min(max(level, low), high)
