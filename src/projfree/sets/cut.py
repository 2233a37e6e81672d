"""Base class of balls and polytopes with linear constraints: bounds from multipliers, and feasible points."""

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

#: Maximum number of conflicting rows listed in an error message.
NAMED = 5
#: If the inequalities have no strict interior, those with a multiplier above this fraction of the largest one in the
#: proof become equalities.
SHARE = 0.02


class InfeasibleError(ValueError):
    """Error raised if no point of the ball satisfies all rows.

    Attributes
    ----------
    multipliers : ndarray
        One multiplier per row. The sum of the rows with these multipliers is a constraint on w that no point of the
        ball satisfies (Farkas), which can be verified without data.
    names : tuple of str
        Descriptions of the conflicting rows.

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
    r"""The set :math:`\{w \in C : l \le M w \le u\}` for points of one shape, with rows normalised to Euclidean norm 1.

    Points are vectors, and multipliers are those of the normalised rows unless stated otherwise. Bounds of zero rows
    and bounds that hold strictly on the ball become infinite.

    Attributes
    ----------
    rows : JoinedRows
        The original rows.
    M, lower, upper, equal : sparse array, ndarrays
        The normalised rows and their bounds, and the mask of equalities.
    radius : float
        The largest Euclidean norm in the ball, relative to its centre.
    free : ndarray of bool
        Mask of the entries that are not in the ball.
    interior : ndarray
        A point in the interior of the ball and of all inequalities.
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
        """Compute an interior point of the ball and the inequalities, on the equalities, or raise `InfeasibleError`.

        Inequalities that hold with equality at every feasible point become equalities.
        """

    @property
    def centre(self) -> Array:
        """The default start of a run."""
        return self.interior.copy()

    @abstractmethod
    def gauge(self, w: Array) -> float:
        """Return a convex function of ``w`` that is at most one on the ball, such as its gauge."""

    @abstractmethod
    def linear(self, g: Array, y: Array) -> tuple[Array, Array]:
        """Return a minimiser of <g, w> over the set and multipliers of the rows, given initial multipliers y."""

    # ------------------------------------------------------------ bounds from multipliers

    def scaled(self, y: Array | None) -> Array:
        """Return the multipliers of the normalised rows, given those of the original rows."""
        return np.zeros(len(self.length)) if y is None else y * self.length

    def given(self, y: Array) -> Array:
        """Return the multipliers of the original rows, with signs corrected to those that the bounds allow."""
        lower, upper = self.rows.lower, self.rows.upper
        for proof in reversed(self.implied):
            wrong = ((y < 0.0) & (lower == -np.inf) & (proof > 0.0)) | ((y > 0.0) & (upper == np.inf) & (proof < 0.0))
            if wrong.any():
                y = y + float(np.max(-y[wrong] / proof[wrong])) * proof
        return np.where((y > 0.0) & (upper == np.inf) | (y < 0.0) & (lower == -np.inf), 0.0, y) / self.length

    def support(self, g: Array, y: Array) -> float:
        """Return an upper bound on the support of g, rounded up, from multipliers y of the original rows."""
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
        """Return a lower bound on <g, w> over the set from any multipliers, up to rounding."""
        cost = float(y @ np.where(y > 0.0, self.upper, np.where(y < 0.0, self.lower, 0.0)))
        return -cost - float(self.ball.support(-(g + self.M.T @ y).reshape(self.shape)))

    def infeasible(self, y: Array) -> InfeasibleError | None:
        """Return an `InfeasibleError` if the multipliers prove that the set is empty, beyond rounding, else None."""
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

    def tied(self, y: Array) -> Array:
        """Return the signs of the large multipliers y, and 0 for the rest."""
        return np.asarray(np.sign(y) * (np.abs(y) > SHARE * np.abs(y).max(initial=0.0)))

    def tie(self, y: Array) -> bool:
        """Convert the rows with large multipliers y to equalities; return whether any row was converted."""
        new = (self.tied(y) != 0.0) & ~self.equal
        at = np.where(y > 0.0, self.upper, self.lower)
        self.implied.append(y)
        self.lower, self.upper = np.where(new, at, self.lower), np.where(new, at, self.upper)
        self.equal = self.equal | new
        return bool(new.any())

    # ------------------------------------------------------------ feasible points

    def residual(self, t: Array) -> Array:
        """Return the violation of the bounds by the row values t, negative below the lower bound."""
        return np.asarray(t - np.clip(t, self.lower, self.upper))

    def rounding(self, sizes: Array) -> Array:
        """Return a generous bound on the rounding error of the rows at a point whose entries have these sizes."""
        several = np.diff(self.M.indptr) > 1  # a single term has an exact sign
        largest = np.maximum(*(np.where(np.isfinite(b), np.abs(b), 0.0) for b in (self.lower, self.upper)))
        shared = abs(self.M) @ np.abs(self.offset) + np.where(several, abs(self.M) @ sizes, 0.0)
        return np.asarray(16.0 * UNIT * (shared + largest))

    def room(self, noise: Array) -> Array:
        """Return the distance of active rows from their bounds that keeps them feasible despite rounding."""
        return np.where(self.equal, 0.0, np.minimum(2.0 * noise, 0.1 * (self.upper - self.lower)))

    def onto(self, w: Array, rows: Array, values: Array) -> Array:
        """Project w onto the points at which the selected rows have the given values, in the least-squares sense."""
        rows = np.flatnonzero(rows)
        if not len(rows):
            return w
        M, to = self.M[rows], values[rows]
        inverse = spd_inverse((M @ M.T).toarray())
        for _ in range(2):
            w = w + M.T @ inverse(to - M @ w)
        return np.asarray(w)

    def pulled(self, v: Array, noise: Array) -> Array:
        """Move v towards the interior point until the ball and all inequalities hold with the margin ``noise``."""
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
        fixed = np.flatnonzero(self.equal & (np.diff(self.M.indptr) == 1))  # one nonzero entry: can hold exactly
        at = self.M.indptr[fixed]
        v[self.M.indices[at]] = self.lower[fixed] * self.M.data[at]
        return v


def _unit_rows(A: Any) -> tuple[Any, Array]:
    """Return the rows normalised to Euclidean norm 1, and the norms, without overflow or underflow."""
    M, each = A.copy(), np.diff(A.indptr)
    largest = abs(A).max(axis=1).toarray().ravel()
    M.data = M.data / np.repeat(np.where(largest > 0.0, largest, 1.0), each)
    own = np.sqrt(M.multiply(M).sum(axis=1))
    M.data = M.data / np.repeat(np.where(own > 0.0, own, 1.0), each)
    return M, largest * own


def spd_inverse(gram: Array) -> Callable[[Array], Array]:
    """Return a function that multiplies a vector by the inverse, or pseudo-inverse, of a Gram matrix."""
    inverse = cholesky_inverse(gram) if len(gram) else None
    if inverse is None:
        pseudo = np.linalg.pinv(gram, rcond=1e-12, hermitian=True) if len(gram) else gram
        return lambda side: pseudo @ side
    return lambda side: inverse(side[:, None])[:, 0]
