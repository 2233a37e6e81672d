r"""Quadratics over l_1 and group-l_1 balls, by coordinate descent and Newton steps on faces.

.. math:: \min_v\ \tfrac12\langle v, Hv\rangle - \langle b, v\rangle
          \quad\text{subject to}\quad \sum_g c_g \|v_g\| \le r ,

or with the penalty :math:`\lambda \sum_g c_g \|v_g\|` in place of the radius. H is a matrix (`Columns.of_matrix`) or
:math:`A^T A` for the columns of a table (`Columns`). The multiplier :math:`\lambda` of the radius is searched for while
the penalised problems are solved: the norm of their minimisers decreases in :math:`\lambda`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.fista import MOST, project_descent
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.simplex_quadratic import minimise_on_simplex
from projfree.numerics.sums import UNIT

#: The kinds of columns that the kernels tell apart, and the rows of those that are not sparse.
DENSE, SPARSE, GRAM = 0, 1, 2
NO_ROWS = np.zeros(0, dtype=np.int32)
#: Rounds of descent and Newton steps at most where an exact solution is asked for, and where it is not; rounds without
#: progress after which rounding is taken to be reached.
MOST_ROUNDS, ROUNDS, STALLED = 300, 20, 12
#: A gap of so many roundings is not worth another method.
FEW_ROUNDINGS = 32.0
#: Sweeps over the nonzeros that follow a sweep over all columns: the sweeps find the face for the Newton step.
SUPPORT_SWEEPS = 3
#: Conjugate gradient steps of the first Newton step; each later one has twice as many, up to a limit.
CG_STEPS, MOST_CG_STEPS = 16, 256
#: They end once the square of the residual has fallen to this part: the face is seldom the last one.
CG_ACCURACY = 1e-3
#: The multiplier moves once the penalised problem is solved to this part of what the wrong radius costs.
SOLVED = 0.3


#: The least part by which the diagonal of a face is raised: some roundings of its entries.
LEAST_DAMPING = 1e-14
#: The multiplier is about the radius to minus this power, at first; secants are trusted between two others, and moves
#: of the multiplier up to a factor.
EXPONENT, EXPONENTS, FACTOR = 1.5, (0.2, 20.0), 0.3
#: The Gram matrix of at most so many columns is formed, where it takes the time of at most so many sweeps.
MOST_FORMED, FORMING_SWEEPS = 1_000, 40
#: Projections at most where no exact solution is asked for, and entries at most: their matrix takes 32 MB.
PROJECTIONS, MOST_PROJECTED = 500, 2_000
#: Systems up to this size are factorised; conjugate gradients solve larger ones in less time.
MOST_FACTORIZED = 500
#: Newton steps that end where an entry becomes zero, after which descent goes on.
CROSSINGS = 10
#: Once the multiplier has fallen to this part, the minimum may lie inside the ball.
INTERIOR = 0.1
NO_WEIGHTS = np.zeros((0, 0))
#: Sums of weights below it are zero: the square of its inverse is still finite.
LEAST_WEIGHT = 1e-150


@cache
def _kernels() -> Any:
    """The compiled kernels, imported when they are first used: numba takes a second."""
    from projfree.numerics import group_l1_kernels

    return group_l1_kernels


class Columns(NamedTuple):
    """The columns of a matrix for `group_l1_kernels`, and what an intercept takes off their products.

    Attributes
    ----------
    kind, ptr, rows, x
        The columns, times the root of the weight of their row unless ``h`` holds weights.
    h : ndarray of shape (n, k) or (0, 0)
        Weights of rows and outputs.
    mean : ndarray of shape (m, k)
        The product of each column with the constant column, over the length of that; zero without an intercept.
    diagonal : ndarray of shape (m, k)
        That of H.
    side : int
        The length of an image.
    """

    kind: int
    ptr: Array
    rows: Array
    x: Array
    h: Array
    mean: Array
    diagonal: Array
    side: int

    @classmethod
    def of_matrix(cls, H: Array, outputs: int = 1) -> Columns:
        """H itself; its columns are those of a symmetric matrix."""
        m = len(H)
        diagonal = np.repeat(np.maximum(np.diag(H), 0.0)[:, None], outputs, axis=1)
        ptr = np.arange(0, m * m + 1, m) if m else np.zeros(1, dtype=np.int64)
        x = np.ascontiguousarray(H).ravel()
        return cls(GRAM, ptr, NO_ROWS, x, NO_WEIGHTS, np.zeros_like(diagonal), diagonal, m)

    def formed(self) -> Columns:
        """H itself where it takes no longer than some sweeps, else the columns."""
        m = len(self.mean)
        if self.h.size or self.kind == GRAM or m > MOST_FORMED:
            return self
        if self.kind == SPARSE:
            each = np.bincount(self.rows, minlength=self.side)
            if float(each @ each) > 2.0 * FORMING_SWEEPS * len(self.x):
                return self
            H = np.zeros((m, m))
            _kernels().add_gram(self.ptr, self.rows, self.x, np.append(0, np.cumsum(each)), H)
        else:
            table = self.x.reshape(m, self.side)
            H = table @ table.T
        H -= np.multiply.outer(self.mean[:, 0], self.mean[:, 0])
        return Columns.of_matrix(H, self.mean.shape[1])

    def to_matrix(self) -> Array:
        """H as a matrix over all entries of a parameter in C order, formed if need be."""
        (m, k), found = self.mean.shape, self.formed().matrix
        if found is not None:
            return found if k == 1 else np.kron(found, np.eye(k))
        H = np.zeros((m, k, m, k))
        for j in range(m):
            unit = np.zeros((m, k))
            unit[j] = 1.0
            H[:, range(k), j, range(k)] = self.times(unit)
        return H.reshape(m * k, m * k)

    @property
    def matrix(self) -> Array | None:
        """H where it is at hand."""
        return self.x.reshape(self.side, self.side) if self.kind == GRAM else None

    def image(self, v: Array) -> Array:
        """The weighted image of ``v``."""
        z = np.zeros((self.side, v.shape[1]))
        _kernels().multiply(self.kind, self.ptr, self.rows, self.x, self.h, v, z)
        return z

    def adjoint(self, z: Array, shift: Array) -> Array:
        """H v, given the image of v and its part along the intercept."""
        out = np.empty(self.mean.shape)
        _kernels().adjoint(self.kind, self.ptr, self.rows, self.x, z, out)
        return np.asarray(out - self.mean * shift)

    def times(self, v: Array) -> Array:
        """H v."""
        if self.kind == GRAM:
            return np.asarray(self.x.reshape(self.side, -1) @ v)
        return self.adjoint(self.image(v), self.shift(v))

    def shift(self, v: Array) -> Array:
        """The part of the image of ``v`` along the intercept."""
        return np.asarray(np.einsum("jo,jo->o", self.mean, v))

    def largest(self, first: Array) -> Array:
        """An upper bound on the largest eigenvalue of the block of each group."""
        widest = self
        if self.h.size:  # with the largest of the weights of a row
            root = np.sqrt(self.h.max(axis=1))
            by = root[self.rows] if self.kind == SPARSE else np.tile(root, len(self.ptr) - 1)
            widest = self._replace(x=self.x * by, h=NO_WEIGHTS)
        squares = (self.diagonal + self.mean**2).max(axis=1)
        bounds = squares[first[:-1]]
        for g in np.flatnonzero(np.diff(first) > 1):
            bounds[g] = np.linalg.eigvalsh(widest.block(slice(first[g], first[g + 1])))[-1]
        return np.asarray(bounds * (1.0 + 1e-12))

    def block(self, own: slice) -> Array:
        """The block of H of some neighbouring columns, without what an intercept takes off."""
        if self.kind == GRAM:
            return self.x.reshape(self.side, -1)[own, own]
        size = own.stop - own.start
        dense = np.zeros((size, self.side))
        for i in range(size):
            part = slice(self.ptr[own.start + i], self.ptr[own.start + i + 1])
            dense[i, self.rows[part] if self.kind == SPARSE else slice(None)] = self.x[part]
        return np.asarray(dense @ dense.T)


def weighted_columns(
    kind: int, ptr: Array, rows: Array, x: Array, h: Array, outputs: int = 1, *, intercept: bool = False
) -> Columns:
    r"""The matrix :math:`\sum_i h_i x_i x_i^T` of columns of a table, rows about their weighted mean with an intercept.

    ``h`` has the shape ``(n, k)``, or ``(n, 1)`` for weights that all of the ``outputs`` share.
    """
    n, m = len(h), len(ptr) - 1
    means = np.zeros((m, outputs))
    if h.shape[1] == 1:
        root = np.sqrt(h[:, 0])
        x = x * root[rows] if kind == SPARSE else (x.reshape(m, n) * root).ravel()
        along = root[:, None] / max(float(np.linalg.norm(root)), LEAST_WEIGHT)
        table = Columns(kind, ptr, rows, x, NO_WEIGHTS, np.zeros((m, 1)), means, n)
        means += table.adjoint(along, np.zeros(1)) if intercept else 0.0
        if kind == SPARSE:
            squares = np.bincount(np.repeat(np.arange(m), np.diff(ptr)), x * x, minlength=m)
        else:
            squares = np.einsum("ij,ij->i", x.reshape(m, n), x.reshape(m, n))
        return table._replace(mean=means, diagonal=np.maximum(squares[:, None] - means**2, 0.0))
    table = Columns(kind, ptr, rows, x, NO_WEIGHTS, means, means, n)
    squares = table._replace(x=x * x).adjoint(h, np.zeros(outputs))
    if intercept:
        means = table.adjoint(h, np.zeros(outputs)) / np.sqrt(np.maximum(h.sum(axis=0), LEAST_WEIGHT))
    return table._replace(h=h, mean=means, diagonal=np.maximum(squares - means**2, 0.0))


@dataclass(frozen=True)
class QPSolution:
    """A minimiser, its multiplier, and how far it can be from the minimum: ``gap``, whose rounding is ``floor``."""

    w: Array
    level: float
    gap: float
    floor: float
    exponent: float = EXPONENT
    rounds: int = 1


def minimize_group_l1(
    columns: Columns,
    b: Array,
    ball: FlatBall,
    start: Array,
    level: float,
    goal: float = 0.0,
    *,
    free: int = 0,
    bound: float = 0.0,
    exponent: float = EXPONENT,
) -> QPSolution:
    """The minimiser over a ball whose groups are neighbours.

    Parameters
    ----------
    columns : Columns
        H.
    b, start : array of shape (m,) or (m, k)
        Of the shape of the parameter; ``start`` lies in the set.
    ball : FlatBall
        The set, without the free columns.
    level : float
        A guess at the multiplier.
    goal : float
        The gap at which it may end.
    free : int
        The last columns are not in the ball, but between ``-bound`` and ``bound``.
    exponent : float
        The multiplier is about the radius to minus this power.
    """
    if ball.tight and not free:
        return _on_simplex(columns, b, ball, start)
    found = QPSolution(start, level, math.inf, 0.0)
    if not ball.tight:
        found = _Search(columns, b, ball, start, free, bound).solve(level, goal, exponent)
    if found.gap <= max(goal, FEW_ROUNDINGS * found.floor) or expired():
        return found
    if not ball.tight and (columns.kind == SPARSE or b.size > MOST_PROJECTED):
        return found
    # A degenerate face, or a simplex beside free entries: other methods are slower, and do not need regular faces.
    if ball.groups is None and not free and b.size <= MOST_FACTORIZED:
        other = _on_simplex(columns, b, ball, found.w)
    else:
        other = _projected(columns, b, ball, found.w, free, bound, PROJECTIONS if goal > 0.0 else MOST)
    return replace(other, exponent=found.exponent) if other.gap < found.gap else found


def _on_simplex(columns: Columns, b: Array, ball: FlatBall, start: Array) -> QPSolution:
    """The minimiser over a set whose groups are single entries, as weights of its vertices."""
    H, m, v = columns.to_matrix(), b.size, start.ravel()
    reach = np.broadcast_to(ball.radius / ball.costs, b.shape).ravel()
    corners, weights = np.diag(reach), np.maximum(v, 0.0) / reach
    if ball.signed:
        corners, weights = np.vstack([corners, -corners]), np.append(weights, np.maximum(-v, 0.0) / reach)
    if not ball.tight:
        corners, weights = np.vstack([corners, np.zeros(m)]), np.append(weights, max(1.0 - float(weights.sum()), 0.0))
    weights = weights / weights.sum() if weights.any() else np.full(len(weights), 1.0 / len(weights))
    slope = corners @ (H @ (corners.T @ weights) - b.ravel())
    v = corners.T @ minimise_on_simplex(corners @ H @ corners.T, slope, weights)
    return _checked(columns, b, ball, ball.inside(v.reshape(b.shape)), 0, 0.0)


def _projected(
    columns: Columns, b: Array, ball: FlatBall, start: Array, free: int, bound: float, steps: int
) -> QPSolution:
    """The minimiser by accelerated projected gradients."""
    m = len(b) - free

    def project(v: Array) -> Array:
        return np.concatenate([ball.project(v[:m]), np.clip(v[m:], -bound, bound)])

    H = columns.to_matrix()
    largest = float(np.linalg.eigvalsh(H)[-1]) * (1.0 + 1e-12)
    return _checked(columns, b, ball, project_descent(H, b, project, start, largest, steps), free, bound)


def _checked(columns: Columns, b: Array, ball: FlatBall, w: Array, free: int, bound: float) -> QPSolution:
    """A point with its multiplier and gap."""
    g, m = columns.times(w.reshape(len(b), -1)).reshape(b.shape) - b, len(b) - free
    level = ball.level(g[:m])
    gap = float(np.vdot(g, w)) + ball.radius * level + (bound * float(np.abs(g[m:]).sum()) if free else 0.0)
    return QPSolution(w, level, gap, 0.0)


def minimize_penalized(columns: Columns, b: Array, ball: FlatBall, start: Array, level: float, goal: float) -> Array:
    """The minimiser with the penalty ``level`` times the norm of the ball; ``goal`` is the gap at which it may end."""
    return _Search(columns, b, replace(ball, radius=math.inf), start, 0, 0.0).solve(level, goal).w


#: A point, its gradient and its norm.
_Side = tuple[Array, Array, float]


class _Search:
    """The state of a solve: the point v, its image z, and the gradient."""

    def __init__(self, columns: Columns, b: Array, ball: FlatBall, start: Array, free: int, bound: float) -> None:
        self.columns, self.ball, self.free, self.shape = columns, ball, free, b.shape
        self.bound = bound if free else 0.0
        k = columns.mean.shape[1]
        self.b, self.v = b.reshape(-1, k), np.array(start.reshape(-1, k), dtype=np.float64, order="C")
        self.m = len(self.b) - free
        self.costs = ball.costs if ball.groups is not None else np.broadcast_to(ball.costs, start[: self.m].shape)
        self.damping = LEAST_DAMPING
        self._bounds()
        self._look()

    def _bounds(self) -> None:
        """Thresholds for a multiplier of one, and bounds on entries or groups that the ball implies."""
        ball, k = self.ball, self.v.shape[1]
        high = ball.radius / self.costs
        if ball.groups is None:
            pad = np.full((self.free, k), 1.0)
            self.unit = np.vstack([self.costs.reshape(-1, k), 0.0 * pad])
            self.high = np.vstack([high.reshape(-1, k), self.bound * pad])
            self.low = -self.high
            if not ball.signed:
                self.low[: self.m] = 0.0
            return
        starts = np.flatnonzero(np.diff(ball.groups, prepend=-1))
        self.first = np.append(starts, np.arange(self.m, len(self.v) + 1))
        self.unit, self.high = (
            np.append(self.costs, np.zeros(self.free)),
            np.append(high, np.full(self.free, self.bound)),
        )
        self.largest = self.columns.largest(self.first)

    def _look(self) -> None:
        """Form the image and the gradient anew."""
        c = self.columns
        self.z, self.shift = c.image(self.v), c.shift(self.v)
        self.g = c.adjoint(self.z, self.shift) - self.b

    def _sweep(self, level: float, which: Array) -> None:
        c, own = self.columns, (self.columns.mean, self.shift, self.v, self.b)
        head = (c.kind, c.ptr, c.rows, c.x, c.h, self.z)
        if self.ball.groups is None:
            _kernels().sweep_entries(*head, *own, c.diagonal, level * self.unit, self.low, self.high, which)
        else:
            _kernels().sweep_groups(*head, *own, self.first, self.largest, level * self.unit, self.high, which)

    def _support(self) -> Array:
        """The columns, or groups, that are not zero."""
        used = self.v.any(axis=1)
        if self.ball.groups is None:
            return np.flatnonzero(used)
        return np.flatnonzero(np.logical_or.reduceat(used, self.first[:-1]))

    # ------------------------------------------------------------ what is known of a point

    def norm(self, v: Array) -> float:
        """The norm that the radius bounds."""
        return self.ball.norm(self._inner(v))

    def _inner(self, v: Array) -> Array:
        """The part of a parameter that is in the ball, in the shape of the parameter."""
        return v[: self.m].reshape(self.m, *self.shape[1:])

    def _value(self) -> float:
        """The quadratic at v."""
        return 0.5 * float(np.vdot(self.v, self.g - self.b))

    def _gap(self, v: Array, g: Array) -> float:
        """The Frank-Wolfe gap at v, where the gradient is g."""
        linear = float(np.vdot(g, v)) + self.bound * float(np.abs(g[self.m :]).sum())
        return linear + self.ball.radius * self.ball.level(self._inner(g))

    def _penalized_gap(self, level: float, norm: float) -> float:
        """The gap of the penalised problem; parts at a bound that push against it are where they should be."""
        sizes, slopes = self.ball.sizes(self._inner(self.v)), self.ball.slopes(self._inner(self.g))
        capped = (sizes * self.costs >= self.ball.radius * (1.0 - 4.0 * UNIT)) & (slopes >= level)
        parts = self.ball.sums(self._inner(self.g) * self._inner(self.v)) + level * self.costs * sizes
        gap = float(np.sum(np.where(capped, 0.0, parts)))
        above = float(np.max(np.where(capped, -math.inf, slopes), initial=-math.inf)) - level
        size = norm if math.isinf(self.ball.radius) else max(norm, self.ball.radius)
        gap += max(above, 0.0) * size
        g = self.g[self.m :]
        return gap + float(np.vdot(g, self.v[self.m :])) + self.bound * float(np.abs(g).sum())

    def _floor(self) -> float:
        """The rounding of a gap."""
        size = np.abs(self.b)
        terms = float(np.vdot(np.abs(self.v), size))
        if math.isfinite(self.ball.radius):
            terms += self.ball.radius * self.ball.level(-self._inner(size)) + self.bound * float(size[self.m :].sum())
        return 8.0 * UNIT * terms

    def _inside(self, norm: float, sides: dict[bool, _Side]) -> Iterator[tuple[Array, Array]]:
        """Points of the ball near v with their gradients: v scaled, and between v and the last one on the other side.

        Where the norm jumps at the right multiplier, all points between two minimisers are minimisers.
        """
        r, v, g = self.ball.radius, self.v, self.g
        if norm > r:
            v = v.copy()
            v[: self.m] *= r / norm
            # Along the ray the gradient is linear.
            g = self.columns.times(v) - self.b if self.free else (r / norm) * (g + self.b) - self.b
        yield v, g
        if norm != r and (norm < r) in sides:
            other, slope, size = sides[norm < r]
            t = (r - size) / (norm - size)
            yield other + t * (self.v - other), slope + t * (self.g - slope)

    # ------------------------------------------------------------ the search

    def solve(self, level: float, goal: float, exponent: float = EXPONENT) -> QPSolution:
        """Descend, and move the multiplier whenever the penalised problem is solved, until the gap is small."""
        r, level = self.ball.radius, level if level > 0.0 else self.ball.level(-self._inner(self.b))
        search, penalty = _Multiplier(r, exponent), math.isinf(r)
        everything = np.arange(len(self.unit))
        start, first, last, steps, stalled = self._value(), level, math.inf, CG_STEPS, 0
        best, sides = QPSolution(self.v.copy(), level, math.inf, 0.0), dict[bool, _Side]()
        lower = False
        for turn in range(MOST_ROUNDS):
            self._sweep(level, everything)
            for _ in range(SUPPORT_SWEEPS):
                self._sweep(level, self._support())
            self.g = self.columns.adjoint(self.z, self.shift) - self.b
            norm, floor = self.norm(self.v), self._floor()
            own = self._penalized_gap(level, norm)
            if turn and own > floor:
                self._face_steps(level, steps)
                steps = min(2 * steps, MOST_CG_STEPS)
                norm, own = self.norm(self.v), self._penalized_gap(level, self.norm(self.v))
            points = [(self.v, self.g)] if penalty else list(self._inside(norm, sides))
            gaps = [own] if penalty else [self._gap(v, g) for v, g in points]
            gap = min(gaps)
            v, g = points[gaps.index(gap)]
            stalled = 0 if gap < 0.7 * best.gap or own < 0.7 * last else stalled + 1
            last = own
            descends = penalty or 0.5 * float(np.vdot(v, g - self.b)) < start + floor
            if (descends, -gap) > (lower, -best.gap):
                best, lower = QPSolution(v.copy(), level, gap, floor, search.exponent), descends
            if gap <= (max(goal, floor) if descends else floor) or expired():
                if penalty and goal == 0.0:  # a gap of rounding size is the square of an error that a last step removes
                    self._face_step(level, steps)
                    best = replace(best, w=self.v)
                break
            if stalled > STALLED or (goal > 0.0 and lower and turn >= ROUNDS):
                break
            if not penalty and own <= max(SOLVED * level * abs(r - norm), floor) and norm != r:
                sides[norm > r] = self.v.copy(), self.g, norm
                if norm < r and level < INTERIOR * first and (found := self._interior(goal, floor, start)) is not None:
                    return found
                level = search.next(level, norm)
        return replace(best, w=best.w.reshape(self.shape), rounds=turn + 1)

    def _interior(self, goal: float, floor: float, start: float) -> QPSolution | None:
        """The minimiser without the ball over the entries in use, where it is inside and no other entry is needed."""
        kept = self.v, self.z, self.shift, self.g
        self._face_step(0.0, MOST_CG_STEPS)
        gap = self._gap(self.v, self.g)
        if self.norm(self.v) <= self.ball.radius and gap <= max(goal, floor) and self._value() < start:
            return QPSolution(self.v.reshape(self.shape), 0.0, gap, floor)
        self.v, self.z, self.shift, self.g = kept
        return None

    # ------------------------------------------------------------ Newton steps on the face

    def _face_steps(self, level: float, steps: int) -> None:
        """Newton steps until one is whole, where a solve is cheap; else a single one."""
        for _ in range(CROSSINGS if self.columns.matrix is not None else 1):
            if self._face_step(level, steps) in (0.0, 1.0):
                break

    def _face_step(self, level: float, steps: int) -> float:
        """Newton's step for the entries that are not zero, as far as it lowers the penalised value."""
        on, u, bend = self._face(level)
        if not on.any():
            return 0.0
        rhs = -np.where(on, self.g + level * u, 0.0)
        p = self._newton(on, rhs, bend, steps)
        old, before = (self.v, self.z, self.shift, self.g), self._value() + level * self.norm(self.v)
        for share in (1.0, self._first_crossing(self.v, p)):
            new = old[0] + share * p
            if self.ball.groups is None:
                crossed = (new * old[0] < 0.0) & (level * self.unit > 0.0)
                new = np.clip(np.where(crossed, 0.0, new), self.low, self.high)
            new[self.m :] = np.clip(new[self.m :], -self.bound, self.bound)
            self.v = new
            self._look()
            if self._value() + level * self.norm(new) <= before:
                self.damping = max(self.damping * 1e-2, LEAST_DAMPING) if share == 1.0 else self.damping
                return share if self.ball.groups is None else 1.0
        self.v, self.z, self.shift, self.g = old
        self.damping *= 1e3  # as Levenberg and Marquardt do: the face has directions without curvature
        return 0.0

    @staticmethod
    def _first_crossing(v: Array, p: Array) -> float:
        """The step at which the first entry becomes zero, at most one half."""
        toward = (v * p < 0.0) & (np.abs(p) > np.abs(v))
        return float(np.min(np.abs(v[toward] / p[toward]), initial=0.5))

    def _face(self, level: float) -> tuple[Array, Array, Array | None]:
        """Which entries are not zero, the gradient of the norm there, and the curvature of each group's norm."""
        v = self.v
        if self.ball.groups is None:
            on = (v != 0.0) & (self.low < v) & (v < self.high) & (self.columns.diagonal > 0.0)
            return on, self.unit * np.sign(v), None
        sizes = np.sqrt(np.add.reduceat((v * v).sum(axis=1), self.first[:-1]))
        each = np.repeat(sizes, np.diff(self.first))[:, None]
        cost = np.repeat(self.unit, np.diff(self.first))[:, None]
        on = (each > 0.0) & ((cost > 0.0) | (np.abs(v) < self.bound))
        with np.errstate(invalid="ignore", divide="ignore"):
            u = np.where(each > 0.0, v / each, 0.0)
            bend = np.where(each > 0.0, level * cost / each, 0.0)
        return on, cost * u, np.stack([np.broadcast_to(bend, v.shape), u])

    def _newton(self, on: Array, rhs: Array, bend: Array | None, steps: int) -> Array:
        H = self.columns.matrix
        places = np.flatnonzero(on[:, 0])
        if H is not None and self.v.shape[1] == 1 and len(places) <= MOST_FACTORIZED:
            A = H[np.ix_(places, places)]
            if bend is not None:
                curve, u = bend[0][places, 0], bend[1][places, 0]
                group = np.repeat(np.arange(len(self.unit)), np.diff(self.first))[places]
                A = A + np.diag(curve) - np.where(group[:, None] == group, curve[:, None] * np.outer(u, u), 0.0)
            p = np.zeros_like(self.v)
            p[places, 0] = _solve(A, rhs[places, 0], self.damping)
            return p
        return self._conjugate_gradients(on, rhs, bend, steps)

    def _curved(self, p: Array, bend: Array) -> Array:
        """The Hessian of the penalty times p."""
        along = np.add.reduceat((bend[1] * p).sum(axis=1), self.first[:-1])
        return np.asarray(bend[0] * (p - bend[1] * np.repeat(along, np.diff(self.first))[:, None]))

    def _conjugate_gradients(self, on: Array, rhs: Array, bend: Array | None, steps: int) -> Array:
        damping = self.damping * self.columns.diagonal
        scale = self.columns.diagonal + damping + (0.0 if bend is None else bend[0])
        scale = np.where(on & (scale > 0.0), 1.0 / np.where(scale > 0.0, scale, 1.0), 0.0)
        p, left = np.zeros_like(rhs), rhs.copy()
        along = scale * left
        size = first = float(np.vdot(left, along))
        for _ in range(steps):
            if size <= CG_ACCURACY * first or size <= 0.0 or expired():
                break
            product = self.columns.times(along) + damping * along
            product = np.where(on, product + (0.0 if bend is None else self._curved(along, bend)), 0.0)
            curvature = float(np.vdot(along, product))
            if curvature <= 0.0:
                break
            p += (size / curvature) * along
            left -= (size / curvature) * product
            preconditioned = scale * left
            new = float(np.vdot(left, preconditioned))
            along = preconditioned + (new / size) * along
            size = new
        return p


def _solve(A: Array, rhs: Array, damping: float) -> Array:
    """The solution of a positive semidefinite system whose diagonal is raised by this part of itself."""
    from scipy.linalg import lapack

    scale = np.sqrt(np.maximum(np.diag(A), LEAST_WEIGHT))
    B = A / scale / scale[:, None]
    while damping < 1.0:
        B[np.diag_indices(len(B))] = 1.0 + damping
        factor, info = lapack.dpotrf(B, lower=1)
        if info == 0:
            found = lapack.dpotrs(factor, rhs / scale, lower=1)[0] / scale
            return np.asarray(found) if np.isfinite(found).all() else np.zeros_like(rhs)
        damping *= 1e3
    return np.zeros_like(rhs)


class _Multiplier:
    """The multiplier for which the norm is the radius, by secants of their logarithms within a bracket."""

    def __init__(self, radius: float, exponent: float) -> None:
        self.radius, self.exponent = radius, exponent
        self.below, self.above = 0.0, math.inf
        self.last = (math.nan, math.nan)

    def next(self, level: float, norm: float) -> float:
        """The next multiplier, after the norm at ``level``: the norm decreases in the multiplier."""
        if norm > 0.0 and self.last[1] > 0.0 and norm != self.last[1] and level > 0.0:
            exponent = -math.log(level / self.last[0]) / math.log(norm / self.last[1])
            self.exponent = min(max(exponent, EXPONENTS[0]), EXPONENTS[1])
        self.last = level, norm
        if norm < self.radius:
            self.above = level
        else:
            self.below = level
        share = math.pow(norm / self.radius, self.exponent)
        guess = level * min(max(share, FACTOR), 1.0 / FACTOR)
        if self.below < guess < self.above:
            return guess
        if math.isinf(self.above):
            return level / FACTOR
        return math.sqrt(self.below) * math.sqrt(self.above) if self.below > 0.0 else FACTOR * self.above
