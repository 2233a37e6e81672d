r"""A quadratic over an l_p ball, scaled so that the radius and the dual norm of its slope at zero are one."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_norm import conjugate, lp_norm

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Found:
    r"""A point of the unit ball with its Frank-Wolfe gap, the rounding of that gap and the steps it took.

    The gap :math:`\langle g, x\rangle + \|g\|_q`, :math:`g = Hx - b`, bounds how far the value is from the least.
    """

    x: Array
    gap: float
    floor: float
    pull: float
    steps: int

    def after(self, steps: int) -> Found:
        return replace(self, steps=steps)


class Unit:
    r"""Minimise :math:`\tfrac12\langle x, Hx\rangle - \langle b, x\rangle` over :math:`\|x\|_p \le 1`, ``b`` a matrix.

    From a problem with radius r by :math:`x = w/r`, :math:`H \to H r/\|b\|_q`, :math:`b \to b/\|b\|_q`; then the
    multiplier is at most one.
    """

    def __init__(self, H: Array, b: Array, p: float, radius: float) -> None:
        self.p, self.q = p, conjugate(p)
        self.size = lp_norm(b, self.q)
        with np.errstate(over="ignore", invalid="ignore"):  # whoever asks checks that H is finite
            self.ratio = float(np.float64(radius) / self.size)
            self.b, self.H = b / self.size, H * self.ratio if math.isfinite(self.ratio) else H * radius / self.size
        self.sizes = np.abs(self.H)

    def of_norm(self, p: float) -> Unit:
        """The same function over the unit ball of another norm."""
        other = copy(self)
        other.p, other.q = p, conjugate(p)
        return other

    def check(self, x: Array, image: Array | None = None, steps: int = 0) -> Found:
        """``x``, pulled back to the ball if it is outside, with its gap."""
        image = self.H @ x if image is None else image
        norm = lp_norm(x, self.p)
        if norm > 1.0:
            x, image = x / norm, image / norm
        g = image - self.b
        pull = lp_norm(g, self.q)
        # Of the gradient, entry by entry, and of the two sums that make the gap.
        floor = _EPS * (lp_norm(self.sizes @ np.abs(x) + np.abs(self.b), self.q) + 4.0 * pull)
        return Found(x, float(np.vdot(g, x)) + pull, floor, pull, steps)
