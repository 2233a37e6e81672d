"""`Symmetric`: a positive semidefinite matrix through what minimisation over few features asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from projfree.checks import Array
from projfree.numerics.flat_step import regular_solve

#: Curvature below this is none.
TINY = 1e-200
#: Of the diagonal, for each entry: what is added to singular matrices is above the rounding of their factors.
ROUNDING = 32.0 * float(np.finfo(np.float64).eps)


class Symmetric(ABC):
    """A symmetric matrix without negative eigenvalues.

    Vectors are the rows of arrays of shape ``(k, m)``.

    Attributes
    ----------
    diagonal : ndarray of shape (m,)
        Its diagonal.
    formed : ndarray of shape (m, m), or None
        The matrix itself, where it is at hand.
    """

    diagonal: Array
    formed: Array | None

    @abstractmethod
    def times(self, w: Array) -> Array:
        """The products with each row of ``w``."""

    @abstractmethod
    def descend(self, slope: Array, w: Array, level: float, costs: Array, signed: bool, rounds: int) -> None:
        """Rounds of coordinate descent with the penalty ``level * costs * |w|``, in place.

        ``slope`` is that of the quadratic at ``w``. The first round visits all entries, later ones those that are not
        zero.
        """

    @abstractmethod
    def solve(self, on: Array, sides: Array) -> Array:
        """Solve with the part of the entries ``on``, for each column of ``sides``, as far as is useful."""


class Formed(Symmetric):
    """A matrix that is at hand."""

    formed: Array

    def __init__(self, H: Array) -> None:
        self.formed = np.ascontiguousarray(H)
        self.diagonal = self.formed.diagonal()

    def times(self, w: Array) -> Array:
        on = np.flatnonzero(w.any(axis=0))
        return np.asarray(w[:, on] @ self.formed[on])

    def descend(self, slope: Array, w: Array, level: float, costs: Array, signed: bool, rounds: int) -> None:
        from projfree.numerics.descent_kernels import descend_entries

        descend_entries(self.formed, slope, w, level, costs, signed, rounds)

    def solve(self, on: Array, sides: Array) -> Array:
        return solve_semidefinite(self.formed[np.ix_(on, on)], sides, float(np.max(self.diagonal, initial=0.0)))


def solve_semidefinite(A: Array, sides: Array, largest: float) -> Array:
    """Solve with a positive semidefinite matrix; where it is singular, with a little more on its diagonal.

    ``largest`` is the largest curvature that matters; where there is none, there is no step.
    """
    if largest < TINY:
        return np.zeros_like(sides)
    solved, extra = regular_solve(A, sides), max(1e-13, ROUNDING * len(A))  # less than that would not make it regular
    while solved is None and extra < 1.0:
        ridge = extra * np.maximum(A.diagonal(), largest)
        solved, extra = regular_solve(A + np.diag(ridge), sides), 100.0 * extra
    return np.zeros_like(sides) if solved is None else solved
