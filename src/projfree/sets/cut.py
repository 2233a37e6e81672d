"""What balls and polytopes that are cut by linear constraints share: bounds from multipliers, and feasible points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from projfree.algebra import size
from projfree.checks import Array, shown
from projfree.numerics.linear_systems import cholesky_inverse
from projfree.numerics.sums import UNIT
from projfree.sets.base import FEASIBILITY, ConstraintSet, Shape
from projfree.sets.rows import Rows, joined
from projfree.sets.shifted import Shifted
from projfree.sets.unpenalized import WithUnpenalized

#: So many rows of a conflict are named.
NAMED = 5
#: A proof that no point is inside of all rows makes equalities of those with more than this part of the largest
#: multiplier.
SHARE = 0.02


class InfeasibleError(ValueError):
    """No point of the ball satisfies all rows.

    Attributes
    ----------
    multipliers : ndarray
        One number for each row. The rows, multiplied by these and added up, ask for a product with w that is larger
        than any that the ball has (Farkas): anyone can check it without data.
    names : tuple of str
        What the rows of the conflict say.

    Examples
    --------
    >>> from projfree import Constrained, InfeasibleError, LpBall
    >>> from projfree.sets import bounds
    >>> try:
    ...     Constrained(LpBall(2, radius=1.0), bounds([0, 1], 0.9)).centre((2,))
    ... except InfeasibleError as error:
    ...     error.names
    ('w[0] >= 0.9', 'w[1] >= 0.9')
    """

    def __init__(self, message: str, multipliers: Array, names: tuple[str, ...]) -> None:
        super().__init__(message, multipliers, names)
        self.multipliers, self.names = multipliers, names

    def __str__(self) -> str:
        return str(self.args[0])


class Cut(ABC):
    r"""The set :math:`\{w \in C : l \le M w \le u\}` for points of one shape, rows scaled to Euclidean length one.

    Points are vectors, and multipliers are those of the scaled rows unless it says otherwise. Rows of zeros and bounds
    that nothing in the ball comes near to become rows without bounds.

    Attributes
    ----------
    rows : JoinedRows
        The rows as they were given.
    M, lower, upper, equal : sparse array, ndarrays
        The scaled ones, and which of them are equalities.
    radius : float
        A length that the ball has about its own centre.
    free : ndarray of bool
        Entries that are not in the ball.
    interior : ndarray
        A point inside of the ball and of all inequalities.
    """

    def __init__(self, ball: ConstraintSet, rows: tuple[Rows, ...], shape: Shape) -> None:
        for each in rows:
            each.check_shape(shape)
        self.ball, self.shape, self.rows = ball, shape, joined(rows, math.prod(shape))
        self.inner: Any = ball.ball if isinstance(ball, Shifted | WithUnpenalized) else ball
        free = list(ball.free) if isinstance(ball, WithUnpenalized) else []
        self.inner_shape = (shape[0] - len(free), *shape[1:]) if free else shape
        self.free = np.isin(np.arange(math.prod(shape)) // math.prod(shape[1:]), free)
        self.offset = np.ravel((ball.offset if isinstance(ball, Shifted) else 0.0) + np.zeros(shape))
        self.radius, self.reach = self.inner.reach(self.inner_shape), ball.reach(shape)
        self.M, self.length = _unit_rows(self.rows.A)
        far = self.reach * (1.0 + FEASIBILITY)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            lower, upper = self.rows.lower / self.length, self.rows.upper / self.length
        above, below = (self.rows.lower > 0.0) & ~(lower <= far), (self.rows.upper < 0.0) & ~(upper >= -far)
        self.length = np.where(self.length > 0.0, self.length, 1.0)
        if (above | below).any():
            first = np.arange(len(above)) == np.argmax(above | below)
            raise self._infeasible(np.where(first, np.where(above, -1.0, 1.0), 0.0))
        self.lower, self.upper = np.where(lower >= -far, lower, -np.inf), np.where(upper <= far, upper, np.inf)
        self.equal = (self.rows.lower == self.rows.upper) & (self.lower > -np.inf)
        self.upper = np.where(self.equal, self.lower, self.upper)
        #: Combinations of rows that hold with equality at every point of the set.
        self.implied: list[Array] = []
        self.noise = self.rounding(np.where(self.free, self.reach, self.radius + np.abs(self.offset)))
        self.interior = np.ravel(ball.centre(shape))
        self._find_interior()

    @abstractmethod
    def _find_interior(self) -> None:
        """Find a point inside of the ball and of all inequalities, on the equalities, or raise `InfeasibleError`.

        Rows that hold with equality wherever all others hold become equalities.
        """

    @property
    def centre(self) -> Array:
        """Where runs begin."""
        return self.interior.copy()

    @abstractmethod
    def gauge(self, w: Array) -> float:
        """A convex function, at most one inside of the ball."""

    @abstractmethod
    def linear(self, g: Array, y: Array) -> tuple[Array, Array]:
        """A minimiser of the linear function g over the set, and multipliers of the rows; y are those to begin at."""

    # ------------------------------------------------------------ bounds from multipliers

    def scaled(self, y: Array | None) -> Array:
        """Multipliers of the scaled rows from those of the rows as they were given."""
        return np.zeros(len(self.length)) if y is None else y * self.length

    def given(self, y: Array) -> Array:
        """Multipliers of the rows as they were given, with the signs that their bounds allow."""
        lower, upper = self.rows.lower, self.rows.upper
        for proof in reversed(self.implied):
            wrong = ((y < 0.0) & (lower == -np.inf) & (proof > 0.0)) | ((y > 0.0) & (upper == np.inf) & (proof < 0.0))
            if wrong.any():
                y = y + float(np.max(-y[wrong] / proof[wrong])) * proof
        return np.where((y > 0.0) & (upper == np.inf) | (y < 0.0) & (lower == -np.inf), 0.0, y) / self.length

    def support(self, g: Array, y: Array) -> float:
        """An upper bound on the largest product with g, from given multipliers of the given rows, rounded up."""
        some, rows = np.flatnonzero(y), self.rows
        terms = y[some] * np.where(y[some] > 0.0, rows.upper[some], rows.lower[some])
        if not np.isfinite(terms).all():
            return math.inf
        h = g - rows.A.T @ y
        moved = UNIT * ((len(some) + 6) * size(abs(rows.A).T @ np.abs(y)) + size(h))
        inner, cost = float(self.ball.support(h.reshape(self.shape))), math.fsum(terms)
        error = 4.0 * UNIT * float(np.abs(terms).sum()) + moved * self.reach
        error += self.ball.support_error(h.reshape(self.shape), inner) + 4.0 * UNIT * (abs(cost) + abs(inner))
        return cost + inner + error * (1.0 + 8 * UNIT)

    def least(self, g: Array, y: Array) -> float:
        """A lower bound on the linear function g over the set, from any multipliers, but for rounding."""
        cost = float(y @ np.where(y > 0.0, self.upper, np.where(y < 0.0, self.lower, 0.0)))
        return -cost - float(self.ball.support(-(g + self.M.T @ y).reshape(self.shape)))

    def infeasible(self, y: Array) -> InfeasibleError | None:
        """The error that scaled multipliers prove, None where they prove nothing or no more than rounding."""
        given, zero = self.given(y), np.zeros_like(self.offset)
        given = given / max(float(np.abs(given).max()), np.finfo(np.float64).tiny)
        proved = self.least(zero, y) > 1e-13 * self.radius and self.support(zero, given) < 0.0
        return self._infeasible(given) if proved else None

    def _infeasible(self, y: Array) -> InfeasibleError:
        order = np.argsort(-np.abs(y), kind="stable")
        names = tuple(self.rows.names[i] for i in order if abs(y[i]) > 1e-6 * abs(y[order[0]]))
        listed = "; ".join(names[:NAMED]) + (f"; and {len(names) - NAMED} more" if len(names) > NAMED else "")
        return InfeasibleError(
            f"no point of {shown(self.ball)} satisfies the constraints {listed}; relax or drop one of them, or take a "
            "larger radius.",
            y,
            names,
        )

    def tie(self, y: Array) -> bool:
        """Make equalities of the rows that a proof with multipliers y uses; whether there were any new ones."""
        new = (np.abs(y) > SHARE * np.abs(y).max(initial=0.0)) & ~self.equal
        at = np.where(y > 0.0, self.upper, self.lower)
        self.implied.append(y)
        self.lower, self.upper = np.where(new, at, self.lower), np.where(new, at, self.upper)
        self.equal = self.equal | new
        return bool(new.any())

    # ------------------------------------------------------------ feasible points

    def residual(self, t: Array) -> Array:
        """By how much the values t of the rows exceed their bounds, negative below."""
        return np.asarray(t - np.clip(t, self.lower, self.upper))

    def rounding(self, sizes: Array) -> Array:
        """What rounding may change of the rows, several times, at a point with entries of these sizes."""
        several = np.diff(self.M.indptr) > 1  # a product of one term has the right sign
        largest = np.maximum(*(np.where(np.isfinite(b), np.abs(b), 0.0) for b in (self.lower, self.upper)))
        shared = abs(self.M) @ np.abs(self.offset) + np.where(several, abs(self.M) @ sizes, 0.0)
        return np.asarray(16.0 * UNIT * (shared + largest))

    def room(self, noise: Array) -> Array:
        """How far inside of its bound an active row is to be, so that rounding does not carry it out."""
        return np.where(self.equal, 0.0, np.minimum(2.0 * noise, 0.1 * (self.upper - self.lower)))

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

    def pulled(self, v: Array, noise: Array) -> Array:
        """The point as far towards the interior one as the ball and all inequalities ask for, the noise included."""
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


def _unit_rows(A: Any) -> tuple[Any, Array]:
    """The rows over their Euclidean lengths, and these, also where squares would leave the range of floating point."""
    M, each = A.copy(), np.diff(A.indptr)
    largest = abs(A).max(axis=1).toarray().ravel()
    M.data = M.data / np.repeat(np.where(largest > 0.0, largest, 1.0), each)
    own = np.sqrt(M.multiply(M).sum(axis=1))
    M.data = M.data / np.repeat(np.where(own > 0.0, own, 1.0), each)
    return M, largest * own


def spd_inverse(gram: Array) -> Callable[[Array], Array]:
    """The product of the inverse, or of the pseudo-inverse, of a Gram matrix with a vector."""
    inverse = cholesky_inverse(gram) if len(gram) else None
    if inverse is None:
        pseudo = np.linalg.pinv(gram, rcond=1e-12, hermitian=True) if len(gram) else gram
        return lambda side: pseudo @ side
    return lambda side: inverse(side[:, None])[:, 0]
