"""`MinorantStack`: several minorants whose arithmetic is done at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np

from projfree.algebra.minorant import Minorant, Support, lowered, size
from projfree.checks import Array
from projfree.numerics.sums import UNIT


class Supports(Support, Protocol):
    """The part of a constraint set that the bounds of several minorants need."""

    def supports(self, g: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True, slots=True)
class MinorantStack:
    """The fields of k `Minorant` with gradients that are arrays, stacked along a first axis.

    It averages as `Minorant` does, the errors included, with a few operations of NumPy in place of dozens of calls.
    """

    constant: Array
    gradient: Array
    constant_error: Array
    gradient_error: Array
    curvature_error: Array

    @classmethod
    def of(cls, minorants: list[Minorant]) -> Self:
        """The stack of the given minorants."""
        return cls(*(np.array([getattr(m, f.name) for m in minorants]) for f in fields(cls)))

    @classmethod
    def constants(cls, c: float, shape: tuple[int, ...]) -> Self:
        """As many constant functions as ``shape`` begins with; the rest of it is the shape of a gradient."""
        zero = np.zeros(shape[0])
        return cls(np.full(shape[0], c), np.zeros(shape), zero, zero, zero)

    def __len__(self) -> int:
        return len(self.constant)

    def __getitem__(self, k: int) -> Minorant:
        """The minorant number ``k``."""
        constant, constant_error = float(self.constant[k]), float(self.constant_error[k])
        errors = constant_error, float(self.gradient_error[k]), float(self.curvature_error[k])
        return Minorant(constant, self.gradient[k], *errors)

    def averaged(self, old: Array, new: Array, m: Minorant) -> MinorantStack:
        """The averages ``old[k] * self[k] + new[k] * m``.

        Weights are positive, but those of the old minorants may all be zero.
        """
        if not np.logical_or.reduce(old):  # an infinite constant times zero would be NaN
            self = MinorantStack.constants(0.0, self.gradient.shape)
        columns = (-1,) + (1,) * m.gradient.ndim
        with np.errstate(over="ignore", under="ignore"):  # as with Python's own numbers
            first, second = old * self.constant, new * m.constant
            kept, added = old.reshape(columns) * self.gradient, new.reshape(columns) * m.gradient
            constant, gradient = first + second, kept + added
            # Of both products, then of their sum.
            rounded = np.abs(first) + np.abs(second) + np.abs(constant)
            sizes = _sizes(kept) + _sizes(added) + _sizes(gradient)
            return MinorantStack(
                constant,
                gradient,
                old * self.constant_error + new * m.constant_error + UNIT * rounded,
                old * self.gradient_error + new * m.gradient_error + UNIT * sizes,
                old * self.curvature_error + new * m.curvature_error,
            )

    def minima(self, ball: Supports) -> tuple[list[float], list[float]]:
        """What `Minorant.minimum` says of each: proven bounds on the minima, and the allowances contained in them."""
        support, error = ball.supports(-self.gradient)
        with np.errstate(over="ignore", under="ignore"):
            bounds, allowances = lowered(self, support, error, ball.reach(self.gradient.shape[1:]))
        return bounds.tolist(), allowances.tolist()


def _sizes(g: Any) -> Array:
    """The Euclidean norm of each gradient."""
    flat = g.reshape(len(g), -1)
    sizes: Array = np.sqrt(np.add.reduce(flat * flat, axis=1))
    if np.minimum.reduce(sizes) > 1e-140 and np.maximum.reduce(sizes) < np.inf:
        return sizes
    return np.array([size(row) for row in flat])
