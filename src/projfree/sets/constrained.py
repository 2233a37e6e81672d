"""`Constrained`: a ball cut by linear constraints, with bounds from the multipliers of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from projfree.algebra import FactoredShape, size
from projfree.algebra.hashing import short_hash
from projfree.checks import Array, instance, shown
from projfree.numerics.cut_ball import CutBall
from projfree.numerics.cut_polytope import CutPolytope
from projfree.numerics.cut_set import CutSet, NoPointError
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.lp_norm import conjugate
from projfree.numerics.sums import UNIT
from projfree.sets.base import (
    FEASIBILITY,
    OPERATIONS,
    ConstraintSet,
    NormBall,
    OracleResult,
    Shape,
    Structure,
    resized,
    slack,
)
from projfree.sets.box import Box
from projfree.sets.inputs import checked_point, finite, like, point, scaled_gradient, unit_scale
from projfree.sets.lp import LpBall
from projfree.sets.quadratic import minimise_model
from projfree.sets.rows import Rows, joined
from projfree.sets.shifted import Shifted

#: So many rows of a conflict are named.
NAMED = 5


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


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Constrained(ConstraintSet):
    r"""The points of a ball, simplex or box that satisfy linear constraints.

    .. math:: \{w \in C : l \le A w \le u\}

    For any multipliers y of the rows, positive ones of upper bounds and negative ones of lower bounds,

    .. math:: \max_{w \in C,\ l \le A w \le u} \langle g, w\rangle \le \sum_i \max(y_i l_i, y_i u_i)
              + \operatorname{support}_C(g - A^T y),

    so that a bound that a run proves is a sum and a support of C, whatever the solver did. Over an l_1 ball, a simplex
    or a box the oracle is a linear program; over other balls it is a sequence of quadratic ones. Points satisfy
    inequalities in computed arithmetic, and equalities to rounding.

    Parameters
    ----------
    ball : ConstraintSet
        An `LpBall`, a `GroupBall` with the norm of the group lasso, one of these with weights, a `Simplex`, a `Box`, or
        one of these `shifted`.
    rows : Rows or sequence of Rows
        Constraints that `order`, `bounds`, `sums_to` or `covariance` make.
    A : array or sparse array of shape (m, d)
        More constraints, with a column for each entry of a parameter in C order.
    lower, upper : float or array of shape (m,), optional
        Their bounds; equal numbers make an equality.
    multipliers : array of shape (m,), optional
        With these the support is the right-hand side above. By default it takes those that make it least.

    Raises
    ------
    InfeasibleError
        When the set is first used and has no point, with a proof.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Constrained, LpBall
    >>> from projfree.sets import bounds, sums_to
    >>> C = Constrained(LpBall(1, radius=3.0), [bounds([0], 0.0), sums_to(0.0, [0, 1, 2])])
    >>> C.lmo(np.array([1.0, 2.0, -1.0]))
    array([ 0. , -1.5,  1.5])
    """

    ball: ConstraintSet
    rows: tuple[Rows, ...]
    multipliers: Array | None

    def __init__(
        self,
        ball: ConstraintSet,
        rows: Rows | Sequence[Rows] = (),
        *,
        A: Any = None,
        lower: Any = None,
        upper: Any = None,
        multipliers: Array | None = None,
    ) -> None:
        instance("Constrained(ball=...)", ball, ConstraintSet, "LpBall(2, radius=1.0)")
        listed = tuple(rows) if isinstance(rows, Sequence) else (rows,)
        for each in listed:
            instance("Constrained(rows=...)", each, Rows, "order([0, 1, 2])")
        if A is not None:
            listed += (Rows.of(A, lower, upper),)
        elif lower is not None or upper is not None:
            raise ValueError(
                "`Constrained(lower=..., upper=...)` are the bounds of `A=`, got no `A`; give it, or `bounds`."
            )
        if not listed:
            raise ValueError(
                "`Constrained` needs `rows=` or `A=`, got neither; without constraints use the ball alone."
            )
        object.__setattr__(self, "ball", ball)
        object.__setattr__(self, "rows", listed)
        object.__setattr__(self, "multipliers", multipliers)
        self.__dict__["_cuts"] = {}  # what is found out about the set, for each shape of points

    def __repr__(self) -> str:
        return f"Constrained({self.ball!r}, {self.n_rows} rows)"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_cuts": {}}

    @property
    def n_rows(self) -> int:
        """The number of constraints."""
        return sum(map(len, self.rows))

    @property
    def names(self) -> tuple[str, ...]:
        """What each row says."""
        return tuple(name for each in self.rows for name in each.names)

    def with_multipliers(self, y: Array | None) -> Constrained:
        """The same set with these multipliers, which its support then takes; with None it looks for the best ones."""
        other = copy(self)
        object.__setattr__(other, "multipliers", None if y is None else np.array(y, dtype=np.float64))
        other.__dict__["_cuts"] = self.__dict__["_cuts"]
        return other

    def relaxed(self, g: Array) -> Array:
        """The gradient g plus that of the rows times their multipliers, which the ball alone meets."""
        y = self.multipliers
        return g if y is None else g + (self._cut(g.shape).A.T @ y).reshape(g.shape)

    def fingerprint(self) -> str:
        text = f"Constrained({self.ball!r}, {[(repr(r), r.columns) for r in self.rows]!r})"
        return text if self.multipliers is None else short_hash(text, self.multipliers)

    def structure(self, shape: Shape) -> Structure:
        polytope = isinstance(self._cut(shape).engine, CutPolytope)
        return Structure(polytope=polytope, projection="none" if polytope else "slow")

    def check_shape(self, shape: Shape) -> None:
        if isinstance(shape, FactoredShape):
            raise ValueError("`Constrained` takes vectors and matrices, not matrices in factors.")
        self._cut(shape)

    def _cut(self, shape: Shape) -> Cut:
        cuts: dict[Shape, Cut] = self.__dict__["_cuts"]
        if shape not in cuts:
            cuts[shape] = Cut(self.ball, self.rows, shape)
        return cuts[shape]

    # ------------------------------------------------------------ oracles

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        """The minimiser of g, the support of -g, and the multipliers that prove it."""
        c = finite("lmo(g)", g)
        scale, cut = unit_scale(c), self._cut(c.shape)
        v, y = cut.linear(c / scale, None if warm is None else warm / scale)
        return OracleResult(like(g, v), scale * cut.support(-c / scale, y), scale * y)

    @scaled_gradient
    def lmo(self, g: Array) -> Array:
        return self._cut(g.shape).linear(g)[0]

    def support(self, g: Array) -> float:
        x = point(g)
        scale, cut, y = unit_scale(x), self._cut(x.shape), self.multipliers
        return scale * cut.support(x / scale, cut.linear(-x / scale)[1] if y is None else y / scale)

    def support_error(self, g: Array, support: float) -> float:
        return 2.0 * UNIT * abs(support)  # it is rounded up already

    def fitted(self, g: Array, w: Array, multipliers: Sequence[Array]) -> list[Array]:
        """Multipliers of the same rows for which the gradient g at w, the rows and the ball cancel best."""
        return self._cut(g.shape).fitted(g, w, multipliers)

    def minimise(self, H: Array, b: Array, start: Array, y: Array | None = None) -> tuple[Array, Array]:
        r"""The minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle`, and multipliers of the rows.

        Parameters
        ----------
        H : array of shape (D, D)
            Without negative eigenvalues; acts on all D entries in C order.
        b, start : array
            Of the shape of w; the start is a point of the set.
        y : array, optional
            Multipliers to begin at, those of a similar problem.
        """
        return self._cut(b.shape).minimise(H, b, start, y)

    @checked_point
    def project(self, w: Array) -> Array:
        cut = self._cut(w.shape)
        if isinstance(cut.engine, CutPolytope):
            raise NotImplementedError(f"{self!r} has no projection; use PairwiseFrankWolfe, which needs none.")
        return cut.minimise(np.eye(w.size), w, self.centre(w.shape))[0]

    # ------------------------------------------------------------ geometry

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        x = point(w)
        cut, flat = self._cut(x.shape), x.ravel()
        # Entries that are zero but for rounding count as such.
        rounding = OPERATIONS * UNIT * self.reach(x.shape)
        allowed, t = abs(cut.A) @ (slack(w, rtol) * np.abs(flat) + rounding), cut.A @ flat
        return bool(np.all((t >= cut.lower - allowed) & (t <= cut.upper + allowed))) and self.ball.contains(w, rtol)

    def centre(self, shape: Shape) -> Array:
        return self._cut(shape).centre.copy()

    def reach(self, shape: Shape) -> float:
        return self.ball.reach(shape)

    def diameter(self, shape: Shape) -> float:
        return self.ball.diameter(shape)


def tightened(ball: ConstraintSet, g: Array, w: Array, *multipliers: Array | None) -> ConstraintSet:
    """A `Constrained` set with those multipliers that bound the linear function g best, any other set as it is.

    They are chosen among those given and one of these fitted to the gradient g at the point w; where there are none,
    they are looked for.
    """
    if not isinstance(ball, Constrained):
        return ball
    given = [y for y in multipliers if y is not None]
    tried = [ball.with_multipliers(y) for y in (*given, *ball.fitted(g, w, given[:1]))]
    return min(tried, key=lambda C: C.support(-g)) if tried else ball.with_multipliers(ball.oracle(g).warm)


class Cut:
    """The rows and the ball for points of one shape, moved to the origin and scaled."""

    def __init__(self, ball: ConstraintSet, rows: tuple[Rows, ...], shape: Shape) -> None:
        ball.check_shape(shape)
        for each in rows:
            each.check_shape(shape)
        self.ball, self.shape, d = ball, shape, math.prod(shape)
        self.A, self.lower, self.upper, self.names = joined(rows, d)
        inner, self.offset = (
            (ball.ball, np.ravel(ball.offset + np.zeros(shape))) if isinstance(ball, Shifted) else (ball, np.zeros(d))
        )
        M, length = _unit_rows(self.A)
        self._used = np.flatnonzero(length > 0.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            lower, upper = self.lower / length, self.upper / length
        far = ball.reach(shape) * (1.0 + FEASIBILITY)
        above, below = (self.lower > 0.0) & ~(lower <= far), (self.upper < 0.0) & ~(upper >= -far)
        if (above | below).any():  # rows of zeros are among them
            first = int(np.argmax(above | below))
            raise self._infeasible(np.where(np.arange(len(length)) == first, -1.0 if above[first] else 1.0, 0.0))
        M, self._length, lower, upper = M[self._used], length[self._used], lower[self._used], upper[self._used]
        at = M @ self.offset
        # Bounds that nothing in the ball comes near to say nothing.
        lower, upper = np.where(lower < -far, -np.inf, lower - at), np.where(upper > far, np.inf, upper - at)
        equal = self.lower[self._used] == self.upper[self._used]
        self.engine = _engine(inner, shape, M, lower, np.where(equal, lower, upper), np.abs(self.offset))
        try:
            self.engine.find_interior(np.ravel(inner.centre(shape)))
        except NoPointError as proof:
            raise self._infeasible(self._given(proof.multipliers)) from None
        self.centre = self._outside(self.engine.interior)

    def _outside(self, x: Array) -> Array:
        return np.asarray(x + self.offset).reshape(self.shape)

    def _given(self, y: Array) -> Array:
        """Multipliers of the rows as they were given, with the signs that their bounds allow."""
        lower, upper = self.lower[self._used], self.upper[self._used]
        for proof in reversed(self.engine.implied) if hasattr(self, "engine") else ():
            wrong = ((y < 0.0) & (lower == -np.inf) & (proof > 0.0)) | ((y > 0.0) & (upper == np.inf) & (proof < 0.0))
            if wrong.any():
                y = y + float(np.max(-y[wrong] / proof[wrong])) * proof
        y = np.where((y > 0.0) & (upper == np.inf) | (y < 0.0) & (lower == -np.inf), 0.0, y)
        found = np.zeros(len(self.lower))
        found[self._used] = y / self._length
        return found

    def _inside(self, y: Array | None) -> Array:
        """Multipliers of the scaled rows."""
        return np.zeros(len(self._used)) if y is None else y[self._used] * self._length

    def fitted(self, g: Array, w: Array, multipliers: Sequence[Array]) -> list[Array]:
        if not isinstance(self.engine, CutBall):
            return []
        x = w.ravel() - self.offset
        return [self._given(self.engine.fitted(g.ravel(), x, self._inside(y))) for y in multipliers]

    def linear(self, g: Array, y: Array | None = None) -> tuple[Array, Array]:
        w, found = self.engine.linear(g.ravel(), self._inside(y))
        return self._outside(w), self._given(found)

    def minimise(self, H: Array, b: Array, start: Array, y: Array | None = None) -> tuple[Array, Array]:
        assert isinstance(self.engine, CutBall)
        flat = start.ravel() - self.offset
        found = self.engine.minimise(H, b.ravel() - H @ self.offset, flat, self._inside(y))
        return self._outside(found.w), self._given(found.multipliers)

    def support(self, g: Array, y: Array) -> float:
        """An upper bound on the largest product with g, rounded up."""
        some = np.flatnonzero(y)
        terms = y[some] * np.where(y[some] > 0.0, self.upper[some], self.lower[some])
        if not np.isfinite(terms).all():
            return math.inf
        h = g.ravel() - self.A.T @ y
        moved = UNIT * ((len(some) + 6) * size(abs(self.A).T @ np.abs(y)) + size(h))
        inner = float(self.ball.support(h.reshape(self.shape)))
        cost = math.fsum(terms)
        error = 4.0 * UNIT * float(np.abs(terms).sum()) + moved * self.ball.reach(self.shape)
        error += self.ball.support_error(h.reshape(self.shape), inner) + 4.0 * UNIT * (abs(cost) + abs(inner))
        return cost + inner + error * (1.0 + 8 * UNIT)

    def _infeasible(self, y: Array) -> InfeasibleError:
        order = np.argsort(-np.abs(y), kind="stable")
        names = tuple(self.names[i] for i in order if abs(y[i]) > 1e-6 * abs(y[order[0]]))
        listed = "; ".join(names[:NAMED]) + (f"; and {len(names) - NAMED} more" if len(names) > NAMED else "")
        return InfeasibleError(
            f"no point of {shown(self.ball)} satisfies the constraints {listed}; relax or drop one of them, or take a "
            "larger radius.",
            y,
            names,
        )


def _unit_rows(A: Any) -> tuple[Any, Array]:
    """The rows over their Euclidean lengths, and these, also where squares would leave the range of floating point."""
    M, each = A.copy(), np.diff(A.indptr)
    largest = abs(A).max(axis=1).toarray().ravel()
    M.data = M.data / np.repeat(np.where(largest > 0.0, largest, 1.0), each)
    own = np.sqrt(M.multiply(M).sum(axis=1))
    M.data = M.data / np.repeat(np.where(own > 0.0, own, 1.0), each)
    return M, largest * own


def _engine(ball: ConstraintSet, shape: Shape, M: Any, lower: Array, upper: Array, shift: Array) -> CutSet:
    """What solves problems over the rows and a ball around the origin, or a sentence that says what is missing."""
    structure = ball.structure(shape)
    flat, lp, reach = structure.group_l1, structure.lp, ball.reach(shape)

    def support(g: Array) -> float:
        return ball.support(g.reshape(shape))

    if not len(structure.free) and (flat is None or flat.groups is None):
        bounds = _bounds(ball, structure, shape)
        if bounds is not None:
            return CutPolytope(M, lower, upper, reach, partial(_gauge, flat, *bounds), support, shift, flat, *bounds)
    if not isinstance(ball, NormBall) or len(structure.free) or (flat is None and lp is None):
        raise ValueError(
            "`Constrained(ball=...)` needs a solver for quadratics or linear programs over the ball, which "
            f"{shown(ball)} does not have; use an LpBall, a GroupBall(2, 1), one of these Weighted, a Simplex or a "
            "Box, and `bounds` for signs."
        )
    weights = 1.0 if structure.weights is None else np.ravel(structure.weights)
    own = lp if lp is not None and 1.0 < lp.p < math.inf else None

    def solve(H: Array, b: Array, start: Array, share: float) -> Array:
        inner = ball if share == 1.0 else resized(ball, share * ball.radius)
        return np.ravel(minimise_model(H, b.reshape(shape), inner, start.reshape(shape)))

    def gauge(w: Array) -> float:
        return ball.norm(w.reshape(shape)) / ball.radius

    def normal(w: Array) -> Array | None:
        return None if own is None else -LpBall(conjugate(own.p), 1.0).lmo(w * weights) * weights

    return CutBall(M, lower, upper, reach, gauge, support, shift, solve, normal)


def _bounds(ball: ConstraintSet, structure: Structure, shape: Shape) -> tuple[Array, Array] | None:
    """The bounds of single entries of a polytope; None of other sets."""
    flat, lp, d = structure.group_l1, structure.lp, math.prod(shape)
    if flat is not None:
        return np.full(d, -np.inf if flat.signed else 0.0), np.full(d, np.inf)
    if isinstance(ball, Box):
        low, high = (np.ravel(np.broadcast_to(b, shape)).astype(np.float64) for b in (ball.lower, ball.upper))
        return low, high
    if lp is not None and lp.p == math.inf:
        high = np.full(d, lp.radius) / (1.0 if structure.weights is None else np.ravel(structure.weights))
        return -high, high
    return None


def _gauge(flat: FlatBall | None, low: Array, high: Array, w: Array) -> float:
    """The gauge of a polytope at a point; where its bounds hold they count as not active."""
    beyond = float(np.max(np.maximum(w - high, low - w), initial=0.0))
    if flat is None:
        return 1.0 - 4 * UNIT + beyond / max(float(np.max(high - low)), UNIT)
    norm = 1.0 - 4 * UNIT if flat.tight else float(np.abs(w) @ np.ravel(flat.costs)) / flat.radius
    return max(norm, 1.0 + beyond / flat.radius) if beyond > 0.0 else norm
