"""What balls and polytopes that are cut by linear constraints share: bounds from multipliers, and feasible points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.numerics.linear_systems import cholesky_inverse
from projfree.numerics.sums import UNIT

#: A proof that no point is inside of all rows makes equalities of those with more than this part of the largest
#: multiplier.
SHARE = 0.02


class NoPointError(Exception):
    """No point of the set satisfies the rows; ``multipliers`` prove it."""

    def __init__(self, multipliers: Array) -> None:
        super().__init__()
        self.multipliers = multipliers


@dataclass(eq=False)
class CutSet(ABC):
    r"""A set of vectors and rows of Euclidean length one, :math:`\{w \in C : l \le M w \le u\}`.

    Attributes
    ----------
    M : sparse array of shape (m, D)
        The rows.
    lower, upper : ndarray of shape (m,)
        Their bounds; equal in an equality.
    radius : float
        A length that the set has.
    gauge : callable
        Of a point, at most one inside of C; convex.
    support : callable
        The support function of C.
    shift : ndarray
        Absolute values of what is added to points afterwards, with its rounding.
    """

    M: Any
    lower: Array
    upper: Array
    radius: float
    gauge: Callable[[Array], float]
    support: Callable[[Array], float]
    shift: Array
    #: Combinations of rows that hold with equality at every point of the set.
    implied: list[Array] = field(default_factory=list, init=False)
    #: A point inside of C and of all other rows, once `find_interior` has found it.
    interior: Array = field(default_factory=lambda: np.zeros(0), init=False)

    def __post_init__(self) -> None:
        self.equal = self.lower == self.upper
        self.noise = self.rounding(np.full(self.M.shape[1], self.radius))

    def rounding(self, sizes: Array) -> Array:
        """What rounding may change of the rows, several times, at a point with entries of these sizes."""
        several = np.diff(self.M.indptr) > 1  # a product of one term has the right sign
        largest = np.maximum(*(np.where(np.isfinite(b), np.abs(b), 0.0) for b in (self.lower, self.upper)))
        shared = np.where(several, abs(self.M) @ sizes, 0.0) + abs(self.M) @ self.shift
        return np.asarray(16.0 * UNIT * (shared + largest))

    @abstractmethod
    def find_interior(self, near: Array) -> None:
        """Find a point inside of C and of all inequalities, on the equalities, or raise `NoPointError`.

        Rows that hold with equality wherever all others hold become equalities.
        """

    @abstractmethod
    def linear(self, g: Array, y: Array) -> tuple[Array, Array]:
        """A minimiser of the linear function g over the set, and multipliers of the rows; y are those to begin at."""

    def cost(self, y: Array) -> float:
        """The largest sum of products of the multipliers with numbers between the bounds."""
        side = np.where(y > 0.0, self.upper, self.lower)
        return float(y @ np.where(y != 0.0, side, 0.0))

    def least(self, g: Array, y: Array) -> float:
        """A lower bound on the linear function g over the set, from any multipliers."""
        return -self.cost(y) - self.support(-(g + self.M.T @ y))

    def residual(self, t: Array) -> Array:
        """By how much the values t of the rows exceed their bounds, negative below."""
        return np.asarray(t - np.clip(t, self.lower, self.upper))

    def tie(self, y: Array) -> bool:
        """Make equalities of the rows that a proof with multipliers y uses; whether there were any new ones."""
        new = (np.abs(y) > SHARE * np.abs(y).max(initial=0.0)) & ~self.equal
        at = np.where(y > 0.0, self.upper, self.lower)
        self.implied.append(y)
        self.lower, self.upper = np.where(new, at, self.lower), np.where(new, at, self.upper)
        self.equal = self.lower == self.upper
        return bool(new.any())

    def pulled(self, v: Array, noise: Array) -> Array:
        """The point as far towards the interior one as the set and all inequalities ask for, the noise included."""
        q, a = self.interior, 0.0
        t, s = self.M @ v, self.M @ q
        for excess, inside in (
            (t - self.upper + noise, self.upper - s - noise),
            (self.lower - t + noise, s - self.lower - noise),
        ):
            some = ~self.equal & (excess > 0.0)
            if some.any():
                a = max(a, float(np.max(excess[some] / np.maximum(excess[some] + inside[some], excess[some]))))
        gauge, rest, most = self.gauge(v + a * (q - v)), self.gauge(q), 1.0 - 4 * UNIT
        while gauge > most and a < 1.0:
            a += (1.0 - a) * min(1.0, max((gauge - most) / max(gauge - rest, UNIT), UNIT))
            gauge = self.gauge(v + a * (q - v))
        v = np.asarray(v + min(a, 1.0) * (q - v))
        fixed = np.flatnonzero(self.equal & (np.diff(self.M.indptr) == 1))  # rows of one entry can hold exactly
        at = self.M.indptr[fixed]
        v[self.M.indices[at]] = self.lower[fixed] * self.M.data[at]
        return v

    def onto(self, w: Array, rows: Array, values: Array) -> Array:
        """The nearest point at which some rows have the given values, as far as they can have them together."""
        rows = np.flatnonzero(rows)
        if not len(rows):
            return w
        M, to = self.M[rows], values[rows]
        inverse = spd_inverse((M @ M.T).toarray())
        for _ in range(2):
            w = w + M.T @ inverse(to - M @ w)
        return np.asarray(w)


def spd_inverse(gram: Array) -> Callable[[Array], Array]:
    """The product of the inverse, or of the pseudo-inverse, of a Gram matrix with a vector."""
    inverse = cholesky_inverse(gram) if len(gram) else None
    if inverse is None:
        pseudo = np.linalg.pinv(gram, rcond=1e-12, hermitian=True) if len(gram) else gram
        return lambda side: pseudo @ side
    return lambda side: inverse(side[:, None])[:, 0]
