r"""A quadratic over the unit ball of an l_p norm, :math:`1 < p < \infty`, by Newton's method along the mirror curve.

With :math:`s = \operatorname{sgn}(x)|x|^{p-1}` the optimality conditions on the sphere are

.. math:: H x - b + \lambda s = 0, \qquad \|x\|_p = 1.

For a fixed penalty :math:`\lambda` the first is the gradient of a convex function of ``x``; Newton's method solves it
in the coordinate of `mirror_curve`, in which neither ``x`` nor ``s`` has an infinite slope, with a matrix scaled to
the diagonal one. The penalty follows by Newton's method on :math:`1/\|x(\lambda)\|_p` (Hebden), in the same step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.lp_norm import lp_norm, power
from projfree.numerics.mirror_curve import Place, on_curve
from projfree.numerics.mirror_step import MirrorStep, linearise
from projfree.numerics.unit_ball import Found, Unit

_STEPS = 300  # 5-20 are usual
_IDLE = 10  # steps without progress after which only rounding is left
_FALL = 10.0  # by how much the penalty may fall in one step
_LEAST = 1e-290  # a penalty below this is none, and its logarithm soon out of range
_SHORT = 4  # short steps after which a change of the penalty counts as too large


@dataclass
class _Bracket:
    """Penalties between which the root lies, each with how far the point it was learnt from could be off."""

    low: float = 0.0
    high: float = 1.0
    doubt_low: float = 0.0
    doubt_high: float = 0.0

    def learn(self, at: float, norm: float, doubt: float) -> None:
        if norm > 1.0:
            self.low, self.doubt_low = at, doubt
            if self.high <= at:
                self.high, self.doubt_high = 1.0, 0.0
        else:
            self.high, self.doubt_high = at, doubt
            if self.low >= at:
                self.low, self.doubt_low = 0.0, 0.0

    def place(self, new: float, doubt: float) -> float:
        """``new`` if it is inside; an end that was learnt from a doubtful point gives way to it."""
        if doubt <= 1e-3 and new >= self.high and self.doubt_high > 1e-4:
            self.high = min(1.0, max(2.0 * self.high, 1.1 * new))
        if doubt <= 1e-3 and new <= self.low and self.doubt_low > 1e-4:
            self.low = 0.9 * new
        return new if self.low < new < self.high else math.sqrt(max(self.low, 0.01 * self.high) * self.high)


class MirrorNewton:
    """The iteration on a scaled problem: see `Unit`.

    ``inverse`` applies the pseudo-inverse of a singular matrix, whose minimisers fill a plane: where the path comes
    near to it inside the ball, that plane is one jump away. A gap of ``share``, where that at zero is one, is enough.
    """

    def __init__(self, unit: Unit, inverse: Callable[[Array], Array] | None = None, share: float = 0.0) -> None:
        self.unit, self.p, self.inverse, self.share = unit, unit.p, inverse, share
        diagonal = np.diag(unit.H)
        h = np.maximum(diagonal, max(1e-20 * float(diagonal.max()), 1e-30))
        self.h = np.repeat(h[:, None], unit.b.shape[1], axis=1)

    def solve(self, start: Array | None = None) -> Found:
        """The best point found, from ``start`` if that tells of a penalty."""
        unit, bracket, fall = self.unit, _Bracket(), _FALL
        place, penalty = self._first(start)
        best, idle, short, fresh = unit.check(np.zeros_like(unit.b)), 0, 0, True
        origin: MirrorStep | None = None  # from which the penalty was last changed
        for step in range(1, _STEPS + 1):
            if not penalty > _LEAST or not np.isfinite(place.x).all():
                break  # out of the range of doubles: the best point so far is the answer
            image = unit.H @ place.x
            found = unit.check(place.x, image, step)
            idle = 0 if found.gap < 0.5 * best.gap else idle + 1
            best = found if found.gap < best.gap else best
            idling = idle >= (_IDLE if best.gap <= 1e3 * best.floor else 8 * _IDLE)
            if expired() or best.gap <= max(best.floor, self.share) or idling:
                break
            now = linearise(unit, place, penalty, image, self.h)
            norm, shift = now.norm, now.change(now.inner)
            ahead = norm + shift
            off, weight = abs(ahead - 1.0), penalty * power(norm, self.p)
            close = now.decrement <= 0.1 * off * off * weight and abs(shift) <= 0.3 * off
            if ahead > 0.0 and (close or now.decrement <= best.floor):
                doubt = abs(shift) / max(off, 1e-300)
                if doubt <= 0.3:
                    bracket.learn(penalty, ahead, doubt)
                wanted = penalty + ahead * (ahead - 1.0) / max(-now.change(now.outer), 1e-300)
                if self.inverse is not None and wanted < penalty / fall:
                    landed = unit.check(place.x + self.inverse(unit.b - image), None, step)
                    best = landed if landed.gap < best.gap else best
                fall = min(fall * fall, 1e4) if fresh and wanted < penalty / fall else min(fall, _FALL)
                wanted = bracket.place(min(max(wanted, penalty / fall), max(fall, 3.0) * penalty), doubt)
                origin, penalty = now, max(wanted, _LEAST)
                place, fresh, short = now.leap(penalty), True, 0
            elif (
                origin is not None
                and (short >= _SHORT or now.decrement > 1e3 * max(weight, penalty))
                and (abs(math.log(penalty / origin.penalty)) > 0.02)
            ):
                fall = max(1.5, math.sqrt(max(penalty / origin.penalty, origin.penalty / penalty)))
                penalty = max(math.sqrt(penalty * origin.penalty), _LEAST)
                place, short = origin.leap(penalty), 0
            else:
                place, t = now.search(self.h)
                fresh, short = False, short + (t < 0.5)
        return best.after(step)

    def _first(self, start: Array | None) -> tuple[Place, float]:
        r"""A point of the curve and a penalty: those of ``start``, else of the vertex that :math:`H = 0` would give."""
        unit = self.unit
        if start is not None and start.any():
            pull = unit.b - unit.H @ start
            gain, weight = float(np.vdot(pull, start)), power(lp_norm(start, self.p), self.p)
            penalty = min(1.0, gain / weight) if weight > 0.0 else float(gain > 0.0)
            if penalty > 1e-14:
                return on_curve(self.h * start + pull, self.h, penalty, self.p), penalty
        return on_curve(unit.b, self.h, 1.0, self.p), 1.0
