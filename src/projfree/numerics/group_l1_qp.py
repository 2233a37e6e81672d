r"""Quadratics over l_1 and group-l_1 balls, by coordinate descent and Newton steps on faces.

.. math:: \min_v\ \tfrac12\langle v, Hv\rangle - \langle b, v\rangle
          \quad\text{subject to}\quad \sum_g c_g \|v_g\| \le r ,

or with the penalty :math:`\lambda \sum_g c_g \|v_g\|` in place of the radius. H is a matrix, or :math:`A^T h A` for the
columns A of a table and weights h of its rows. The multiplier :math:`\lambda` of the radius is searched for while the
penalised problems are solved: the norm of their minimisers decreases in :math:`\lambda`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.flat_ball import GroupL1Ball
from projfree.numerics.linear_systems import conjugate_gradients
from projfree.numerics.simplex_quadratic import minimise_on_simplex
from projfree.numerics.sums import UNIT

#: Maximum number of rounds of descent and Newton steps, for exact and for approximate solutions.
MOST_ROUNDS, ROUNDS = 300, 30
#: After this number of rounds without progress the solution counts as exact up to rounding.
STALLED = 12
#: Sweeps over the nonzero entries after each sweep over all entries, which costs much more.
SWEEPS = 2
#: Newton steps are used if a round of sweeps leaves more than this fraction of the gap.
SLOW = 0.1
#: Conjugate gradient steps of the first Newton step; the limit doubles with each later one.
CG_STEPS = 8
#: Relative residual at which conjugate gradients stop: the face usually changes again.
CG_ACCURACY = 0.03
#: The multiplier is updated once the penalised problem is solved to this fraction of the gap.
SOLVED = 0.3
#: Smallest relative damping of the diagonal of a face: a multiple of the rounding unit.
LEAST_DAMPING = 64.0 * UNIT
#: Largest change of the multiplier in one update, as a factor.
FACTOR = 0.3
#: Largest number of columns of a Gram matrix: it takes 8 MB, and is factorised in the time of a few products.
MOST_FORMED = 1_000
#: Largest number of entries that are swept in NumPy, which needs no compilation, or solved among vertices.
FEW = 100
#: The Gram matrix of sparse columns is formed if that takes at most as long as this number of sweeps.
FORMING_SWEEPS = 40


@dataclass(frozen=True, eq=False)
class Columns:
    """H as products of the columns of a table, less what an intercept takes off them, or as a matrix.

    Attributes
    ----------
    A : CSC array, or array in Fortran order, of shape (n, m)
        The columns, or H itself.
    h : ndarray of shape (n, k) or (n, 1), or None
        Weights of the rows, of each output or of all; None where A is H.
    mean : ndarray of shape (m, k)
        The product of each column with the constant column, over the length of that; zero without an intercept.
    diagonal : ndarray of shape (m, k)
        That of H.
    """

    A: Any
    h: Array | None
    mean: Array
    diagonal: Array

    @classmethod
    def of_matrix(cls, H: Array, outputs: int = 1) -> Columns:
        """H itself, the same for all outputs."""
        diagonal = np.repeat(np.maximum(np.diag(H), 0.0)[:, None], outputs, axis=1)
        return cls(H, None, np.zeros_like(diagonal), diagonal)

    @classmethod
    def of_table(cls, A: Any, h: Array, outputs: int = 1, *, intercept: bool = False) -> Columns:
        r"""The matrix :math:`\sum_i h_i x_i x_i^T`, the rows about their weighted mean with an intercept."""
        squared = A.power(2) if sparse.issparse(A) else A * A
        mean, squares = np.zeros((A.shape[1], outputs)), _product(squared.T, h)
        if intercept:
            mean += _product(A.T, h) / np.sqrt(np.maximum(h.sum(axis=0), np.finfo(np.float64).tiny))
        return cls(A, h, mean, np.maximum(squares - mean**2, 0.0))

    @cached_property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """Return the arrays of the columns in CSC form, and the row weights, for the compiled kernels."""
        h = np.zeros((0, 0)) if self.h is None else np.ascontiguousarray(self.h)
        if sparse.issparse(self.A):
            return self.A.indptr.astype(np.int64), self.A.indices.astype(np.int32, copy=False), self.A.data, h
        n, m = self.A.shape
        x = self.A.ravel("K" if self.h is None else "F")  # H is symmetric
        return np.arange(m + 1, dtype=np.int64) * n, np.zeros(0, dtype=np.int32), x, h

    def formed(self) -> Columns:
        """H itself where it takes no longer than some sweeps, else the columns."""
        m, k = self.mean.shape
        if self.h is None or self.h.shape[1] > 1 or m > MOST_FORMED:
            return self
        if sparse.issparse(self.A):
            from projfree.numerics.group_l1_kernels import add_gram

            rows, H = self.A.tocsr(), np.zeros((m, m))
            each = np.diff(rows.indptr).astype(np.float64)
            if float(each @ each) > 2.0 * FORMING_SWEEPS * rows.nnz:
                return self
            add_gram(rows.indptr, rows.indices, rows.data, self.h[:, 0], H)
        else:
            weighted = self.A * np.sqrt(self.h)
            H = weighted.T @ weighted
        if self.mean.any():
            H -= np.multiply.outer(self.mean[:, 0], self.mean[:, 0])
        return Columns.of_matrix(H, k)

    def image(self, v: Array) -> Array:
        """The weighted image of ``v``."""
        z = _product(self.A, v)
        return z if self.h is None else self.h * z

    def adjoint(self, z: Array, shift: Array) -> Array:
        """H v, given the image of v and its part along the intercept."""
        return z.copy() if self.h is None else np.asarray(_product(self.A.T, z) - self.mean * shift)

    def times(self, v: Array) -> Array:
        """Return the product H v."""
        return self.adjoint(self.image(v), np.einsum("jo,jo->o", self.mean, v))

    def curvatures(self, first: Array) -> Array:
        """For each entry an upper bound on the largest eigenvalue of the block of its group."""
        bounds = np.add.reduceat(self.diagonal.max(axis=1), first[:-1])  # the trace
        for g in np.flatnonzero(np.diff(first) > 1) if self.h is None else ():
            bounds[g] = np.linalg.eigvalsh(self.A[first[g] : first[g + 1], first[g] : first[g + 1]])[-1]
        return np.repeat(bounds * (1.0 + 1e-12), np.diff(first))[:, None] * np.ones_like(self.mean)


def _product(A: Any, v: Array) -> Array:
    """A v; SciPy multiplies a vector faster than a matrix of one column."""
    return np.asarray((A @ v[:, 0])[:, None] if v.shape[1] == 1 else A @ v)


@dataclass(frozen=True)
class QPSolution:
    """A minimiser, its multiplier, how far it can be from the minimum: ``gap``, and whether that is rounding alone."""

    w: Array
    level: float
    gap: float
    rounds: int = 1
    exact: bool = True


def minimize_group_l1(
    columns: Columns,
    slope: Array,
    ball: GroupL1Ball,
    start: Array,
    level: float,
    goal: float = 0.0,
    *,
    fall: float = math.inf,
    least: float = 0.0,
    free: int = 0,
    bound: float = 0.0,
) -> QPSolution:
    """Return the minimiser over a ball whose groups consist of adjacent columns.

    Parameters
    ----------
    columns : Columns
        H.
    slope, start : array of shape (m,) or (m, k)
        A point of the set, and the gradient there.
    ball : GroupL1Ball
        The set, without the free columns; with an infinite radius ``level`` times its norm is a penalty.
    level : float
        A guess at the multiplier.
    goal : float
        The gap at which it may end, where the quadratic has fallen by as much or by ``fall``.
    least : float
        Where the multiplier would have to be smaller, the last minimiser with a larger norm than the start will do.
    free : int
        The last columns are not in the ball, but between ``-bound`` and ``bound``.
    """
    entries = ball.groups is None and not free and math.isfinite(ball.radius)
    # What one unit of the norm is to each entry: of vertices of very different lengths, products lose the shorter ones.
    bends = np.sqrt(columns.diagonal.reshape(slope.shape)) / ball.costs if entries else np.ones(1)
    even = bends.max(initial=0.0) <= UNIT**-0.25 * np.min(bends, where=bends > 0.0, initial=math.inf)
    if ball.tight or (entries and slope.size <= FEW and even):
        return _on_simplex(columns, slope, ball, start)
    search = _Search(columns, slope, ball, start, free, bound)
    found = search.solve(level, goal, fall, least)
    found = replace(found, exact=found.gap <= 4.0 * search.floor())
    if goal > 0.0 or found.exact or not entries or slope.size > MOST_FORMED:
        return found
    # The face is degenerate, as in models of nearly flat losses: slower steps among vertices end on it exactly.
    return min(found, _on_simplex(columns, slope, ball, start), key=lambda one: one.gap)


def _on_simplex(columns: Columns, slope: Array, ball: GroupL1Ball, start: Array) -> QPSolution:
    """The minimiser over a set whose groups are single entries, as weights of its vertices."""
    (m, k), reach = columns.mean.shape, (np.ones_like(slope) * ball.radius / ball.costs).ravel()
    units = np.eye(m * k).reshape(m * k, m, k)
    H = columns.A if columns.h is None and k == 1 else np.stack([columns.times(unit).ravel() for unit in units])
    corners, weights = np.diag(reach), np.maximum(start.ravel(), 0.0) / reach
    if ball.signed and not ball.tight:
        corners, weights = np.vstack([corners, -corners]), np.append(weights, np.maximum(-start.ravel(), 0.0) / reach)
    if not ball.tight:
        corners, weights = np.vstack([corners, 0.0 * reach]), np.append(weights, max(1.0 - float(weights.sum()), 0.0))
    weights = weights / weights.sum() if weights.any() else np.full(len(weights), 1.0 / len(weights))
    at = slope.ravel() + H @ (weights @ corners - start.ravel())
    w = (minimise_on_simplex(corners @ H @ corners.T, corners @ at, weights) @ corners).reshape(slope.shape)
    if ball.tight or ball.norm(w) > ball.radius:
        w *= ball.radius / ball.norm(w)
    g = slope + (H @ (w - start).ravel()).reshape(slope.shape)
    return QPSolution(w, ball.level(g), float(np.vdot(g, w)) + ball.radius * ball.level(g))


class _Search:
    """The state of a solve: the point v, its image z, and the gradient."""

    def __init__(
        self, columns: Columns, slope: Array, ball: GroupL1Ball, start: Array, free: int, bound: float
    ) -> None:
        k, m = columns.mean.shape[1], len(start) - free
        self.columns, self.shape, self.radius, self.m = columns, start.shape, ball.radius, m
        self.start, self.slope = start.reshape(-1, k), slope.reshape(-1, k)
        self.v = np.array(self.start, dtype=np.float64, order="C")
        self.joint, self.bound, pad = ball.groups is not None, bound if free else 0.0, np.zeros((free, k))
        self.ball, self.groups = ball.beside(free, (m, k)), np.arange(m + free)
        self.cost = np.ones((m + free, 1)) * self.ball.costs
        if self.ball.groups is not None:
            self.groups, self.cost = self.ball.groups, self.ball.costs[self.ball.groups, None] * np.ones((1, k))
        self.first = np.append(np.flatnonzero(np.diff(self.groups, prepend=-1)), m + free)
        self.high = np.vstack([self.radius / self.cost[:m], pad + self.bound])
        self.low = np.vstack([-self.high[:m] if ball.signed else 0.0 * self.cost[:m], -self.high[m:]])
        self.curvature = columns.curvatures(self.first) if self.joint else columns.diagonal
        self.damping = LEAST_DAMPING
        self._look()

    def _look(self) -> None:
        """Form the image and the gradient anew."""
        c = self.columns
        d = self.v - self.start
        self.z, self.shift = c.image(d), np.einsum("jo,jo->o", c.mean, d)
        self.g = self.slope + c.adjoint(self.z, self.shift)

    def _sweep(self, level: float, which: Array) -> None:
        """Minimise over one part after the other of those in ``which``; see the compiled `sweep`."""
        if self.v.size <= FEW:  # a kernel that is compiled first would take longer
            for g in which:
                self._minimize_part(level, slice(self.first[g], self.first[g + 1]))
            return
        from projfree.numerics.group_l1_kernels import sweep

        head = (*self.columns.arrays, self.z, self.columns.mean, self.shift, self.v, self.slope, self.curvature)
        sweep(*head, level * self.cost, self.low, self.high, self.first, self.joint, which)

    def _minimize_part(self, level: float, part: slice) -> None:
        """Minimise the penalised quadratic over some entries."""
        c, old, curvature, threshold = self.columns, self.v[part], self.curvature[part], level * self.cost[part]
        A, mean = c.A[:, part], c.mean[part]
        slope = (self.z[part] if c.h is None else A.T @ self.z) - mean * self.shift + self.slope[part]
        goal = curvature * old - slope
        pull = np.where(threshold > 0.0, np.linalg.norm(goal), np.abs(goal)) if self.joint else np.abs(goal)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.minimum((pull - threshold) / curvature, self.high[part])
            new = np.where(pull > threshold, np.maximum(reach * (goal / pull), self.low[part]), 0.0)
        step = np.where(np.isfinite(new), new, old) - old  # without curvature and bounds nothing is known of an entry
        self.v[part] = old + step
        self.shift += np.einsum("jo,jo->o", step, mean)
        self.z += A @ step if c.h is None else c.h * (A @ step)

    # ------------------------------------------------------------ what is known of a point

    def _value(self) -> float:
        """The quadratic at v, less that at the start: rounding then falls with the steps that are left."""
        return 0.5 * float(np.vdot(self.v - self.start, self.g + self.slope))

    def _gap(self, v: Array, g: Array) -> float:
        """The Frank-Wolfe gap at v, where the gradient is g."""
        linear = float(np.vdot(g, v)) + self.bound * float(np.abs(g[self.m :]).sum())
        return linear + self.radius * self.ball.level(g)

    def _penalized_gap(self, level: float, norm: float) -> float:
        """The gap of the penalised problem; parts at a bound that push against it are where they should be."""
        ball, slopes = self.ball, self.ball.slopes(self.g)
        spent = ball.costs * ball.sizes(self.v)
        held = (spent >= self.radius * (1.0 - 4.0 * UNIT)) & (slopes >= level)
        gap = float(np.sum(np.where(held, 0.0, ball.sums(self.g * self.v) + level * spent)))
        above = float(np.max(np.where(held, 0.0, slopes), initial=0.0)) - level
        return gap + max(above, 0.0) * norm + self.bound * float(np.abs(self.g[self.m :]).sum())

    def floor(self) -> float:
        """The rounding of a gap."""
        size = np.abs(self.slope)
        terms = float(np.vdot(np.abs(self.v), size)) + self.bound * float(size[self.m :].sum())
        if math.isfinite(self.radius):
            terms += self.radius * self.ball.level(size if self.ball.signed else -size)
        return 8.0 * UNIT * terms

    def _inside(self, norm: float, sides: dict[bool, tuple[Array, Array, float]]) -> Iterator[tuple[Array, Array]]:
        """Points of the ball near v with their gradients: v scaled, and between v and the last one on the other side.

        Where the norm jumps at the right multiplier, all points between two minimisers are minimisers.
        """
        r, v, g = self.radius, self.v.copy(), self.g
        if norm > r:
            v[: self.m] *= r / norm
            # Along the ray the gradient is linear.
            g = self.slope + self.columns.times(v - self.start)
        yield v, g
        if norm != r and (norm < r) in sides:
            other, slope, size = sides[norm < r]
            t = (r - size) / (norm - size)
            yield other + t * (self.v - other), slope + t * (self.g - slope)

    # ------------------------------------------------------------ the search

    def solve(self, level: float, goal: float, fall: float, least: float) -> QPSolution:
        """Descend, and move the multiplier whenever the penalised problem is solved, until the gap is small."""
        r, penalty = self.radius, math.isinf(self.radius)
        if not penalty and not level * r > max(goal, self.floor()):  # of no matter to the gap: none is known
            if level * r <= self.floor() and (found := self._interior(max(goal, self.floor()), fall, True)) is not None:
                return found
            level = 0.5 * self.ball.level(self.g)
        level, first = max(level, least), self.ball.norm(self.start)
        search, everything, random = _Multiplier(r), np.arange(len(self.first) - 1), np.random.default_rng(0)
        last, steps, stalled = math.inf, CG_STEPS, 0
        best, sides = QPSolution(self.v.copy(), level, math.inf), dict[bool, tuple[Array, Array, float]]()
        descended, low = False, -math.inf
        for turn in range(MOST_ROUNDS):
            # In a random order: columns without negative entries, as those of texts, make cycles slow.
            self._sweep(level, random.permutation(everything))
            for _ in range(SWEEPS):
                used = self.ball.sizes(self.v).reshape(len(everything), -1).any(axis=1)
                self._sweep(level, random.permutation(np.flatnonzero(used)))
            self.g = self.slope + self.columns.adjoint(self.z, self.shift)
            norm, floor = self.ball.norm(self.v), self.floor()
            own = self._penalized_gap(level, norm)
            if turn and own > max(floor, SLOW * last):
                self._face_step(level, steps)
                steps *= 2
                norm, own = self.ball.norm(self.v), self._penalized_gap(level, self.ball.norm(self.v))
            points = [(self.v, self.g)] if penalty else list(self._inside(norm, sides))
            gaps = [own] if penalty else [self._gap(v, g) for v, g in points]
            gap = min(gaps)
            v, g = points[gaps.index(gap)]
            stalled, last = 0 if gap < 0.7 * best.gap or own < 0.7 * last else stalled + 1, own
            # A share of the gap says little where that is far larger than the value: half of the way is due as well,
            # unless there is none: the value at the start may be the least, the gap large all the same.
            fell = floor - 0.5 * float(np.vdot(v - self.start, g + self.slope))
            descends = penalty or fell > 0.0
            enough = descends and (penalty or gap <= SLOW * goal or fell > min(gap, fall))
            if (descends, -gap) > (descended, -best.gap):
                best, descended = QPSolution(v.copy(), level, gap), descends
            if gap <= (max(goal, floor) if enough else floor) or expired():
                if penalty and goal == 0.0:  # a gap of rounding size is the square of an error that a last step removes
                    self._face_step(level, steps)
                    best = replace(best, w=self.v)
                break
            if stalled > STALLED or (goal > 0.0 and descended and turn >= ROUNDS):
                break
            if penalty:
                continue
            low = max(low, self._value() - self._gap(self.v, self.g))
            if own <= max(SOLVED * gap, floor) and norm == r:  # one part is at its bound, and its slope the multiplier
                level = max(level, self.ball.level(self.g))
            elif own <= max(SOLVED * gap, floor):
                sides[norm > r] = self.v.copy(), self.g, norm
                if norm < r and (found := self._interior(max(goal, floor), fall, False)) is not None:
                    return found
                new = search.next(level, norm, self._value() - low)
                if new < least and level <= least and first < norm < r:
                    return QPSolution(self.v.reshape(self.shape), new, gap, turn + 1)
                level = new if norm > r or level <= least else max(new, least)
        return replace(best, w=best.w.reshape(self.shape), rounds=turn + 1)

    def _interior(self, goal: float, fall: float, every: bool) -> QPSolution | None:
        """The minimiser without the ball, where that is found inside."""
        kept, last = (self.v, self.z, self.shift, self.g), math.inf
        while self.ball.norm(self.v) <= self.radius and (gap := self._gap(self.v, self.g)) < 0.5 * last:
            if gap <= goal and (min(gap, fall) < -self._value() or gap <= self.floor()):
                return QPSolution(self.v.reshape(self.shape), 0.0, gap)
            self._face_step(0.0, MOST_ROUNDS, every)
            last = gap
        self.v, self.z, self.shift, self.g = kept
        return None

    # ------------------------------------------------------------ Newton steps on the face

    def _face_step(self, level: float, steps: int, every: bool = False) -> None:
        """Take a Newton step on the nonzero entries, shortened until the penalised value decreases."""
        old, before = (self.v, self.z, self.shift, self.g), self._value() + level * self.ball.norm(self.v)
        p, raised = self._newton(level, steps, every), min(self.damping * 1e3, 1.0)
        toward = (self.v * p < 0.0) & (np.abs(p) > np.abs(self.v))  # half of the step at most, to where the first ends
        for share in (1.0, float(np.min(np.abs(self.v[toward] / p[toward]), initial=0.5))):
            new = old[0] + share * p
            if not self.joint:
                new = np.where((new * old[0] < 0.0) & (level * self.cost > 0.0), 0.0, new)
                new = np.clip(new, self.low, self.high)
            new[self.m :] = np.clip(new[self.m :], -self.bound, self.bound)
            self.v = new
            self._look()
            if self._value() + level * self.ball.norm(new) <= before:
                if share == 1.0 or self.joint:  # as Levenberg and Marquardt do: directions may have no curvature
                    self.damping = max(self.damping * 1e-2, LEAST_DAMPING) if share == 1.0 else raised
                return
        (self.v, self.z, self.shift, self.g), self.damping = old, raised

    def _newton(self, level: float, steps: int, every: bool) -> Array:
        """The step that solves the damped system of the face, by a factorization or conjugate gradients."""
        v, H, group = self.v, self.columns.A, self.groups
        size = self.ball.sizes(v)[group][:, None] if self.joint else np.abs(v)
        on = ((size > 0.0) | every) & (self.low < v) & (v < self.high) & (self.columns.diagonal > 0.0)
        u = np.divide(v, size, out=np.zeros_like(v), where=size > 0.0)  # the gradient of the norm of each part
        bend = np.divide(level * self.cost, size, out=np.zeros_like(v), where=on & (size > 0.0) & self.joint)
        rhs = -np.where(on, self.g + level * self.cost * u, 0.0)
        diagonal = self.columns.diagonal * (1.0 + self.damping) + bend
        places = np.flatnonzero(on)
        if not len(places):
            return np.zeros_like(v)
        if self.columns.h is None and v.shape[1] == 1 and len(places) <= MOST_FORMED:
            B, p = H[np.ix_(places, places)], np.zeros_like(v)
            if self.joint:
                along = (np.sqrt(bend) * u)[places]
                B += np.diag(bend[places, 0]) - (group[places, None] == group[places]) * (along * along.T)
            p[places, 0] = _solve(B, rhs[places, 0], self.damping)
            return p

        def product(x: Array) -> Array:
            out = self.columns.times(x) + (diagonal - self.columns.diagonal) * x
            if self.joint:
                out -= bend * u * self.ball.sums(u * x)[group][:, None]
            return np.where(on, out, 0.0)

        scale = np.divide(1.0, diagonal, out=np.zeros_like(v), where=on)
        return conjugate_gradients(product, rhs, lambda x: scale * x, tol=CG_ACCURACY, max_iter=steps).x


def _solve(B: Array, rhs: Array, damping: float) -> Array:
    """The solution of a positive semidefinite system whose diagonal is raised by this part of itself, or by more."""
    from scipy.linalg import lapack

    scale = np.sqrt(np.maximum(np.diag(B), np.finfo(np.float64).tiny))
    with np.errstate(over="ignore", invalid="ignore"):  # groups of almost no size bend beyond floats: no step is found
        B = B / scale / scale[:, None]
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

    def __init__(self, radius: float) -> None:
        self.radius, self.exponent = radius, 0.5
        self.below, self.above = 0.0, math.inf
        self.last = (0.0, 0.0)

    def next(self, level: float, norm: float, excess: float) -> float:
        """The next multiplier, after the norm at ``level``, where the value exceeds a lower bound by ``excess``.

        The minimum is convex in the radius, which bounds its slope there, the multiplier.
        """
        if norm != self.last[1] and min(norm, level, *self.last) > 0.0:
            secant = -math.log(level / self.last[0]) / math.log(norm / self.last[1])
            self.exponent = max(secant, 0.5 * self.exponent)
        self.last = level, norm
        if norm < self.radius:
            self.above = min(self.above, abs(excess) / (self.radius - norm))  # negative by rounding alone
        else:
            self.below = max(self.below, -excess / (norm - self.radius))
        share = self.exponent * math.log(norm / self.radius) if norm > 0.0 else -math.inf
        guess = level * math.exp(min(max(share, math.log(FACTOR)), -math.log(FACTOR)))
        if self.below < guess < self.above:
            return guess
        if math.isinf(self.above):
            return level / FACTOR
        return math.sqrt(self.below) * math.sqrt(self.above) if self.below > 0.0 else FACTOR * self.above
