"""`Constrained`: the intersection of a ball and linear constraints, with bounds from multipliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.algebra import FactoredShape
from projfree.algebra.hashing import short_hash
from projfree.checks import Array, instance, shown
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
from projfree.sets.cut import Cut, InfeasibleError
from projfree.sets.cut_ball import CutBall
from projfree.sets.cut_polytope import CutPolytope, sides
from projfree.sets.inputs import checked_point, finite, like, point, scaled_gradient, unit_scale
from projfree.sets.rows import Rows, joined
from projfree.sets.shifted import Shifted
from projfree.sets.unpenalized import WithUnpenalized

#: The search for the smallest feasible radius is between this number and its inverse.
LEAST_RADIUS = 1e-12


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Constrained(ConstraintSet):
    r"""The points of a ball, simplex or box that satisfy linear constraints.

    .. math:: \{w \in C : l \le A w \le u\}

    For any multipliers y of the rows, positive for upper bounds and negative for lower bounds,

    .. math:: \max_{w \in C,\ l \le A w \le u} \langle g, w\rangle \le \sum_i \max(y_i l_i, y_i u_i)
              + \operatorname{support}_C(g - A^T y),

    so that lower bounds need only multipliers and the support of C, for any solver. Over an l_1 ball, a simplex or a
    box, the oracle solves a linear program; over other balls, a sequence of quadratic programs. Points satisfy
    inequalities exactly in floating point, and equalities to rounding.

    Parameters
    ----------
    ball : ConstraintSet
        An `LpBall`, a `GroupBall` with the norm of the group lasso, one of these with weights, a `Simplex`, a `Box`, or
        one of these `shifted`.
    rows : Rows or sequence of Rows
        Constraints created by `order`, `bounds`, `sums_to` or `covariance`.
    A : array or sparse array of shape (m, d)
        Matrix of further constraints, with a column for each entry of a parameter in C order.
    lower, upper : float or array of shape (m,), optional
        Bounds of the rows of A; equal bounds define an equality.
    multipliers : array of shape (m,), optional
        Multipliers with which the support is the right-hand side above. By default they minimise it.

    Raises
    ------
    InfeasibleError
        At the first use of the set, if it is empty; contains a proof.

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
        self.__dict__["_cuts"] = {}  # the cache of `_cut`, by shape of points

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
        """The description of each row."""
        return tuple(name for each in self.rows for name in each.names)

    def with_multipliers(self, y: Array | None) -> Constrained:
        """Return the set with these multipliers for its support; with None, the support computes the best ones."""
        other = copy(self)
        object.__setattr__(other, "multipliers", None if y is None else np.array(y, dtype=np.float64))
        other.__dict__["_cuts"] = self.__dict__["_cuts"]
        return other

    def relaxed(self, g: Array) -> Array:
        """Return ``g + A.T @ y`` for the multipliers y, the gradient of the Lagrangian over the ball."""
        y = self.multipliers
        return g if y is None else g + (self._cut(g.shape).rows.A.T @ y).reshape(g.shape)

    def fingerprint(self) -> str:
        text = f"Constrained({self.ball!r}, {[(repr(r), r.columns) for r in self.rows]!r})"
        return text if self.multipliers is None else short_hash(text, self.multipliers)

    def structure(self, shape: Shape) -> Structure:
        self.ball.check_shape(shape)
        polytope = sides(self.ball, shape) is not None
        return Structure(polytope=polytope, projection="none" if polytope else "slow")

    def check_shape(self, shape: Shape) -> None:
        if isinstance(shape, FactoredShape):
            raise ValueError("`Constrained` takes vectors and matrices, not matrices in factors.")
        self._cut(shape)

    def _cut(self, shape: Shape) -> Cut:
        cuts: dict[Shape, Cut] = self.__dict__["_cuts"]
        if shape not in cuts:
            cuts[shape] = _cut(self.ball, self.rows, shape)
        return cuts[shape]

    # ------------------------------------------------------------ oracles

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        """Return a minimiser of g over the set, the support of -g, and the multipliers that prove it."""
        c = finite("lmo(g)", g)
        scale, cut = unit_scale(c), self._cut(c.shape)
        flat = c.ravel() / scale
        v, found = cut.linear(flat, cut.scaled(None if warm is None else warm / scale))
        y = cut.given(found)
        return OracleResult(like(g, v.reshape(c.shape)), scale * cut.support(-flat, y), scale * y)

    @scaled_gradient
    def lmo(self, g: Array) -> Array:
        cut = self._cut(g.shape)
        return cut.linear(g.ravel(), cut.scaled(None))[0].reshape(g.shape)

    def support(self, g: Array) -> float:
        x = point(g)
        scale, cut, y = unit_scale(x), self._cut(x.shape), self.multipliers
        flat = x.ravel() / scale
        return scale * cut.support(flat, cut.given(cut.linear(-flat, cut.scaled(None))[1]) if y is None else y / scale)

    def support_error(self, g: Array, support: float) -> float:
        return 2.0 * UNIT * abs(support)  # the support is already rounded up

    def minimise(self, H: Array, b: Array, start: Array, y: Array | None = None) -> tuple[Array, Array]:
        r"""Return the minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` and row multipliers.

        Parameters
        ----------
        H : array of shape (D, D)
            Positive semidefinite matrix, applied to the D entries in C order.
        b, start : array
            Linear term and start, of the shape of w; the start is a point of the set.
        y : array, optional
            Initial multipliers, those of a similar problem.
        """
        cut = self._cut(b.shape)
        assert isinstance(cut, CutBall)
        w, found = cut.minimise(H, b.ravel(), start.ravel(), cut.scaled(y))
        return w.reshape(b.shape), cut.given(found)

    @checked_point
    def project(self, w: Array) -> Array:
        if isinstance(self._cut(w.shape), CutPolytope):
            raise NotImplementedError(f"{self!r} has no projection; use PairwiseFrankWolfe, which needs none.")
        return self.minimise(np.eye(w.size), w, self.centre(w.shape))[0]

    # ------------------------------------------------------------ geometry

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        x = point(w)
        rows, flat = self._cut(x.shape).rows, x.ravel()
        # Entries as small as rounding errors are treated as zero.
        rounding = OPERATIONS * UNIT * self.reach(x.shape)
        allowed, t = abs(rows.A) @ (slack(w, rtol) * np.abs(flat) + rounding), rows.A @ flat
        return bool(np.all((t >= rows.lower - allowed) & (t <= rows.upper + allowed))) and self.ball.contains(w, rtol)

    def centre(self, shape: Shape) -> Array:
        return self._cut(shape).centre.reshape(shape)

    def reach(self, shape: Shape) -> float:
        return self.ball.reach(shape)

    def diameter(self, shape: Shape) -> float:
        return self.ball.diameter(shape)

    def smallest_radius(self, shape: Shape, rtol: float = 0.01) -> float:
        """Return a radius of the ball for which the set is not empty, within ``rtol`` of the smallest one.

        It is zero if the centre of the ball satisfies the rows. Raises `InfeasibleError` if the rows are contradictory.
        """

        def has_points(radius: float) -> bool:
            try:
                resized(self, radius).centre(shape)
            except InfeasibleError:
                return False
            return True

        rows, centre = joined(self.rows, math.prod(shape)), self.ball.centre(shape).ravel()
        if np.all((rows.A @ centre >= rows.lower) & (rows.A @ centre <= rows.upper)):
            return 0.0
        low = high = 1.0
        while has_points(low) and low > LEAST_RADIUS:
            low, high = low / 8.0, low
        while not has_points(high) and high < 1.0 / LEAST_RADIUS:
            low, high = high, high * 8.0
        while high > (1.0 + rtol) * low:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if has_points(middle) else (middle, high)
        resized(self, high).centre(shape)  # raises InfeasibleError for contradictory rows
        return high


def with_best_multipliers(ball: ConstraintSet, g: Array, w: Array, *multipliers: Array | None) -> ConstraintSet:
    """Return a `Constrained` set with the multipliers that give the best bound on g, any other set unchanged.

    The candidates are the given multipliers and those fitted to the gradient g at the point w. Without candidates, the
    oracle computes multipliers.
    """
    if not isinstance(ball, Constrained):
        return ball
    cut, tried = ball._cut(g.shape), [y for y in multipliers if y is not None]
    if not tried:
        return ball.with_multipliers(ball.oracle(g).warm)
    if isinstance(cut, CutBall):
        tried.append(cut.given(cut.fitted(g.ravel(), w.ravel(), cut.scaled(tried[0]))))
    return min((ball.with_multipliers(y) for y in tried), key=lambda C: C.support(-g))


def _cut(ball: ConstraintSet, rows: tuple[Rows, ...], shape: Shape) -> Cut:
    """Return the set for points of this shape; raise ValueError if no solver supports the ball."""
    ball.check_shape(shape)
    if (bounds := sides(ball, shape)) is not None:
        return CutPolytope(ball, rows, shape, *bounds)
    inner, structure = ball.ball if isinstance(ball, Shifted | WithUnpenalized) else ball, ball.structure(shape)
    if isinstance(ball, Shifted):
        structure = inner.structure(shape)
    if not isinstance(inner, NormBall) or (structure.lp is None and structure.group_l1 is None):
        raise ValueError(
            "`Constrained(ball=...)` needs a solver for quadratics or linear programs over the ball, which "
            f"{shown(inner)} does not have; use an LpBall, a GroupBall(2, 1), one of these Weighted, a Simplex or a "
            "Box, and `bounds` for signs."
        )
    return CutBall(ball, rows, shape)
