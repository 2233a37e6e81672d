"""`Minorant`: an affine lower bound of f with bounds on its rounding errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from projfree.algebra.structured import Structured, is_structured, zeros
from projfree.checks import Array
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.sums import UNIT


class Support(Protocol):
    """Methods of a constraint set that a lower bound needs."""

    def support(self, g: Array) -> float: ...

    def support_error(self, g: Array, support: float) -> float: ...

    def reach(self, shape: tuple[int, ...]) -> float: ...


@dataclass(frozen=True, slots=True)
class Minorant:
    r"""The affine function :math:`m(w) = c + \langle g, w\rangle`; closed under ``+`` and non-negative ``*``.

    For convex f every tangent, and every convex combination of tangents, is a lower bound of f. In floating point the
    exact minorant differs from the stored numbers by at most ``constant_error`` in the constant and by a vector of
    Euclidean norm at most ``gradient_error`` in the gradient; if f is convex only up to rounding, it exceeds f by at
    most ``curvature_error`` times the squared norm of w. Sums and products add their rounding errors to these bounds.

    An estimate of a gradient from sampled rows has the constant :math:`-\infty` and gives no lower bound.
    """

    constant: float
    gradient: Array
    constant_error: float = 0.0
    gradient_error: float = 0.0
    curvature_error: float = 0.0

    __array_ufunc__ = None

    @classmethod
    def zero(cls, shape: tuple[int, ...]) -> Minorant:
        """Return the zero function, the neutral element of ``+``."""
        return cls(0.0, zeros(shape))

    def __call__(self, w: Array) -> float:
        return self.constant + inner(self.gradient, w)

    def __mul__(self, a: float) -> Minorant:
        a = float(a)
        if not a >= 0.0:
            raise ValueError(f"a minorant times {a:g} lies above f; weights of averages must lie between 0 and 1.")
        if a == 0.0:  # the constant of an estimate is infinite: times zero it would be NaN
            return Minorant.zero(self.gradient.shape)
        constant, gradient = a * self.constant, a * self.gradient
        return Minorant(
            constant,
            gradient,
            a * self.constant_error + UNIT * abs(constant),
            a * self.gradient_error + UNIT * size(gradient),
            a * self.curvature_error,
        )

    __rmul__ = __mul__

    def __add__(self, other: Minorant) -> Minorant:
        constant, gradient = self.constant + other.constant, self.gradient + other.gradient
        return Minorant(
            constant,
            gradient,
            self.constant_error + other.constant_error + UNIT * abs(constant),
            self.gradient_error + other.gradient_error + UNIT * size(gradient),
            self.curvature_error + other.curvature_error,
        )

    def shifted(self, direction: Array, scale: float) -> Minorant:
        """Return the function plus ``scale * <direction, w>``; the error bounds include the rounding of the sum."""
        gradient = self.gradient + scale * direction
        moved = size(gradient) + 2.0 * abs(scale) * size(direction)
        error = self.gradient_error + UNIT * moved
        return Minorant(self.constant, gradient, self.constant_error, error, self.curvature_error)

    def lower(self, ball: Support, support: float | None = None) -> float:
        r"""Return a certified lower bound on :math:`\min_{w \in C} m(w)`.

        It is :math:`c - \mathrm{support}_C(-g)` minus an allowance for rounding errors. ``support`` is the value of
        ``support(-g)``, if it is known already.
        """
        return self.minimum(ball, support)[0]

    def minimum(self, ball: Support, support: float | None = None) -> tuple[float, float]:
        """Return `lower` and its allowance for rounding errors."""
        if not np.isfinite(self.constant):
            return -np.inf, 0.0
        if support is None:
            support = ball.support(-self.gradient)
        reach, error = ball.reach(self.gradient.shape), ball.support_error(self.gradient, support)
        allowance = self.constant_error + (self.gradient_error + self.curvature_error * reach) * reach + error
        # Four more roundings: two subtractions and the sums of the allowance.
        allowance = allowance * (1.0 + 8 * UNIT) + 4 * UNIT * (abs(self.constant) + abs(support))
        return float(self.constant - support - allowance), float(allowance)


def size(g: Any) -> float:
    """Return the Euclidean norm, without overflow or underflow of the squares."""
    return g.size() if isinstance(g, Structured) else lp_norm(np.asarray(g, dtype=np.float64), 2.0)


def square(g: Array) -> float:
    """Return the sum of squares of all entries."""
    return g.size() ** 2 if is_structured(g) else float(np.sum(g**2))


def inner(a: Array, b: Array) -> float:
    """Return the inner product of two vectors or matrices."""
    if is_structured(a):
        return a.inner(b)
    return b.inner(a) if is_structured(b) else float(np.vdot(a, b))
